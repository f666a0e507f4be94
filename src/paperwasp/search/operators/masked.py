"""Terms that ranking sees only where the operator matches that they are below.

In `a or (b and c)` a document with `a` and `b` alone is not matched by the `and`: its `b` counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import bits_of


def terms_where_matched(operator: Operator, space: SearchSpace) -> Iterator[TermOperator]:
    """The terms of an operator that need not match; a term by itself is there where it matches anyway."""
    if isinstance(operator, TermOperator):
        yield from operator.terms()
        return
    whole = Whole(operator, space)
    for term in operator.terms():
        yield _MaskedTerm(term, whole, space)


class _MaskedTerm(TermOperator):
    """A term, where a whole that it is part of matches."""

    def __init__(self, term: TermOperator, whole: Whole, space: SearchSpace) -> None:
        super().__init__(space, [MaskedMatch(match, whole) for match in term.matches], term.annotations, term.length)
        self._term = term

    @cached_property
    def document_frequency(self) -> tuple[int, int]:
        """That of the term by itself: how rare a word is does not depend on the query."""
        return self._term.document_frequency


class Whole:
    """The documents that an operator matches, found once for all terms below it."""

    def __init__(self, operator: Operator, space: SearchSpace) -> None:
        self._operator = operator
        self._space = space
        self._last: tuple[Lids, NDArray[np.bool_], Lids] | None = None

    @cached_property
    def bitmap(self) -> Bitmap:
        return self._operator.bitmap()

    def inside(self, lids: Lids) -> tuple[NDArray[np.bool_], Lids]:
        """Return which of some lids the operator matches, and those. All terms below ask for the same, one after
        another."""
        last = self._last
        if last is None or last[0] is not lids:
            there = bits_of(self.bitmap, lids)
            last = self._last = lids, there, lids if there.all() else lids[there]
        return last[1:]

    @cached_property
    def lids(self) -> Lids:
        """Those of live documents, ascending."""
        return _core.bitmap_lids(self.bitmap & self._space.accept, self._space.limit)


class MaskedMatch(FieldMatch):
    """A term in a field, where a whole that it is part of matches."""

    def __init__(self, match: FieldMatch, whole: Whole) -> None:
        self.field = match.field
        self._match = match
        self._whole = whole

    @property
    def match(self) -> FieldMatch:
        """The term wherever it matches."""
        return self._match

    @property
    def whole(self) -> Whole:
        """The operator without whose match the term does not count."""
        return self._whole

    @property
    def found(self) -> tuple[Lids, NDArray[np.uint32]]:
        """(live lids where the whole matches, offsets[lids + 1] of the term's occurrences in them)."""
        lids = self._whole.lids
        ends = np.cumsum(self._match.occurrences(lids), dtype=np.uint32)
        return lids, np.concatenate([np.zeros(1, np.uint32), ends])

    @property
    def is_positional(self) -> bool:
        return self._match.is_positional

    @property
    def only_filters(self) -> bool:
        return self._match.only_filters

    def add_to(self, bitmap: Bitmap) -> None:
        own = np.zeros_like(bitmap)
        self._match.add_to(own)
        own &= self._whole.bitmap
        bitmap |= own

    def frequency(self) -> int:
        """The frequency of the term by itself: how rare a word is does not depend on the query."""
        return self._match.frequency()

    def document_frequencies(self) -> tuple[int, ...]:
        return self._match.document_frequencies()

    @property
    def is_counted(self) -> bool:
        return self._match.is_counted

    def estimate(self) -> int:
        return self._match.estimate()

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        there, inside = self._whole.inside(lids)
        if inside is lids:
            return self._match.occurrences(lids)
        found = np.zeros(len(lids), np.int32)
        found[there] = self._match.occurrences(inside)
        return found

    def positions(self, lids: Lids) -> Occurrences:
        there = self._there(lids)
        return _spread(there, *self._match.positions(lids[there]))

    def elements(self, lids: Lids) -> Occurrences:
        there = self._there(lids)
        return _spread(there, *self._match.elements(lids[there]))

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        return self._match.element_weights(lids[self._there(lids)])

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        there = self._there(lids)
        found = np.zeros(len(lids), np.int64)
        found[there] = self._match.match_weights(lids[there])
        return found

    @property
    def unmasked(self) -> FieldMatch:
        return self._match.unmasked

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        there = self._there(lids)
        found = np.zeros(len(lids))
        found[there] = self._match.raw_scores(lids[there])
        return found

    def _there(self, lids: Lids) -> NDArray[np.bool_]:
        return self._whole.inside(lids)[0]


def _spread(there: NDArray[np.bool_], offsets: NDArray[np.uint32], values: NDArray[np.uint32]) -> Occurrences:
    """Spreads the occurrences in some documents over all: the others have none."""
    counts = np.zeros(len(there), np.int64)
    counts[there] = np.diff(offsets.astype(np.int64))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32), values
