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

from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Value
from paperwasp.document.types import BOOL, FLOAT16, NumericType
from paperwasp.storage.attributes.bounds import Bounds, bounds_of, number_of
from paperwasp.storage.attributes.column import (
    NO_ROWS,
    NO_WEIGHTS,
    Arrays,
    Bitmap,
    Column,
    ColumnView,
    Elements,
    Frozen,
    Lids,
    Number,
    as_list,
    empty_bitmap,
    products_of,
    single_elements,
)
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.posting import Posting, PostingSource
from paperwasp.storage.attributes.wanted import NOTHING, InRange, Tokens, Wanted, wanted_numbers

_SAMPLE_ROWS = 1024
"""How many rows an estimate looks at where there is no posting list."""


def unset_of(data_type: NumericType) -> Number:
    """The number that stands for "no value" in a column of this type."""
    if data_type == BOOL:
        return -1
    return math.nan if data_type.low is None else data_type.low


def dtype_of(data_type: NumericType) -> np.dtype[Any]:
    """The dtype of a column's array. A float16 is kept as a float32: the kernels know no halves."""
    return np.dtype("float32" if data_type == FLOAT16 else data_type.dtype)


class NumericView(ColumnView):
    """A numeric column at one moment: one value a lid."""

    __slots__ = ("_posting", "_type", "limit", "values")

    def __init__(self, data_type: NumericType, values: NDArray[Any], posting: Posting | None) -> None:
        self._type = data_type
        self.values = values
        self.limit = len(values)
        self._posting = posting

    @property
    def data_type(self) -> NumericType:
        return self._type

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        bounds = bounds_of(self._type, low, high, low_inclusive, high_inclusive)
        if bounds is not None and self._type == BOOL and bounds.low == 0:
            bounds = Bounds(-1, bounds.high)
        return NOTHING if bounds is None else InRange(bounds)

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        return numbers_wanted(values, self._type, self.values.dtype)

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        return single_bitmap(self.values, wanted, self._posting, self.limit if limit is None else limit)

    def estimate(self, wanted: Wanted) -> int:
        return single_estimate(self.values, wanted, self._posting)

    def prepare(self) -> bool:
        return self._posting is not None and self._posting.prepare(self.values)

    def elements(self, lids: Lids, wanted: Wanted) -> Elements:
        return single_elements(self.values[lids], wanted)

    def tokens(self, tokens: Sequence[tuple[Value, int]]) -> Tokens:
        return number_tokens(tokens, self._type, self.values.dtype)

    def products(self, lids: Lids, tokens: Tokens) -> NDArray[np.float64]:
        return products_of(self.values, NO_ROWS, NO_WEIGHTS, lids, tokens)

    def values_at(self, lids: Lids, wanted: Wanted) -> NDArray[Any]:
        values = self.values[lids]
        found: NDArray[Any] = values[wanted.among(values)]
        return found

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        if self._type == BOOL:
            truths: NDArray[np.float64] = np.maximum(self.values[lids], 0).astype(np.float64)
            return truths
        numbers = np.empty(len(lids))
        _core.column_numbers(self.values, np.ascontiguousarray(lids, np.uint32), unset_of(self._type), numbers)
        return numbers

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

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

    def get_all(self, lids: Lids) -> list[Value | None]:
        if self._type == BOOL:
            return [None if value < 0 else bool(value) for value in self.values[lids].tolist()]
        return self.gather(lids)

    def _unset(self, values: NDArray[Any]) -> list[bool]:
        unset = np.isnan(values) if self._type.low is None else values == self._type.low
        return list(unset.tolist())


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
        self._values.extend(self._encode(values))

    def append_plain(self, puts: list[PlainChange], name: str, first: int) -> None:
        self._values.pad(first + len(puts))
        _core.put_numbers(puts, name, self._values.array, first)

    def pad(self, length: int) -> None:
        self._values.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._values.array[lids] = self._encode(values)

    def set(self, lid: int, value: Value | None) -> None:
        self._values.array[lid] = self._unset if value is None else value
        if self._posting is not None:
            self._posting.note_change(lid)

    @property
    def rows(self) -> NDArray[Any]:
        """The numbers by lid. Whoever changes them in place notes that afterwards."""
        return self._values.array

    def note_changes(self, lids: Lids) -> None:
        """These rows, and perhaps not all of them, were changed in place just now."""
        if self._posting is not None:
            self._posting.note_changes(lids.tolist())

    def change(self, lids: Lids, operation: str, operand: float) -> None:
        """Sets rows (`=`), or adds to them (`+=`, `-=`) where what is unset counts as 0. What is beyond the range of an
        integer goes round."""
        values = self._values.array[lids]
        unset = np.isnan(values) if self._type.low is None else values == values.dtype.type(self._unset)
        values[unset] = 0
        known = np.float64(operand) if self._type.low is None else np.int64(operand)
        if operation == "=":
            values[:] = 0
        with np.errstate(over="ignore"):
            found = values - known if operation == "-=" else values + known
        self._values.array[lids] = found != 0 if self._type == BOOL else found.astype(values.dtype)
        self.note_changes(lids)

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

    def _encode(self, values: Sequence[Value | None]) -> NDArray[Any]:
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


