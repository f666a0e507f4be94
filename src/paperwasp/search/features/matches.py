"""matches(field), matches(field, n) and matchCount(field): whether, and by how many terms, a field was matched.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#matches(name)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, register


def _count_of(block: Block, field: str, only: int | None = None) -> Floats:
    """How many of the terms (or whether term `only`) matched in `field`."""
    count = np.zeros(len(block.lids))
    for number, _ in terms_of(block, field):
        if only in (None, number):
            count += block.matched(number, field)
    return count


def _listed(setup: RankSetup) -> Iterable[str]:
    return [f"matches({field})" for field in (*setup.listed_attributes, *setup.listed_index_fields)]


@register("matches", "any-field", "number", optional=1, listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    only = int(arguments[1]) if len(arguments) == 2 else None

    def compute(block: Block) -> Floats:
        return (_count_of(block, field, only) > 0).astype(np.float64)

    return compute


@register("matchCount", "any-field")
def bind_count(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return _count_of(block, arguments[0])

    return compute
