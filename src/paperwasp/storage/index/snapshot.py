"""The snapshot of the index that a query sees: immutable, made at each publication, opened when first needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.storage.index.segments import Bitmap, FieldKey, Fields, Segment

EXACT_COUNT_FREQUENCY = 4096
"""The live documents of a term are counted up to this many documents."""
EXACT_COUNT_DEAD = 65_536
"""Dead documents that have a term are counted where there are at most this many dead ones, else estimated."""
_POSTINGS_OF_LID: Final = 10
"""Postings that are read in the time that it takes to look up one document among them."""

LIVE_BITMAPS: Final = 16
"""Bitmaps of live documents whose statistics are kept."""


class Places(NamedTuple):
    """The elements that positions of one document are in. A field of single values has one, of weight 1."""

    elements: NDArray[np.uint32]
    """Numbers, from 0."""
    starts: NDArray[np.uint32]
    """The position of the element's first token."""
    ends: NDArray[np.uint32]
    """The position after its last one."""
    weights: NDArray[np.int32]


class _LiveStatistics:
    """Counts among the live documents of one bitmap, kept. Threads may add the same entry twice."""

    def __init__(self, live: Bitmap) -> None:
        self.live = live
        self.frequencies: dict[tuple[int, int], int] = {}
        """By field number and term."""
        self.lengths: dict[int, tuple[float, float]] = {}
        """By field number."""
        self.dead_lids: NDArray[np.uint32] | None = None


class _KeptStatistics:
    """The statistics of the bitmaps that queries of one snapshot give: one of each document type, as a rule."""

    def __init__(self) -> None:
        self.of_all = _LiveStatistics(np.zeros(0, np.uint64))
        """Where no document is dead."""
        self._by_bitmap: tuple[_LiveStatistics, ...] = ()
        self._last: tuple[Bitmap, _LiveStatistics] = self.of_all.live, self.of_all

    def of(self, live: Bitmap) -> _LiveStatistics:
        """Return the statistics of a bitmap. All terms of a query give the same array: it is compared once."""
        array, found = self._last
        if array is live:
            return found
        equal = next((each for each in self._by_bitmap if np.array_equal(each.live, live)), None)
        found = equal or _LiveStatistics(live.copy())
        if equal is None:
            self._by_bitmap = (found, *self._by_bitmap[: LIVE_BITMAPS - 1])
        self._last = live, found
        return found


