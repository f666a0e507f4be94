"""Terms that match only a number of the best documents, by what they themselves score: wand, nearestNeighbor.

Which those are is found when the documents that match are asked for, among those that the rest of the query leaves;
where the term only ranks, among those that it ranks, and only if somebody asks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.search.operators.operator import SearchSpace, TermOperator
from paperwasp.search.operators.term import bits_of
from paperwasp.storage.attributes.column import bitmap_of


class BestMatch(FieldMatch):
    """The best documents by their values, about `target_hits` of them."""

    def __init__(self, space: SearchSpace, field: str, target_hits: int) -> None:
        self.field = field
        self._space = space
        self._target_hits = target_hits
        self._found_lids: Lids | None = None
        self._best: Bitmap | None = None
        self._within: Bitmap | None = None
        self._ranked: Callable[[], Bitmap | None] = _everything

    @abstractmethod
    def find(self, allowed: Bitmap) -> Lids:
        """Return the lids of the best of some live documents, rising."""

    def candidates(self) -> Bitmap | None:
        """The documents that have a value; None: perhaps all."""
        return None

    @abstractmethod
    def scores(self, lids: Lids) -> NDArray[np.float64]:
        """The raw scores of documents that match."""

    @property
    def finds_alone(self) -> bool:
        """Whether its hits do not depend on other terms of this kind beside it."""
        return False

    def select(self, within: Bitmap | None) -> None:
        """Find the best of some documents (None: of all), if they are not known."""
        if self._found_lids is not None and (within is self._within or _are_equal(within, self._within)):
            return
        allowed = self._space.accept if within is None else self._space.accept & within
        self._within = within
        self._found_lids, self._best = self.find(allowed), None

    def look_within(self, ranked: Callable[[], Bitmap | None]) -> None:
        """Forget what was found. If nobody selects, the best are found among the documents that `ranked` returns."""
        self._found_lids, self._best, self._ranked = None, None, ranked

    @property
    def best(self) -> Bitmap:
        """The documents that match."""
        if self._found_lids is None:
            self.select(self._ranked())
        if self._best is None:
            assert self._found_lids is not None
            self._best = bitmap_of(self._found_lids, self._space.limit)
        return self._best

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self.best

    def frequency(self) -> int:
        return self.estimate() if self._found_lids is None else _core.bitmap_count(self.best, self._space.accept)

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
        """Without `within`, what was found before, if anything was."""
        if within is not None:
            for match in self._bests:
                match.select(within)
        return super().bitmap(within)

    def possible(self, within: Bitmap | None = None) -> Bitmap | None:
        """The documents that have a value."""
        possible = self._space.empty()
        for match in self._bests:
            candidates = match.candidates()
            if candidates is None:
                return None
            possible |= candidates
        return possible

    def look_within(self, ranked: Callable[[], Bitmap | None]) -> None:
        for match in self._bests:
            match.look_within(ranked)

    @property
    def finds_alone(self) -> bool:
        return all(match.finds_alone for match in self._bests)

    @property
    def targets_hits(self) -> bool:
        return True

    @property
    def _bests(self) -> list[BestMatch]:
        return [match for match in self.matches if isinstance(match, BestMatch)]


def _everything() -> None:
    return None


def _are_equal(one: Bitmap | None, other: Bitmap | None) -> bool:
    return one is not None and other is not None and np.array_equal(one, other)