def numbers_wanted(
    values: Value | Sequence[Value], data_type: NumericType, dtype: np.dtype[Any], *, skip_unset: bool = True
) -> Wanted:
    """Keep the values that are numbers of this type, in a column of `dtype`."""
    listed = as_list(values)
    if len(listed) > 1 and data_type.low is not None and all(type(value) is int for value in listed):
        return wanted_numbers(_integers(listed, data_type, dtype, skip_unset))
    found = (number_in(value, data_type) for value in listed)
    points = (bounds_of(data_type, number, number, skip_unset=skip_unset) for number in found if number is not None)
    numbers = {point.low for point in points if point is not None}
    if data_type == BOOL and 0 in numbers:
        numbers.add(unset_of(data_type))
    return wanted_numbers(np.array(list(numbers), dtype))


def number_tokens(
    tokens: Sequence[tuple[Value, int]], data_type: NumericType, dtype: np.dtype[Any], *, skip_unset: bool = True
) -> Tokens:
    """Keep the weighted tokens that are numbers of this type, in a column of `dtype`."""
    weights: dict[Any, int] = {}
    for value, weight in tokens:
        number = number_in(value, data_type)
        point = None if number is None else bounds_of(data_type, number, number, skip_unset=skip_unset)
        if point is not None:
            weights[point.low] = weights.get(point.low, 0) + weight
    if data_type == BOOL and 0 in weights:
        weights[unset_of(data_type)] = weights[0]
    return Tokens(weights, dtype)


def _integers(listed: list[Any], data_type: NumericType, dtype: np.dtype[Any], skip_unset: bool) -> NDArray[Any]:
    """Many integers at once: those that the type has."""
    assert data_type.low is not None and data_type.high is not None
    least = data_type.low + (skip_unset and data_type != BOOL)
    try:
        numbers = np.array(listed, np.int64)
    except OverflowError:
        numbers = np.array([number for number in listed if least <= number <= data_type.high], np.int64)
    numbers = np.unique(numbers[(numbers >= least) & (numbers <= data_type.high)])
    if data_type == BOOL and 0 in numbers:
        numbers = np.append(numbers, unset_of(data_type))
    return numbers.astype(dtype)


def single_bitmap(values: NDArray[Any], wanted: Wanted, posting: Posting | None, limit: int) -> Bitmap:
    """The rows below `limit` of a column with one value a row."""
    if wanted is NOTHING:
        return empty_bitmap(limit)
    if posting is not None and (found := posting.bitmap(values[:limit], wanted)) is not None:
        return found
    bitmap = np.empty((limit + 63) // 64, np.uint64)
    wanted.fill(values[:limit], bitmap)
    return bitmap


def single_estimate(values: NDArray[Any], wanted: Wanted, posting: Posting | None) -> int:
    """About how many rows are wanted."""
    if wanted is NOTHING:
        return 0
    if posting is not None and (count := posting.estimate(values, wanted)) is not None:
        return count
    return estimate_rows(values, len(values), wanted)


def estimate_rows(values: NDArray[Any], rows: int, wanted: Wanted) -> int:
    """From a sample: how many of `rows` have what is wanted. `values` may have more or fewer elements than there are
    rows."""
    if len(values) == 0 or wanted is NOTHING:
        return 0
    sample = values[:: max(1, len(values) // _SAMPLE_ROWS)]
    found = np.count_nonzero(wanted.among(sample))
    return min(rows, int(np.ceil(found * len(values) / len(sample))))
