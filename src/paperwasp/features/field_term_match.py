"""fieldTermMatch(field, n): where, and how often, term number n occurs in an indexed field.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-term-and-field-match-features
Differs: the outputs weight and exactness, which Vespa has for its own tests of elements, are not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.features.base import MatchContext, are_terms_of
from paperwasp.features.family import Compute, Floats, RankSetup, one, register

NO_POSITION: Final = 1_000_000.0
DEFAULT_LISTED_TERMS: Final = 5


def _listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.index_fields:
        keys = (f"fieldTermMatch({field}).numTerms", f"fieldTermMatch.numTerms.{field}", "fieldTermMatch.numTerms")
        for number in range(setup.whole(DEFAULT_LISTED_TERMS, limits.LISTED_TERMS, *keys)):
            yield f"fieldTermMatch({field},{number}).firstPosition"
            yield f"fieldTermMatch({field},{number}).occurrences"


@register(
    "fieldTermMatch",
    "index",
    "number",
    outputs=("firstPosition", "lastPosition", "occurrences"),
    listed=_listed,
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, number = arguments[0], int(arguments[1])
    absent = 0.0 if output == "occurrences" else NO_POSITION

    def compute(context: MatchContext) -> Floats:
        if not are_terms_of(context, field, number):
            return one(absent)
        if output == "occurrences":
            return context.occurrences(number, field).astype(np.float64)
        return end_positions(*context.positions(number, field), last=output == "lastPosition")

    return compute


def end_positions(offsets: NDArray[np.uint32], positions: NDArray[np.uint32], *, last: bool = False) -> Floats:
    """The first (or last) position of each hit; NO_POSITION for a hit without any."""
    counts = np.diff(offsets.astype(np.int64))
    at = offsets[1:].astype(np.int64) - 1 if last else offsets[:-1].astype(np.int64)
    found = np.full(len(counts), NO_POSITION)
    found[counts > 0] = positions[at[counts > 0]]
    return found
