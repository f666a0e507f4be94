"""Terms: what one leaf of the query matches in each of the fields that it searches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.types import BOOL
from paperwasp.schema.model import Field
from paperwasp.search.operators.field_match import POSTING_NS, Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.bounds import NumberTerm, number_term
from paperwasp.storage.attributes.wanted import Wanted

LEAST_ROWS: Final = 400_000
"""A column of fewer rows is read as a whole: that takes as long as asking for some."""
POSITION_NS: Final = 20
"""The cost of one document of a phrase's rarest word."""
ROWS_OF_LID: Final = 256
"""How many rows of a column are read in sequence in the time that picking one takes."""


def counts_of(found: Occurrences) -> NDArray[np.int32]:
    """How many there are in each document."""
    ends: NDArray[np.int32] = found[0].astype(np.int32)
    return ends[1:] - ends[:-1]


def first_weights(offsets: NDArray[np.uint32], weights: NDArray[np.int32]) -> NDArray[np.int64]:
    """The first of the weights of each document; 0 where there is none."""
    found = np.zeros(len(offsets) - 1, np.int64)
    has = offsets[1:] > offsets[:-1]
    found[has] = weights[offsets[:-1][has]]
    return found


class PositionalMatch(FieldMatch):
    """A match in an indexed field: it stands somewhere."""

    def __init__(self, space: SearchSpace, field: str) -> None:
        self.field = field
        self.number = space.index.number_of((space.schema.document.name, field))
        self._space = space

    @property
    def is_positional(self) -> bool:
        return True

    @abstractmethod
    def positions(self, lids: Lids) -> Occurrences: ...

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return counts_of(self.positions(lids))

    def elements(self, lids: Lids) -> Occurrences:
        offsets, elements, _ = self._elements(lids)
        return offsets, elements

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        return self._elements(lids)[2]

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        offsets, _, weights = self._elements(lids)
        return first_weights(offsets, weights)

    def _elements(self, lids: Lids) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.int32]]:
        """(offsets[lids + 1], numbers, weights), each element of a document once."""
        offsets, positions = self.positions(lids)
        places = self._space.index.locate(self.number, lids, offsets, positions)
        first = np.ones(len(positions), np.bool_)
        first[1:] = places.elements[1:] != places.elements[:-1]
        first[offsets[:-1][np.diff(offsets) > 0]] = True
        before = np.concatenate([[0], np.cumsum(first)]).astype(np.uint32)
        return before[offsets], places.elements[first], places.weights[first]


class IndexMatch(PositionalMatch):
    """One term in an indexed field."""

    def __init__(self, space: SearchSpace, field: str, term: int) -> None:
        super().__init__(space, field)
        self.term = term
        self._frequency = -1

    def add_to(self, bitmap: Bitmap) -> None:
        _core.match(self._space.index.reader, self.number, self.term, bitmap)

    def frequency(self) -> int:
        if self._frequency < 0:  # not a cached_property, whose lock takes as long as asking
            space = self._space
            self._frequency = space.index.live_frequency(self.number, self.term, space.accept, space.dead)
        return self._frequency

    def cost(self, limit: int) -> tuple[float, int]:
        count = self._frequency if self._frequency >= 0 else self.frequency()
        return count * POSTING_NS, count

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return self._space.index.occurrences(self.number, self.term, lids)

    def positions(self, lids: Lids) -> Occurrences:
        return self._space.index.positions(self.number, self.term, lids)


