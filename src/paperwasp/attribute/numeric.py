"""Single numbers by lid: one NumPy array of the field's type.

Unset is, as in Vespa, the least integer of the type, or NaN. A bool has a third value for it, -1, which counts as
false everywhere but in `get`: an update in place must not show a field that was never given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.bounds import Bounds, bounds_of, number_of
from paperwasp.attribute.column import Arrays, Bitmap, Column, ColumnView, Frozen, Lids, Number, as_list, empty_bitmap
from paperwasp.attribute.growable import GrowableArray
from paperwasp.attribute.posting import Posting, PostingSource
from paperwasp.core import _core
from paperwasp.document.operations import Value
from paperwasp.document.types import BOOL, FLOAT16, NumericType

_SAMPLE_ROWS = 1024
"""How many rows an estimate looks at where there is no posting list."""


def unset_of(data_type: NumericType) -> Number:
    """The number that stands for "no value" in a column of this type."""
    if data_type == BOOL:
        return -1
    return math.nan if data_type.low is None else data_type.low


def dtype_of(data_type: NumericType) -> np.dtype[Any]:
    """Of a column's array. A float16 is kept as a float32: the kernels know no halves."""
    return np.dtype("float32" if data_type == FLOAT16 else data_type.dtype)


class NumericView(ColumnView):
    """A numeric column at one moment: one value a lid."""

    __slots__ = ("_posting", "_type", "limit", "values")

    def __init__(self, data_type: NumericType, values: NDArray[Any], posting: Posting | None) -> None:
        self._type = data_type
        self.values = values
        self.limit = len(values)
        self._posting = posting

    def range_bitmap(
        self,
        low: Number | None,
        high: Number | None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        limit: int | None = None,
    ) -> Bitmap:
        bounds = self._bounds(low, high, low_inclusive, high_inclusive)
        limit = self.limit if limit is None else limit
        return empty_bitmap(limit) if bounds is None else self._bitmap(bounds, limit)

    def equal_bitmap(self, values: Value | Sequence[Value], limit: int | None = None) -> Bitmap:
        limit = self.limit if limit is None else limit
        bitmap = empty_bitmap(limit)
        for bounds in self._points(values):
            bitmap |= self._bitmap(bounds, limit)
        return bitmap

    def estimate_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> int:
        bounds = self._bounds(low, high, low_inclusive, high_inclusive)
        return 0 if bounds is None else self._estimate(bounds)

    def estimate_equal(self, values: Value | Sequence[Value]) -> int:
        return min(self.limit, sum(self._estimate(bounds) for bounds in self._points(values)))

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        values = self.values[lids]
        numbers = values.astype(np.float64)
        if self._type == BOOL:
            return np.maximum(numbers, 0.0)
        if self._type.low is not None:
            numbers[values == self._type.low] = np.nan
        return numbers

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def sort_keys(self, lids: Lids) -> NDArray[Any]:
        values = self.values[lids]
        if self._type.low is None:
            return np.where(np.isnan(values), -np.inf, values)
        return np.maximum(values, 0) if self._type == BOOL else values

    @property
    def unset_key(self) -> Number:
        return -math.inf if self._type.low is None else self._type.low

    def gather(self, lids: Lids) -> list[Value | None]:
        values = self.values[lids]
        if self._type == BOOL:
            return list((values > 0).tolist())
        return [None if unset else value for value, unset in zip(values.tolist(), self._unset(values), strict=True)]

    def get(self, lid: int) -> Value | None:
        value = self.values[lid].item()
        if self._type.low is None:
            return None if math.isnan(value) else value
        if self._type == BOOL:
            return None if value < 0 else bool(value)
        return None if value == self._type.low else value

    def _unset(self, values: NDArray[Any]) -> list[bool]:
        unset = np.isnan(values) if self._type.low is None else values == self._type.low
        return list(unset.tolist())

    def _bounds(self, low: Number | None, high: Number | None, *inclusive: bool) -> Bounds | None:
        bounds = bounds_of(self._type, low, high, *inclusive)
        if bounds is not None and self._type == BOOL and bounds.low == 0:
            return Bounds(-1, bounds.high)
        return bounds

    def _points(self, values: Value | Sequence[Value]) -> list[Bounds]:
        """The bounds of each value that is a number of this type."""
        found = (number_in(value, self._type) for value in as_list(values))
        points = (self._bounds(number, number, True, True) for number in found if number is not None)
        return [point for point in points if point is not None]

    def _bitmap(self, bounds: Bounds, limit: int) -> Bitmap:
        if self._posting is not None and (bitmap := self._posting.bitmap(self.values[:limit], bounds)) is not None:
            return bitmap
        bitmap = np.empty((limit + 63) // 64, np.uint64)
        _core.range_bitmap(self.values[:limit], bounds.low, bounds.high, bitmap)
        return bitmap

    def _estimate(self, bounds: Bounds) -> int:
        if self._posting is not None and (count := self._posting.estimate(self.values, bounds)) is not None:
            return count
        return estimate_rows(self.values, self.limit, bounds)


class NumericColumn(Column):
    """The writer's side of single numbers."""

    def __init__(self, data_type: NumericType, *, fast_search: bool = False) -> None:
        self._type = data_type
        self._unset = unset_of(data_type)
        self._values = GrowableArray(dtype_of(data_type), self._unset)
        self._posting = PostingSource() if fast_search else None

    @property
    def length(self) -> int:
        return self._values.length

    def append(self, values: Sequence[Value | None]) -> None:
        self._values.extend(self._encoded(values))

    def pad(self, length: int) -> None:
        self._values.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._values.array[lids] = self._encoded(values)

    def set(self, lid: int, value: Value | None) -> None:
        self._values.array[lid] = self._unset if value is None else value
        if self._posting is not None:
            self._posting.changed(lid)

    def snapshot(self) -> NumericView:
        values = self._values.view()
        return NumericView(self._type, values, self._posting.snapshot() if self._posting is not None else None)

    def freeze(self) -> Frozen:
        values = self._values.view().copy()
        return lambda: {"values": values}

    def load(self, arrays: Arrays) -> None:
        values = arrays["values"]
        if values.dtype != self._values.array.dtype:
            raise ValueError(f"values of {values.dtype} in a column of {self._type}")
        self._values = GrowableArray.of(values, self._unset)

    def size_bytes(self) -> int:
        return self._values.array.nbytes

    def _encoded(self, values: Sequence[Value | None]) -> NDArray[Any]:
        if None in values:
            unset = self._unset
            values = [unset if value is None else value for value in values]
        return np.array(values, self._values.array.dtype)


def number_in(value: Value, data_type: NumericType) -> Number | None:
    """The number that a value to search for stands for in a column of this type; None where it is none."""
    if isinstance(value, str):
        if data_type == BOOL and value.lower() in ("true", "false"):
            return int(value.lower() == "true")
        return number_of(value)
    return int(value) if isinstance(value, bool) else value


def estimate_rows(values: NDArray[Any], rows: int, bounds: Bounds) -> int:
    """From a sample: how many of `rows` are in the range. `values` may have more or fewer elements than there are
    rows."""
    if len(values) == 0:
        return 0
    sample = values[:: max(1, len(values) // _SAMPLE_ROWS)]
    found = np.count_nonzero((sample >= bounds.low) & (sample <= bounds.high))
    return min(rows, int(np.ceil(found * len(values) / len(sample))))
