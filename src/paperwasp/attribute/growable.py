"""Arrays that grow at the end while readers hold them.

A reader takes `array[:length]` and keeps it: growth copies into a new array and leaves the old one as it is. Capacity
doubles, and what is not yet appended holds `fill`, so that rows can also be added by moving the length alone. Only
the writer calls these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_FIRST_CAPACITY = 256


class GrowableArray:
    """One array with spare room at its end."""

    __slots__ = ("_fill", "array", "length")

    def __init__(self, dtype: DTypeLike, fill: Any = 0, row_shape: tuple[int, ...] = ()) -> None:
        self._fill = fill
        self.array: NDArray[Any] = _make_filled((_FIRST_CAPACITY, *row_shape), fill, dtype)
        self.length = 0

    @classmethod
    def of(cls, values: NDArray[Any], fill: Any = 0) -> GrowableArray:
        """One that starts with these values (copied)."""
        grown = cls(values.dtype, fill, values.shape[1:])
        grown.extend(values)
        return grown

    def view(self) -> NDArray[Any]:
        """The elements appended so far, without a copy."""
        return self.array[: self.length]

    def extend(self, values: NDArray[Any]) -> bool:
        """Appends; True when the array had to move."""
        end = self.length + len(values)
        moved = self._reserve(end)
        self.array[self.length : end] = values
        self.length = end
        return moved

    def pad(self, length: int) -> None:
        """Appends `fill` up to `length`."""
        if length > self.length:
            self._reserve(length)
            self.length = length

    def move(self) -> None:
        """Goes on in a copy: readers of the old array see none of what is stored into single rows from now on."""
        self.array = self.array.copy()

    def _reserve(self, length: int) -> bool:
        capacity = len(self.array)
        if length <= capacity:
            return False
        while capacity < length:
            capacity *= 2
        grown = _make_filled((capacity, *self.array.shape[1:]), self._fill, self.array.dtype)
        grown[: self.length] = self.array[: self.length]
        self.array = grown
        return True


def _make_filled(shape: tuple[int, ...], fill: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Makes an array full of one value. Zeros take no memory before they are written."""
    return np.zeros(shape, dtype) if type(fill) is int and fill == 0 else np.full(shape, fill, dtype)
