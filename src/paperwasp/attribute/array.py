"""Arrays of numbers or strings by lid: all elements in one array, and for each row where its own stand.

`rows[lid]` is `offset << 24 | length`. Elements are only appended: a row that is changed gets new ones at the end and
its old ones stay for whoever reads them, until most are unused and the column goes on in new arrays. When the
elements move to a larger array the rows move too, so that a reader's rows never point beyond the elements that it
holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.bounds import bounds_of, number_of
from paperwasp.attribute.column import Arrays, Bitmap, Column, ColumnView, Frozen, Lids, Number, as_list, empty_bitmap
from paperwasp.attribute.dictionary import StringDictionary
from paperwasp.attribute.growable import GrowableArray
from paperwasp.attribute.numeric import estimate_rows
from paperwasp.attribute.string import checked_codes, codes_equal_to, table_of, used_codes
from paperwasp.core import _core
from paperwasp.core.attribute import ROW_LENGTH_BITS
from paperwasp.document.operations import Value
from paperwasp.document.types import BOOL, NumericType
from paperwasp.errors import InvalidInput, InvalidQuery

LONGEST_ROW: Final = (1 << ROW_LENGTH_BITS) - 1
_SAMPLE_ROWS: Final = 1024
_LEAST_UNUSED: Final = 65_536
"""Unused elements that are never worth removing."""


class ArrayView(ColumnView):
    """`rows` and `values` as the file's header says; `values` may hold elements of no row."""

    __slots__ = ("_type", "dictionary", "limit", "rows", "values")

    is_array = True

    def __init__(
        self,
        element_type: NumericType | None,
        rows: NDArray[np.uint64],
        values: NDArray[Any],
        dictionary: StringDictionary | None,
    ) -> None:
        self._type = element_type
        self.rows = rows
        self.values = values
        self.dictionary = dictionary
        self.limit = len(rows)

    @property
    def is_string(self) -> bool:  # type: ignore[override]
        return self.dictionary is not None

    def range_bitmap(
        self,
        low: Number | None,
        high: Number | None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        limit: int | None = None,
    ) -> Bitmap:
        limit = self.limit if limit is None else limit
        bitmap = empty_bitmap(limit)
        if self._type is None:
            return bitmap
        bounds = bounds_of(self._type, low, high, low_inclusive, high_inclusive, skip_unset=False)
        if bounds is not None:
            _core.array_range_bitmap(self.values, self.rows[:limit], bounds.low, bounds.high, bitmap)
        return bitmap

    def equal_bitmap(self, values: Value | Sequence[Value], limit: int | None = None) -> Bitmap:
        limit = self.limit if limit is None else limit
        bitmap = empty_bitmap(limit)
        if self.dictionary is not None:
            if codes := codes_equal_to(self.dictionary, values):
                _core.array_member_bitmap(self.values, self.rows[:limit], table_of(codes), bitmap)
            return bitmap
        for number in self._numbers(values):
            bitmap |= self.range_bitmap(number, number, limit=limit)
        return bitmap

    def estimate_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> int:
        bounds = self._type and bounds_of(self._type, low, high, low_inclusive, high_inclusive, skip_unset=False)
        return estimate_rows(self.values, self.limit, bounds) if bounds else 0

    def estimate_equal(self, values: Value | Sequence[Value]) -> int:
        """From the rows of a sample."""
        if self.limit == 0:
            return 0
        step = max(1, self.limit // _SAMPLE_ROWS)
        sample = ArrayView(self._type, np.ascontiguousarray(self.rows[::step]), self.values, self.dictionary)
        found = sum(int(word).bit_count() for word in sample.equal_bitmap(values))
        return min(self.limit, found * step)

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return (self.rows[lids] & np.uint64(LONGEST_ROW)).astype(np.float64)

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        numbers = np.zeros(len(lids))
        if self.dictionary is None and element >= 0:
            starts, lengths = _split(self.rows[lids])
            has = lengths > element
            numbers[has] = self.values[starts[has] + element]
        return numbers

    def sort_keys(self, lids: Lids) -> NDArray[Any]:
        raise InvalidQuery("Cannot sort by an array: it has no single value")

    def gather(self, lids: Lids) -> list[Value | None]:
        starts, lengths = _split(self.rows[lids])
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return [self._decode(self.values[start : start + length]) if length else None for start, length in spans]

    def _decode(self, elements: NDArray[Any]) -> list[Value]:
        if self.dictionary is not None:
            return list(self.dictionary.decode(elements.tolist()))
        return list((elements > 0).tolist() if self._type == BOOL else elements.tolist())

    def _numbers(self, values: Value | Sequence[Value]) -> list[Number]:
        numbers = (number_of(value) if isinstance(value, str) else value for value in as_list(values))
        return [number for number in numbers if number is not None]


class ArrayColumn(Column):
    """The writer's side of arrays. An empty array is the same as unset. `element_type` None: strings."""

    def __init__(self, element_type: NumericType | None, *, cased: bool = False) -> None:
        self._type = element_type
        self._dictionary = StringDictionary(cased=cased) if element_type is None else None
        self._rows = GrowableArray(np.uint64)
        self._values = GrowableArray(np.dtype(element_type.dtype if element_type else "uint32"))
        self._unused = 0
        """Elements that belonged to rows which were changed since."""

    @property
    def length(self) -> int:
        return self._rows.length

    def append(self, values: Sequence[Value | None]) -> None:
        self._rows.extend(self._added(values))

    def _added(self, values: Sequence[Value | None]) -> NDArray[np.uint64]:
        """Appends the elements of these values; gives their rows."""
        lists: list[list[Value]] = [value or [] for value in values]
        lengths = np.array([len(value) for value in lists], np.uint64)
        if len(lengths) and int(lengths.max()) > LONGEST_ROW:
            raise InvalidInput(f"an array of {lengths.max()} elements; at most {LONGEST_ROW}")
        starts = np.uint64(self._values.length) + np.cumsum(lengths) - lengths
        self._append_elements(list(chain.from_iterable(lists)))
        rows: NDArray[np.uint64] = starts << np.uint64(ROW_LENGTH_BITS) | lengths
        return rows

    def pad(self, length: int) -> None:
        self._rows.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._rows.array[lids] = self._added(values)

    def set(self, lid: int, value: Value | None) -> None:
        elements = value or []
        if len(elements) > LONGEST_ROW:
            raise InvalidInput(f"an array of {len(elements)} elements; at most {LONGEST_ROW}")
        self._unused += int(self._rows.array[lid]) & LONGEST_ROW
        if self._unused > max(_LEAST_UNUSED, self._values.length // 2):
            self._take(*_used_elements(self._rows.view(), self._values.array))
        start = self._values.length
        self._append_elements(elements)
        self._rows.array[lid] = start << ROW_LENGTH_BITS | len(elements)

    def snapshot(self) -> ArrayView:
        return ArrayView(self._type, self._rows.view(), self._values.array, self._dictionary)

    def freeze(self) -> Frozen:
        rows, values = self._rows.view().copy(), self._values.array
        strings = None if self._dictionary is None else self._dictionary.strings()

        def arrays() -> Arrays:
            lengths, kept = _used_elements(rows, values)
            if strings is None:
                return {"lengths": lengths, "values": kept}
            codes, frozen = used_codes(kept, strings)
            return {"lengths": lengths, "values": codes, **frozen}

        return arrays

    def load(self, arrays: Arrays) -> None:
        lengths, values = arrays["lengths"].astype(np.uint64), arrays["values"]
        if values.dtype != self._values.array.dtype or int(lengths.sum()) != len(values):
            raise ValueError("elements that do not fit the rows")
        if self._dictionary is not None:
            self._dictionary.load(arrays)
            checked_codes(values, self._dictionary)
        self._take(lengths, values)

    def size_bytes(self) -> int:
        strings = 0 if self._dictionary is None else self._dictionary.size_bytes
        return self._rows.array.nbytes + self._values.array.nbytes + strings

    def _take(self, lengths: NDArray[Any], values: NDArray[Any]) -> None:
        """Goes on with these rows in new arrays; readers keep the old ones."""
        lengths = lengths.astype(np.uint64)
        starts = np.cumsum(lengths) - lengths
        self._rows = GrowableArray.of(starts << np.uint64(ROW_LENGTH_BITS) | lengths)
        self._values = GrowableArray.of(values)
        self._unused = 0

    def _append_elements(self, elements: list[Value]) -> None:
        dictionary, values = self._dictionary, self._values
        encoded = dictionary.encode(elements) if dictionary is not None else np.array(elements, values.array.dtype)
        if values.extend(encoded):
            self._rows.move()


def _used_elements(rows: NDArray[np.uint64], values: NDArray[Any]) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """Lengths by row, and the elements of the rows, one row after another."""
    starts, lengths = _split(rows)
    ends = np.cumsum(lengths)
    places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return lengths.astype(np.uint32), values[places]


def _split(rows: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and lengths."""
    starts = (rows >> np.uint64(ROW_LENGTH_BITS)).astype(np.int64)
    return starts, (rows & np.uint64(LONGEST_ROW)).astype(np.int64)
