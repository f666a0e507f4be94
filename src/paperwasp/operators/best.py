"""Terms that match only the best so many documents, by what they themselves score: wand, nearestNeighbor.

Which those are is found when the documents that match are asked for, among those that the rest of the query leaves;
before, and where the term only ranks, among all.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.column import bitmap_of
from paperwasp.core import _core
from paperwasp.operators.base import SearchSpace, TermOperator
from paperwasp.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.operators.term import bits_of

_BLOCK_LIDS: Final = 65_536
"""Documents that are scored together."""


class BestMatch(FieldMatch):
    """The `target_hits` documents with the greatest values above the least; of equal ones those with lower lids."""

    def __init__(self, space: SearchSpace, field: str, target_hits: int) -> None:
        self.field = field
        self._space = space
        self._target_hits = target_hits
        self._best: Bitmap | None = None

    @abstractmethod
    def candidates(self) -> Bitmap:
        """The documents that have a value."""

    @abstractmethod
    def values(self, lids: Lids) -> NDArray[np.float64]:
        """The values of candidates, float64 in the order of `lids`; -inf where a document is not to match."""

    @abstractmethod
    def scores(self, lids: Lids) -> NDArray[np.float64]:
        """The raw scores of documents that match."""

    def select(self, within: Bitmap | None) -> None:
        """Finds the best of some documents (None: of all)."""
        space = self._space
        possible = self.candidates() & space.accept
        if within is not None:
            possible &= within
        lids = _core.bitmap_lids(possible, space.limit)
        best, values = np.zeros(0, np.uint32), np.zeros(0)
        for start in range(0, len(lids), _BLOCK_LIDS):
            space.check_time()
            block = lids[start : start + _BLOCK_LIDS]
            best, values = _first(
                np.concatenate([best, block]), np.concatenate([values, self.values(block)]), self._target_hits
            )
        self._best = bitmap_of(best, space.limit)

    @property
    def best(self) -> Bitmap:
        """The documents that match."""
        if self._best is None:
            self.select(None)
        assert self._best is not None
        return self._best

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self.best

    def frequency(self) -> int:
        return self.estimate() if self._best is None else _core.bitmap_count(self._best, self._space.accept)

    def document_frequencies(self) -> tuple[int, ...]:
        """All that have a value may match."""
        return (self._space.documents,)

    def estimate(self) -> int:
        return min(self._target_hits, self._space.documents)

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return bits_of(self.best, lids).astype(np.int32)

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        scores = np.zeros(len(lids))
        found = bits_of(self.best, lids)
        scores[found] = self.scores(lids[found])
        return scores


class BestOperator(TermOperator):
    """A term of such matches."""

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        for match in self.matches:
            if isinstance(match, BestMatch):
                match.select(within)
        return super().bitmap(within)

    @property
    def targets_hits(self) -> bool:
        return True


def _first(lids: Lids, values: NDArray[np.float64], count: int) -> tuple[Lids, NDArray[np.float64]]:
    """The `count` with the greatest values, rising lids; `lids` rise."""
    there = values > -np.inf
    lids, values = lids[there], values[there]
    if len(lids) <= count:
        return lids, values
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = values > least
    equal = np.flatnonzero(values == least)[: count - int(np.count_nonzero(above))]
    above[equal] = True
    return lids[above], values[above]
