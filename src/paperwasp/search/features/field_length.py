"""fieldLength(field) and averageFieldLength(field).

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#fieldLength(name)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register

UNKNOWN_LENGTH: Final = 1_000_000.0
"""The length of a field that no term of the query matched, or in which it is not known where one did."""


@register("fieldLength", "index")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]

    def compute(block: Block) -> Floats:
        matched = np.zeros(len(block.lids), np.bool_)
        for number, _ in terms_of(block, field):
            if not block.only_filters(number, field):
                matched |= block.matched(number, field)
        return np.where(matched, block.field_length(field).astype(np.float64), UNKNOWN_LENGTH)

    return compute


@register("averageFieldLength", "index")
def bind_average(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return one(block.setting.average_lengths(arguments[0])[0])

    return compute
