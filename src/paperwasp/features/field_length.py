"""fieldLength(field) and averageFieldLength(field).

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#fieldLength(name)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.features.base import MatchContext, terms_of
from paperwasp.features.family import Compute, Floats, RankSetup, one, register

UNKNOWN_LENGTH: Final = 1_000_000.0
"""The length of a field that no term of the query matched."""


@register("fieldLength", "index")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]

    def compute(context: MatchContext) -> Floats:
        matched = np.zeros(len(context.lids), np.bool_)
        for number, _ in terms_of(context, field):
            matched |= context.matched(number, field)
        return np.where(matched, context.field_length(field).astype(np.float64), UNKNOWN_LENGTH)

    return compute


@register("averageFieldLength", "index")
def bind_average(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return one(context.field_statistics(arguments[0]).average_length)

    return compute
