"""term(n): what the query says of its term number n, counted from 0.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-features
"""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp import limits
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register

DEFAULT_LISTED_TERMS = 5


def _listed(setup: RankSetup) -> Iterable[str]:
    count = setup.whole(DEFAULT_LISTED_TERMS, limits.LISTED_TERMS, "term.numTerms")
    outputs = ("connectedness", "significance", "weight")
    return [f"term({number}).{output}" for number in range(count) for output in outputs]


@register("term", "number", outputs=("connectedness", "significance", "weight"), listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    number = int(arguments[0])

    def compute(block: Block) -> Floats:
        if number >= len(block.terms):
            return one(0.0)
        term = block.terms[number]
        values = {"connectedness": term.connectivity, "significance": term.significance, "weight": term.weight}
        return one(values[output])

    return compute
