"""Arrays and weighted sets by lid: rows of elements (`attributes.rows`). An empty array is the same as unset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.operations import Value
from paperwasp.document.types import BOOL, NumericType
from paperwasp.storage.attributes.bounds import bounds_of
from paperwasp.storage.attributes.column import (
    NO_WEIGHTS,
    Arrays,
    Bitmap,
    ColumnView,
    ElementNumbers,
    Elements,
    Frozen,
    Lids,
    Number,
    are_many_spare,
    empty_bitmap,
    products_of,
    spare_of,
)
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.numeric import dtype_of, number_tokens, numbers_wanted
from paperwasp.storage.attributes.patterns import TextPattern, no_clock
from paperwasp.storage.attributes.posting import PostingSource, RowPosting
from paperwasp.storage.attributes.rows import LONGEST_ROW, RowColumn, Rows, RowStore, places_of, rows_of, split, spread
from paperwasp.storage.attributes.string import checked_codes, string_tokens, strings_like, strings_wanted, used_codes
from paperwasp.storage.attributes.wanted import NOTHING, InRange, Tokens, Wanted

_SAMPLE_ROWS: Final = 1024
_FEW_ELEMENTS: Final = 16
"""Where fewer than 1 in _FEW_ELEMENTS elements are needed, these are copied, and the others are not read."""


class ArrayView(ColumnView):
    """`rows` as in `attributes.rows`; `values` are elements, or codes of the dictionary, some perhaps of no row.

    `element_type` None: strings. In a weighted set, `key_weights[i]` is the weight of element i.
    """

    __slots__ = ("_posting", "_type", "dictionary", "key_weights", "limit", "rows", "values")

    is_array = True

    def __init__(
        self,
        element_type: NumericType | None,
        rows: Rows,
        values: NDArray[Any],
        dictionary: StringDictionary | None,
        key_weights: NDArray[np.int32] = NO_WEIGHTS,
        posting: RowPosting | None = None,
    ) -> None:
        self._type = element_type
        self._posting = posting
        self.rows = rows
        self.values = values
        self.dictionary = dictionary
        self.key_weights = key_weights
        self.limit = len(rows)

    @property
    def element_type(self) -> NumericType | None:
        return self._type

    @property
    def is_string(self) -> bool:  # type: ignore[override]
        return self.dictionary is not None

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        if self._type is None:
            return NOTHING
        bounds = bounds_of(self._type, low, high, low_inclusive, high_inclusive, skip_unset=False)
        return NOTHING if bounds is None else InRange(bounds)

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        if self.dictionary is not None:
            return strings_wanted(self.dictionary, values)
        assert self._type is not None
        return numbers_wanted(values, self._type, self.values.dtype, skip_unset=False)

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        return NOTHING if self.dictionary is None else strings_like(self.dictionary, pattern, check_time)

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        limit = self.limit if limit is None else limit
        bitmap = empty_bitmap(limit)
        if wanted is NOTHING:
            return bitmap
        rows = self.rows[:limit]
        if self._posting is not None and (found := self._posting.bitmap(self.values, rows, wanted)) is not None:
            return found
        wanted.fill_rows(self.values, rows, bitmap)
        return bitmap

    def estimate(self, wanted: Wanted) -> int:
        """From the posting lists, if there are any, else from the rows of a sample."""
        if self.limit == 0 or wanted is NOTHING:
            return 0
        posting = self._posting
        if posting is not None and (count := posting.estimate(self.values, self.rows, wanted)) is not None:
            return count
        step = max(1, self.limit // _SAMPLE_ROWS)
        rows = np.ascontiguousarray(self.rows[::step])
        bitmap = empty_bitmap(len(rows))
        wanted.fill_rows(self.values, rows, bitmap)
        return min(self.limit, sum(int(word).bit_count() for word in bitmap) * step)

    def prepare(self) -> bool:
        return self._posting is not None and self._posting.prepare(self.values, self.rows)

    def elements(self, lids: Lids, wanted: Wanted) -> Elements:
        offsets, numbers = self.element_numbers(lids, wanted)
        starts, _ = split(self.rows[lids])
        counts = np.diff(offsets).astype(np.int64)
        places = np.repeat(starts, counts) + numbers
        weights = np.ones(len(places), np.int32) if self.key_weights is NO_WEIGHTS else self.key_weights[places]
        return Elements(counts, numbers.astype(np.int64), weights, self.values[places])

    def element_numbers(self, lids: Lids, wanted: Wanted) -> ElementNumbers:
        rows, values = self.rows[lids], self.values
        if wanted is NOTHING:
            return np.zeros(len(lids) + 1, np.uint32), np.zeros(0, np.uint32)
        starts, lengths = split(rows)
        if int(lengths.sum()) * _FEW_ELEMENTS < len(values):
            values, rows = values[spread(starts, lengths)], rows_of(np.uint64(0), lengths.astype(np.uint64))
        bitmap = empty_bitmap(len(values))
        wanted.fill(values, bitmap)
        return _core.row_elements(rows, bitmap, len(values))

    def tokens(self, tokens: Sequence[tuple[Value, int]]) -> Tokens:
        if self.dictionary is not None:
            return string_tokens(self.dictionary, tokens)
        assert self._type is not None
        return number_tokens(tokens, self._type, self.values.dtype, skip_unset=False)

    def products(self, lids: Lids, tokens: Tokens) -> NDArray[np.float64]:
        return products_of(self.values, self.rows, self.key_weights, lids, tokens)

    def values_at(self, lids: Lids, wanted: Wanted) -> NDArray[Any]:
        places, lengths = places_of(self.rows[lids])
        values, owners = self.values[places], np.repeat(np.arange(len(lids)), lengths)
        found = wanted.among(values)
        order = np.lexsort((values[found], owners[found]))
        values, owners = values[found][order], owners[found][order]
        is_first = np.ones(len(values), np.bool_)
        is_first[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
        first: NDArray[Any] = values[is_first]
        return first

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return (self.rows[lids] & np.uint64(LONGEST_ROW)).astype(np.float64)

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        numbers = np.zeros(len(lids))
        if self.dictionary is None and element >= 0:
            starts, lengths = split(self.rows[lids])
            has = lengths > element
            numbers[has] = self.values[starts[has] + element]
        return numbers

    def gather(self, lids: Lids) -> list[Value | None]:
        starts, lengths = split(self.rows[lids])
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return [self._value(start, start + length) if length else None for start, length in spans]

    def _value(self, start: int, end: int) -> Value:
        """The value that the elements start..end - 1 are."""
        return self._decode(self.values[start:end])

    def _decode(self, elements: NDArray[Any]) -> list[Value]:
        if self.dictionary is not None:
            return list(self.dictionary.decode(elements.tolist()))
        return list((elements > 0).tolist() if self._type == BOOL else elements.tolist())


class ArrayColumn(RowColumn):
    """The writer's side of arrays. `element_type` None: strings."""

    def __init__(self, element_type: NumericType | None, *, cased: bool = False, fast_search: bool = False) -> None:
        self._type = element_type
        self._posting = PostingSource() if fast_search else None
        self._dictionary = StringDictionary(cased=cased) if element_type is None else None
        self._dtype = dtype_of(element_type) if element_type else np.dtype("uint32")
        super().__init__(RowStore(GrowableArray(self._dtype)))

    def snapshot(self) -> ArrayView:
        rows, (values,) = self._store.snapshot()
        return ArrayView(self._type, rows, values, self._dictionary, posting=self._posting_of_rows())

    def set(self, lid: int, value: Value | None) -> None:
        super().set(lid, value)
        if self._posting is not None:
            self._posting.note_change(lid)

    def settle(self, dead: Lids) -> int:
        """Goes on without the elements, and the strings, that no row has any more, where these are many."""
        if len(dead):
            self._store.bury(dead)
        if self._dictionary is None:
            if self._store.is_sparse:
                self._store.compact()
            return 0
        if not are_many_spare(len(self._dictionary), self._store.elements):
            return 0
        before = self._dictionary
        self._dictionary = kept = before.of_codes(self._store.compact_codes())
        if self._posting is not None:
            self._posting = PostingSource()  # the old one has the codes from before
        return before.json_bytes - kept.json_bytes

    def freeze(self) -> Frozen:
        rows = self._store.freeze()
        strings = None if self._dictionary is None else self._dictionary.strings()

        def arrays() -> Arrays:
            lengths, values, *others = rows()
            named = dict(zip(self._OTHERS, others, strict=True))
            if strings is None:
                return {"lengths": lengths, "values": values, **named}
            codes, frozen = used_codes(values, strings)
            return {"lengths": lengths, "values": codes, **named, **frozen}

        return arrays

    _OTHERS: tuple[str, ...] = ()
    """The names under which further parts of the elements are saved."""

    def load(self, arrays: Arrays) -> None:
        if self._dictionary is not None:
            self._dictionary.load(arrays)
            checked_codes(arrays["values"], self._dictionary)
        self._store.load(arrays["lengths"], arrays["values"], *(arrays[name] for name in self._OTHERS))

    def size_bytes(self) -> int:
        strings = 0 if self._dictionary is None else self._dictionary.size_bytes
        return self._store.size_bytes() + strings

    def spare_strings(self) -> int:
        return 0 if self._dictionary is None else spare_of(len(self._dictionary), self._store.elements)

    def _posting_of_rows(self) -> RowPosting | None:
        return None if self._posting is None else self._posting.snapshot_of_rows()

    def _encode(self, values: Sequence[Value | None]) -> tuple[NDArray[Any], ...]:
        """The lengths of the values and all their elements, in as many parts as the rows have."""
        lists: list[Sequence[Value]] = [value or () for value in values]
        return lengths_of(lists), self._elements(list(chain.from_iterable(lists)))

    def _elements(self, elements: list[Value]) -> NDArray[Any]:
        return np.array(elements, self._dtype) if self._dictionary is None else self._dictionary.encode(elements)


