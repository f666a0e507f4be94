"""Matches made of others in one field: several as one, several in sequence, one without its positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import FoundMatch, bits_of, counts_of

MERGED_TOGETHER: Final = 64
"""Matches whose places are known at once: each has a number for every document."""
_BLOCK_LIDS: Final = 65_536
_BLOCK_POSITIONS: Final = 1 << 24
"""A part may stand everywhere in a document."""


def blocks_of(lids: Lids, lengths: NDArray[np.int32], parts: int) -> Iterator[Lids]:
    """Documents whose positions of this number of parts are looked at together: as many as the memory for them allows.
    `lengths`: of the documents' fields."""
    needed = np.cumsum((lengths.astype(np.int64) + 1) * parts)
    start, done = 0, 0
    while start < len(lids):
        end = int(np.searchsorted(needed, done + _BLOCK_POSITIONS, "right"))
        end = min(max(end, start + 1), start + _BLOCK_LIDS)
        yield lids[start:end]
        start, done = end, int(needed[end - 1])


def documents_with_all(matches: Sequence[FieldMatch], within: Bitmap) -> Lids:
    """The documents that all of them match, rising."""
    result = within.copy()
    for match in sorted(matches, key=lambda match: match.estimate()):
        bitmap = np.zeros_like(result)
        match.add_to(bitmap)
        result &= bitmap
        if not result.any():
            break
    return _core.bitmap_lids(result, len(result) * 64)


class UnionMatch(FieldMatch):
    """Several matches as one: where two of them stand at the same place, it counts once."""

    def __init__(self, space: SearchSpace, field: str, matches: Sequence[FieldMatch]) -> None:
        self.field = field
        self.matches = tuple(matches)
        self._space = space

    @cached_property
    def _bitmap(self) -> Bitmap:
        result = self._space.empty()
        for match in self.matches:
            match.add_to(result)
        return result

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def document_frequencies(self) -> tuple[int, ...]:
        return tuple(max(match.document_frequencies()) for match in self.matches) or (0,)

    def estimate(self) -> int:
        return min(self._space.documents, sum(match.estimate() for match in self.matches))

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        if self.is_positional:
            return counts_of(self.positions(lids))
        return (counts_of(self.elements(lids)) > 0).astype(np.int32)

    @property
    def is_positional(self) -> bool:
        return all(match.is_positional for match in self.matches)

    def positions(self, lids: Lids) -> Occurrences:
        if not self.matches:
            return super().positions(lids)
        return self._merge(lambda match: match.positions(lids))

    def elements(self, lids: Lids) -> Occurrences:
        if not self.matches:
            return np.zeros(len(lids) + 1, np.uint32), np.zeros(0, np.uint32)
        return self._merge(lambda match: match.elements(lids))

    def _merge(self, occurrences_of: Callable[[FieldMatch], Occurrences]) -> Occurrences:
        """Merges the occurrences of all matches, a few of them at a time."""
        merged: list[Occurrences] = []
        for start in range(0, len(self.matches), MERGED_TOGETHER):
            found = [*merged, *map(occurrences_of, self.matches[start : start + MERGED_TOGETHER])]
            merged = [_core.merge_positions([offsets for offsets, _ in found], [values for _, values in found])]
        return merged[0]

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        """Return the weights of the first match in each document."""
        weights = np.zeros(len(lids), np.int64)
        open_ = np.ones(len(lids), np.bool_)
        for match in self.matches:
            has = match.occurrences(lids) > 0
            weights[open_ & has] = match.match_weights(lids)[open_ & has]
            open_ &= ~has
        return weights

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        offsets, elements = self.elements(lids)
        weights = np.ones(len(elements), np.int32)
        keys = element_keys(offsets, elements)
        for match in self.matches:
            weights[np.searchsorted(keys, element_keys(*match.elements(lids)))] = match.element_weights(lids)
        return weights


class TokensMatch(UnionMatch):
    """Words of a list, as one. For ranking their document frequencies add up.

    Vespa: weighted_set_term_blueprint.cpp (`addTerm`).
    """

    def document_frequencies(self) -> tuple[int, ...]:
        return (sum(super().document_frequencies()),)


def element_keys(offsets: NDArray[np.uint32], elements: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Row and element as one number, rising."""
    rows = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint64), np.diff(offsets))
    return rows << np.uint64(32) | elements


class SequenceMatch(FoundMatch):
    """Matches of one place each next to each other, in order; an occurrence stands where its first part does."""

    def __init__(self, space: SearchSpace, field: str, parts: Sequence[FieldMatch]) -> None:
        super().__init__(space, field)
        self.parts = tuple(parts)

    @cached_property
    def found(self) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
        lids = documents_with_all(self.parts, self._space.accept)
        counts, positions = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
        lengths = self._space.index.field_lengths(self.number, lids)
        for block in blocks_of(lids, lengths, len(self.parts)):
            places = [part.positions(block) for part in self.parts]
            offsets, found = _core.follow([offsets for offsets, _ in places], [values for _, values in places])
            counts.append(np.diff(offsets))
            positions.append(found)
        count = np.concatenate(counts)
        there = count > 0
        ends = np.concatenate([[0], np.cumsum(count[there])]).astype(np.uint32)
        return lids[there], ends, np.concatenate(positions)

    def document_frequencies(self) -> tuple[int, ...]:
        """Return the document frequency of the rarest part."""
        return (min(max(part.document_frequencies()) for part in self.parts),)

    def estimate(self) -> int:
        return min(part.estimate() for part in self.parts)


def unwrapped(match: FieldMatch) -> FieldMatch:
    """Return the match inside a `WithoutPositions`, whose postings it has; any other match as it is."""
    return match.match if type(match) is WithoutPositions else match  # quicker than asking an abstract class


class WithoutPositions(FieldMatch):
    """A match of which ranking sees that it is there, and not where or how often."""

    def __init__(self, match: FieldMatch) -> None:
        self.field = match.field
        self.match = match

    @property
    def only_filters(self) -> bool:
        return True

    def add_to(self, bitmap: Bitmap) -> None:
        self.match.add_to(bitmap)

    def frequency(self) -> int:
        return self.match.frequency()

    def document_frequencies(self) -> tuple[int, ...]:
        return self.match.document_frequencies()

    def estimate(self) -> int:
        return self.match.estimate()

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return np.minimum(self.match.occurrences(lids), 1)

    def elements(self, lids: Lids) -> Occurrences:
        return self.match.elements(lids)

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        return self.match.element_weights(lids)


# Terms that ranking sees only where the operator matches that they are below.
#
# In `a or (b and c)` a document with `a` and `b` alone is not matched by the `and`: its `b` counts for nothing.


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
        """Return the frequency of the term by itself: the rarity of a word does not depend on the query."""
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
        """The lids of live documents, ascending."""
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