class IndexSnapshot(Struct, frozen=True, eq=False, dict=True):
    """All postings below a lid. Numbers of fields and terms are those of the index and its lexicon."""

    segments: tuple[Segment, ...]
    fields: Fields
    lexicon: _core.Lexicon
    numbers: int
    """All numbers of fields are below; there may be some of fields that are not indexed any more."""

    @cached_property
    def reader(self) -> _core.Reader:
        """The segments as the kernels read them."""
        segments = [
            (segment.base, segment.documents, list(segment.field_indexes), segment.frequent)
            for segment in self.segments
        ]
        return _core.Reader(segments, self.numbers)

    def has(self, key: FieldKey) -> bool:
        """Tell whether the field is indexed."""
        return key in self.fields

    def number_of(self, key: FieldKey) -> int:
        return self.fields[key][0]

    def term_id(self, term: str) -> int:
        """The lexicon's id of a term, or -1: then no document has it."""
        return self.lexicon.find(term)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words of the lexicon, by id. For the small index of streaming search: this copies them."""
        content, sizes = self.lexicon.words_from(0)
        places = pairwise([0, *np.cumsum(sizes).tolist()])
        return tuple(content[start:end].decode() for start, end in places)

    def document_frequency(self, number: int, term: int) -> int:
        """Documents with the term, dead ones that were not merged away yet among them."""
        return _core.document_frequency(self.reader, number, term)

    def live_frequency(self, number: int, term: int, live: Bitmap, dead: bool) -> int:
        """Live documents with the term. `dead`: whether the index may hold any that are not live.

        Exact up to EXACT_COUNT_FREQUENCY documents, or EXACT_COUNT_DEAD dead ones; beyond, dead documents are taken to
        be as many as elsewhere. Vespa counts what is replaced until its disk indexes are fused.
        """
        known = self._among(live, dead).frequencies
        frequency = known.get((number, term))
        if frequency is None:
            frequency = self._live_frequency(number, term, live, dead)
            if len(known) < limits.TERM_FREQUENCIES:
                known[number, term] = frequency
        return frequency

    def _live_frequency(self, number: int, term: int, live: Bitmap, dead: bool) -> int:
        frequency = self.document_frequency(number, term)
        if not dead or frequency == 0:
            return frequency
        if frequency <= EXACT_COUNT_FREQUENCY:
            return _core.count_accepted(self.reader, number, term, live)
        gone = self._dead_lids(live)
        if len(gone) <= EXACT_COUNT_DEAD:
            if frequency <= _POSTINGS_OF_LID * len(gone):
                return _core.count_accepted(self.reader, number, term, live)
            return frequency - int(np.count_nonzero(self.occurrences(number, term, gone)))
        indexed = max(1, self.statistics(number)[0])
        return min(frequency, max(1, frequency * _core.bitmap_count(live, live) // indexed)) if indexed else frequency

    def statistics(self, number: int) -> tuple[int, float]:
        """(documents with the field, mean length in tokens) over what is indexed."""
        if number not in self._statistics:
            documents, tokens = _core.field_statistics(self.reader, number)
            self._statistics[number] = (documents, tokens / documents if documents else 0.0)
        return self._statistics[number]

    @cached_property
    def _statistics(self) -> dict[int, tuple[int, float]]:
        return {}

    def live_lengths(self, number: int, live: Bitmap, dead: bool) -> tuple[float, float]:
        """The mean length, in tokens, of a field and of its elements, over live documents that have the field.

        A single value is one element. `dead`: whether the index may hold documents that are not live. Vespa averages
        over what was fed, replaced versions among it, where newer documents count more in an index in memory.
        """
        known = self._among(live, dead).lengths
        if number not in known:
            known[number] = self._live_lengths(number, live, dead)
        return known[number]

    def _live_lengths(self, number: int, live: Bitmap, dead: bool) -> tuple[float, float]:
        documents, tokens = _core.field_statistics(self.reader, number)
        elements = _core.element_count(self.reader, number)
        if dead and documents:
            gone = _core.unaccepted_statistics(self.reader, number, live)
            documents, tokens, elements = documents - gone[0], max(0, tokens - gone[1]), elements - gone[2]
        return tokens / max(1, documents), tokens / max(1, elements)

    def _dead_lids(self, live: Bitmap) -> NDArray[np.uint32]:
        """The lids below the reader's limit that are not live."""
        among = self._among(live, True)
        if among.dead_lids is None:
            limit = self.reader.limit
            among.dead_lids = _core.bitmap_lids(~live[: (limit + 63) // 64], limit)
        return among.dead_lids

    def _among(self, live: Bitmap, dead: bool) -> _LiveStatistics:
        return self._kept.of(live) if dead else self._kept.of_all

    @cached_property
    def _kept(self) -> _KeptStatistics:
        return _KeptStatistics()

    def occurrences(self, number: int, term: int, lids: NDArray[np.uint32]) -> NDArray[np.int32]:
        result = np.empty(len(lids), np.int32)
        _core.occurrences(self.reader, number, term, lids, result)
        return result

    def positions(
        self, number: int, term: int, lids: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """(offsets[lids + 1], positions)."""
        return _core.positions(self.reader, number, term, lids)

    def locate(
        self, number: int, lids: NDArray[np.uint32], offsets: NDArray[np.uint32], positions: NDArray[np.uint32]
    ) -> Places:
        """In which elements positions stand: lid i has positions[offsets[i]:offsets[i + 1]], rising."""
        return Places(*_core.locate(self.reader, number, lids, offsets, positions))

    def phrase(
        self, number: int, terms: Sequence[int], accept: Bitmap | None
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        """Documents with the terms next to each other: (lids, offsets[lids + 1], positions of the first term)."""
        return _core.phrase(self.reader, number, np.array(terms, np.uint32), accept)

    def field_lengths(self, number: int, lids: NDArray[np.uint32]) -> NDArray[np.int32]:
        result = np.empty(len(lids), np.int32)
        _core.field_lengths(self.reader, number, lids, result)
        return result