def lengths_of(values: Sequence[Sequence[Value] | dict[Value, int]]) -> NDArray[np.uint64]:
    """Count the elements of each value."""
    return np.fromiter(map(len, values), np.uint64, len(values))


# Weighted sets


class WeightedSetView(ArrayView):
    """Keys as an array's elements, with their weights."""

    __slots__ = ()

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def weights(self, lids: Lids, key: Value) -> NDArray[np.float64]:
        places, lengths = places_of(self.rows[lids])
        wanted = self.dictionary.find(key) if self.dictionary is not None else key
        weights = np.full(len(lids), np.nan)
        if wanted is None:
            return weights
        found = np.flatnonzero(self.values[places] == wanted)
        weights[np.repeat(np.arange(len(lids)), lengths)[found]] = self.key_weights[places[found]]
        return weights

    def _value(self, start: int, end: int) -> dict[Value, int]:
        return dict(zip(self._decode(self.values[start:end]), self.key_weights[start:end].tolist(), strict=True))


class WeightedSetColumn(ArrayColumn):
    """The writer's side of weighted sets. `key_type` None: strings."""

    _OTHERS = ("weights",)

    def __init__(self, key_type: NumericType | None, *, cased: bool = False, fast_search: bool = False) -> None:
        super().__init__(key_type, cased=cased, fast_search=fast_search)
        self._store = RowStore(GrowableArray(self._dtype), GrowableArray(np.int32))

    def snapshot(self) -> WeightedSetView:
        rows, (keys, weights) = self._store.snapshot()
        return WeightedSetView(self._type, rows, keys, self._dictionary, weights, self._posting_of_rows())

    def _encode(self, values: Sequence[Value | None]) -> tuple[NDArray[Any], ...]:
        sets: list[dict[Value, int]] = [value or {} for value in values]
        weights = np.array(list(chain.from_iterable(each.values() for each in sets)), np.int32)
        return lengths_of(sets), self._elements(list(chain.from_iterable(sets))), weights


# Parts of arrays of structs and of maps as documents are grouped by that are read for one query: it is known which
# elements have the part at all.


class PartView(ArrayView):
    """An array whose element i is a value where `is_set[i]`; an integer that is not set is 0."""

    __slots__ = ("is_set",)

    def __init__(self, view: ArrayView, is_set: NDArray[np.bool_]) -> None:
        values = view.values[: len(is_set)]
        if values.dtype.kind == "i" and view.element_type is not None:
            values = np.where(is_set, values, 0).astype(values.dtype)
        super().__init__(view.element_type, view.rows, values, view.dictionary)
        self.is_set = is_set
