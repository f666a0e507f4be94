"""The values that a term looks for, as the numbers that a column keeps: a range, some numbers, some codes.

A view makes one of these from what a query says (`ColumnView.in_range`, `any_of`, `like`) and answers everything else
from it: which rows match, with which elements, about how many. So each kind of term is matched in every kind of column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from paperwasp.core import _core
from paperwasp.storage.attributes.bounds import Bounds

Bitmap = NDArray[np.uint64]
Rows = NDArray[np.uint64]
Ranges = tuple[NDArray[Any], NDArray[Any]]
"""Lows and highs of closed ranges that rise and do not overlap."""


class Wanted(ABC):
    """Values of one column."""

    @abstractmethod
    def fill(self, values: NDArray[Any], bitmap: Bitmap) -> None:
        """Writes the whole bitmap: the rows whose one value is wanted."""

    @abstractmethod
    def fill_rows(self, values: NDArray[Any], rows: Rows, bitmap: Bitmap) -> None:
        """The same for rows of elements (`attributes.rows`): those with an element that is wanted."""

    @abstractmethod
    def among(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of some values are wanted."""

    @abstractmethod
    def ranges(self, dtype: np.dtype[Any]) -> Ranges:
        """The same as ranges of numbers of the column's type: for sorted values."""


class InRange(Wanted):
    """low <= value <= high; both are values of the column's type."""

    __slots__ = ("bounds",)

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    def fill(self, values: NDArray[Any], bitmap: Bitmap) -> None:
        _core.range_bitmap(values, self.bounds.low, self.bounds.high, bitmap)

    def fill_rows(self, values: NDArray[Any], rows: Rows, bitmap: Bitmap) -> None:
        _core.array_range_bitmap(values, rows, self.bounds.low, self.bounds.high, bitmap)

    def among(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (values >= self.bounds.low) & (values <= self.bounds.high)
        return inside

    def ranges(self, dtype: np.dtype[Any]) -> Ranges:
        return np.array([self.bounds.low], dtype), np.array([self.bounds.high], dtype)


class InNumbers(Wanted):
    """One of some numbers of the column's type; `numbers` rise, each once."""

    def __init__(self, numbers: NDArray[Any]) -> None:
        self.numbers = numbers

    def fill(self, values: NDArray[Any], bitmap: Bitmap) -> None:
        _core.set_bitmap(values, self.numbers, bitmap)

    def fill_rows(self, values: NDArray[Any], rows: Rows, bitmap: Bitmap) -> None:
        _core.array_set_bitmap(values, rows, self.numbers, bitmap)

    def among(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        return np.isin(values, self.numbers)

    def ranges(self, dtype: np.dtype[Any]) -> Ranges:
        return self.numbers, self.numbers


class InCodes(Wanted):
    """One of some strings, by their codes. `table` has a byte per code: 1 for those; codes beyond it are none."""

    def __init__(self, table: NDArray[np.uint8]) -> None:
        self.table = table

    @cached_property
    def codes(self) -> NDArray[np.uint32]:
        return np.flatnonzero(self.table).astype(np.uint32)

    def fill(self, values: NDArray[Any], bitmap: Bitmap) -> None:
        _core.member_bitmap(values, self.table, bitmap)

    def fill_rows(self, values: NDArray[Any], rows: Rows, bitmap: Bitmap) -> None:
        _core.array_member_bitmap(values, rows, self.table, bitmap)

    def among(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        found = np.zeros(values.shape, np.bool_)
        known = values < len(self.table)
        found[known] = self.table[values[known]] != 0
        return found

    def ranges(self, dtype: np.dtype[Any]) -> Ranges:
        return self.codes, self.codes


NOTHING: Final = InNumbers(np.zeros(0, np.uint32))
"""Values that no column has, of whatever type."""


class Tokens:
    """The weights of the tokens of a query, by the numbers of a column: `keys` ascending, each once, and `weights`."""

    def __init__(self, weights: Mapping[Any, int], dtype: DTypeLike) -> None:
        keys = np.array(list(weights), dtype)
        order = np.argsort(keys)
        self.keys = keys[order]
        # modulo 2**64, as signed integers: with larger weights, no sum means anything
        wrapped = [(weight + 2**63) % 2**64 - 2**63 for weight in weights.values()]
        self.weights = np.array(wrapped, np.int64)[order]

    @property
    def wanted(self) -> Wanted:
        """Any of them."""
        return wanted_codes(self.keys) if self.keys.dtype == np.uint32 else wanted_numbers(self.keys)

    def weights_of(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The weights of some of the keys."""
        found: NDArray[np.int64] = self.weights[np.searchsorted(self.keys, values)]
        return found


def wanted_numbers(numbers: NDArray[Any]) -> Wanted:
    """These numbers, each once, in any order."""
    if len(numbers) == 0:
        return NOTHING
    if len(numbers) == 1:
        return InRange(Bounds(numbers[0].item(), numbers[0].item()))
    return InNumbers(np.sort(numbers))


def wanted_codes(codes: NDArray[np.uint32]) -> Wanted:
    """These codes, each once, in any order."""
    if len(codes) <= 1:
        return wanted_numbers(codes)
    table = np.zeros(int(codes.max()) + 1, np.uint8)
    table[codes] = 1
    return InCodes(table)
