"""fieldTermMatch(field, n): where, and how often, term number n occurs in an indexed field.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-term-and-field-match-features
Differs: exactness is 1 wherever the term stands; Vespa has less for the weaker ones of `alternatives`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.search.features.block import Block, are_terms_of
from paperwasp.search.features.element_rows import element_places
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register

NO_POSITION: Final = 1_000_000.0
DEFAULT_LISTED_TERMS: Final = 5


def _listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.listed_index_fields:
        keys = (f"fieldTermMatch({field}).numTerms", f"fieldTermMatch.numTerms.{field}", "fieldTermMatch.numTerms")
        for number in range(setup.whole(DEFAULT_LISTED_TERMS, limits.LISTED_TERMS, *keys)):
            yield f"fieldTermMatch({field},{number}).firstPosition"
            yield f"fieldTermMatch({field},{number}).occurrences"
            yield f"fieldTermMatch({field},{number}).weight"


@register(
    "fieldTermMatch",
    "index",
    "number",
    outputs=("firstPosition", "lastPosition", "occurrences", "weight", "exactness"),
    listed=_listed,
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, number = arguments[0], int(arguments[1])
    absent = NO_POSITION if output.endswith("Position") else 0.0

    def compute(block: Block) -> Floats:
        if not are_terms_of(block, field, number):
            return one(absent)
        if output == "occurrences":
            return block.occurrences(number, field).astype(np.float64)
        if output == "weight":
            return _weights(block, field, number)
        if output == "exactness":
            return (np.diff(block.positions(number, field)[0].astype(np.int64)) > 0).astype(np.float64)
        return end_positions(*block.positions(number, field), last=output == "lastPosition")

    return compute


def _weights(block: Block, field: str, number: int) -> Floats:
    """The sum of the weights of the elements that the term stands in, for each place where it stands."""
    places = element_places(block, number, field)
    before = np.concatenate([[0], np.cumsum(places.weights, dtype=np.int64)])
    sums: Floats = (before[places.offsets[1:]] - before[places.offsets[:-1]]).astype(np.float64)
    return sums


def end_positions(offsets: NDArray[np.uint32], positions: NDArray[np.uint32], *, last: bool = False) -> Floats:
    """The first (or last) position of each hit; NO_POSITION for a hit without any."""
    counts = np.diff(offsets.astype(np.int64))
    at = offsets[1:].astype(np.int64) - 1 if last else offsets[:-1].astype(np.int64)
    found = np.full(len(counts), NO_POSITION)
    found[counts > 0] = positions[at[counts > 0]]
    return found