class FoundMatch(PositionalMatch):
    """A match whose documents have all to be looked at to know which they are."""

    @property
    @abstractmethod
    def found(self) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
        """(live lids, offsets[lids + 1], positions)."""

    def add_to(self, bitmap: Bitmap) -> None:
        lids = self.found[0]
        np.bitwise_or.at(bitmap, lids >> 6, np.uint64(1) << (lids & 63).astype(np.uint64))

    def frequency(self) -> int:
        return len(self.found[0])

    def _places(self, lids: Lids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """For each lid its place among those found, and whether it is there."""
        found = self.found[0]
        places = np.searchsorted(found, lids)
        there = places < len(found)
        there[there] = found[places[there]] == lids[there]
        return places, there

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        places, there = self._places(lids)
        result = np.zeros(len(lids), np.int32)
        result[there] = np.diff(self.found[1])[places[there]]
        return result

    def positions(self, lids: Lids) -> Occurrences:
        places, there = self._places(lids)
        _, offsets, positions = self.found
        counts = self.occurrences(lids).astype(np.int64)
        ends = np.cumsum(counts)
        starts = np.zeros(len(lids), np.int64)
        starts[there] = offsets[places[there]]
        picked = np.repeat(starts - (ends - counts), counts) + np.arange(int(counts.sum()))
        return np.concatenate([[0], ends]).astype(np.uint32), positions[picked]


class PhraseMatch(FoundMatch):
    """Terms next to each other in an indexed field; an occurrence stands where its first term does."""

    def __init__(self, space: SearchSpace, field: str, terms: Sequence[int]) -> None:
        super().__init__(space, field)
        self.terms = tuple(terms)

    @cached_property
    def found(self) -> tuple[Lids, NDArray[np.uint32], NDArray[np.uint32]]:
        return self._space.index.phrase(self.number, self.terms, self._space.accept)

    def document_frequencies(self) -> tuple[int, ...]:
        """That of the rarest word."""
        space = self._space
        return (
            min(space.index.live_frequency(self.number, term, space.accept, space.dead) for term in set(self.terms)),
        )

    def cost(self, limit: int) -> tuple[float, int]:
        (frequency,) = self.document_frequencies()
        return frequency * POSITION_NS, frequency


class AttributeMatch(FieldMatch):
    """Values of an attribute."""

    def __init__(self, space: SearchSpace, field: str, column: ColumnView, wanted: Wanted) -> None:
        self.field = field
        self.column = column
        self.wanted = wanted
        self._space = space

    @cached_property
    def _bitmap(self) -> Bitmap:
        """The bitmap of the whole column, kept, since it is used again."""
        return self.column.bitmap(self.wanted, self._space.limit)

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def add_within(self, bitmap: Bitmap, within: Bitmap) -> None:
        """Reads the rows of `within` alone where these are few, and no index of the values knows the answer."""
        limit = self._space.limit
        is_known = "_bitmap" in self.__dict__ or self._has_counts
        if is_known or limit < LEAST_ROWS or _core.bitmap_count(within, within) * ROWS_OF_LID > limit:
            self.add_to(bitmap)
            return
        lids = _core.bitmap_lids(within, limit)
        offsets, _ = self.column.element_numbers(lids, self.wanted)
        found = lids[offsets[1:] > offsets[:-1]]
        np.bitwise_or.at(bitmap, found >> 6, np.uint64(1) << (found & 63).astype(np.uint64))

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def document_frequencies(self) -> tuple[int, ...]:
        """Without fast-search there are no counts, so that a value may be in all documents."""
        if self._has_counts or (self.column.is_string and self.frequency() == 0):
            return (self.frequency(),)
        return (self._space.documents,)

    @property
    def _has_counts(self) -> bool:
        field = self._space.schema.field_named(self.field)
        settings = None if field is None else field.attribute
        return field is None or field.type == BOOL or (settings is not None and settings.fast_search)

    def estimate(self) -> int:
        return min(self._space.documents, self.column.estimate(self.wanted))

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return bits_of(self._bitmap, lids).astype(np.int32)

    def elements(self, lids: Lids) -> Occurrences:
        return self.column.element_numbers(lids, self.wanted)

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        return self.column.elements(lids, self.wanted).weights

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        if not self.column.is_array:
            return super().match_weights(lids)
        found = self.column.elements(lids, self.wanted)
        total = np.concatenate([[0], np.cumsum(found.weights, dtype=np.int64)])
        ends = np.cumsum(found.counts)
        sums: NDArray[np.int64] = total[ends] - total[ends - found.counts]
        return sums


def bits_of(bitmap: Bitmap, lids: Lids) -> NDArray[np.bool_]:
    """Whether a bitmap has each of some lids."""
    return _core.bitmap_has(bitmap, lids).view(np.bool_)


# Terms on attributes: a word and a range as values of a column.
#
# Vespa: https://docs.vespa.ai/en/content/attributes.html and https://docs.vespa.ai/en/reference/querying/yql.html#range


def word_match(space: SearchSpace, field: Field, column: ColumnView, word: str) -> AttributeMatch:
    """A word: a string, or in a column of numbers what it says there, a number or a range."""
    term = None if column.is_string else number_term(word)
    if term is None:
        return AttributeMatch(space, field.name, column, column.any_of(word))
    if term == NumberTerm(term.low, term.low) and term.low is not None:
        return AttributeMatch(space, field.name, column, column.any_of(term.low))
    return range_match(space, field, column, term)


def range_match(space: SearchSpace, field: Field, column: ColumnView, term: NumberTerm) -> AttributeMatch:
    """A range. Where the field has fast-search, a hit limit leaves only the values nearest to one end of it; where it
    has not, it has no effect, as in Vespa."""
    wanted = column.in_range(*term[:4])
    if term.hit_limit and field.attribute is not None and field.attribute.fast_search:
        wanted = _limit_hits(space, column, wanted, term)
    return AttributeMatch(space, field.name, column, wanted)


def _limit_hits(space: SearchSpace, column: ColumnView, wanted: Wanted, term: NumberTerm) -> Wanted:
    """Narrows a range to the lowest values (a limit below 0: highest) of that number of documents, no value halved."""
    lids = _core.bitmap_lids(column.bitmap(wanted, space.limit) & space.accept, space.limit)
    values = column.values_at(lids, wanted)
    count = abs(term.hit_limit)
    if len(values) <= count:
        return wanted
    place = count - 1 if term.hit_limit > 0 else len(values) - count
    last = np.partition(values, place)[place].item()
    if term.hit_limit > 0:
        return column.in_range(term.low, last, term.low_inclusive, True)
    return column.in_range(last, term.high, True, term.high_inclusive)
