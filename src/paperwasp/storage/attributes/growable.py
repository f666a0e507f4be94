"""Arrays that grow at the end while readers hold them.

A reader takes `array[:length]` and keeps it: growth copies into a new array and leaves the old one as it is. Capacity
doubles, and what is not yet appended holds `fill`, so that rows can also be added by moving the length alone. Only
the writer calls these.

Large ones have address space for all that may come (`attribute.reserved`): they stay where they are when they grow.
What such a one had in a file is mapped, and not read before it is looked at.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from paperwasp.base.records import dataclass
from paperwasp.storage.attributes.reserved import RESERVED_BYTES, FilePlace, Reserved

_FIRST_CAPACITY: Final = 16
"""Little: a schema may have ten thousands of columns, and no documents yet."""
_FIRST_BYTES: Final = 64 << 20
"""Fewer elements are made room for at first, where they are larger than this together."""
_RESERVED_FROM_BYTES: Final = 1 << 20
"""Arrays for large elements are moved to reserved address space when they become larger than this."""


@dataclass(frozen=True, slots=True)
class Large:
    """Says of an array that it has large elements, which are not to be copied when it grows."""

    folder: Path | None = None
    """Where its file is when it is paged: its pages need not be in memory. None: it is not."""


class GrowableArray:
    """One array with spare room at its end. `large` ones are filled with zeros."""

    __slots__ = ("_fill", "_large", "_reserved", "array", "length")

    def __init__(
        self, dtype: DTypeLike, fill: Any = 0, row_shape: tuple[int, ...] = (), large: Large | None = None
    ) -> None:
        self._fill = fill
        self._large = large
        self._reserved: Reserved | None = None
        row_bytes = math.prod(row_shape) * np.dtype(dtype).itemsize
        capacity = max(1, min(_FIRST_CAPACITY, _FIRST_BYTES // max(1, row_bytes)))
        self.array: NDArray[Any] = _make_filled((capacity, *row_shape), fill, dtype)
        self.length = 0

    @classmethod
    def of(cls, values: NDArray[Any], fill: Any = 0) -> GrowableArray:
        """One that starts with these values (copied)."""
        grown = cls(values.dtype, fill, values.shape[1:])
        grown.extend(values)
        return grown

    def empty(self) -> GrowableArray:
        """One of the same kind without elements."""
        return GrowableArray(self.array.dtype, self._fill, self.array.shape[1:], self._large)

    @property
    def is_fixed(self) -> bool:
        """Whether it has address space reserved, so that it does not move when it grows."""
        return self._reserved is not None

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, with what is spare."""
        return self.array.nbytes if self._reserved is None else self.view().nbytes

    def view(self) -> NDArray[Any]:
        """The elements appended so far, without a copy."""
        return self.array[: self.length]

    def extend(self, values: NDArray[Any]) -> bool:
        """Appends; True when the array had to move. Errors: NoSpace for one that is paged."""
        end = self.length + len(values)
        moved = (self._reserved is not None or end > len(self.array)) and self._reserve(end)
        self.array[self.length : end] = values
        self.length = end
        return moved

    def begin_with(self, values: NDArray[Any], place: FilePlace | None) -> None:
        """Appends the first elements. `place`: where they are in a file; large ones are then not copied, but for those
        of a paged array, which has a file of its own. Errors: NoSpace for one that is paged."""
        is_mapped = self._large is not None and self._large.folder is None and values.nbytes >= _RESERVED_FROM_BYTES
        if place is None or not is_mapped or not self._map(values, place):
            self.extend(values)

    def _map(self, values: NDArray[Any], place: FilePlace) -> bool:
        try:
            reserved = Reserved(max(RESERVED_BYTES, 8 * values.nbytes), None)
            start = reserved.begin_with(place, values.nbytes)
        except OSError:  # address space is limited, or the file is gone
            return False
        rows = (len(reserved.memory) - start) // values[:1].nbytes
        array = np.frombuffer(reserved.memory, values.dtype, rows * values[:1].size, start)
        self.array, self._reserved = array.reshape(rows, *values.shape[1:]), reserved
        self.length = len(values)
        return True

    def pad(self, length: int) -> None:
        """Appends `fill` up to `length`."""
        if length > self.length:
            if self._reserved is not None or length > len(self.array):
                self._reserve(length)
            self.length = length

    def move(self) -> None:
        """Goes on in a copy: readers of the old array see none of what is stored into single rows from now on."""
        self.array = self.array.copy()

    def _reserve(self, length: int) -> bool:
        capacity = len(self.array)
        if length <= capacity:
            if self._reserved is not None:
                self._reserved.allow(length * self.array[:1].nbytes)
            return False
        while capacity < length:
            capacity *= 2
        grown, self._reserved = self._make((capacity, *self.array.shape[1:]), length)
        grown[: self.length] = self.array[: self.length]
        self.array = grown
        return True

    def _make(self, shape: tuple[int, ...], length: int) -> tuple[NDArray[Any], Reserved | None]:
        """Makes a larger array, of which the first `length` elements can be written."""
        dtype = self.array.dtype
        row_bytes = self.array[:1].nbytes
        size_bytes = shape[0] * row_bytes
        if self._large is None or size_bytes < _RESERVED_FROM_BYTES:
            return _make_filled(shape, self._fill, dtype), None
        for reserved_bytes in (RESERVED_BYTES, 8 * size_bytes, size_bytes):
            try:
                reserved = Reserved(max(reserved_bytes, size_bytes), self._large.folder)
            except OSError:  # address space, or the length of files, is limited
                continue
            reserved.allow(length * row_bytes)
            rows = len(reserved.memory) // row_bytes
            array = np.frombuffer(reserved.memory, dtype, rows * row_bytes // dtype.itemsize)
            return array.reshape(rows, *shape[1:]), reserved
        return _make_filled(shape, self._fill, dtype), None


def _make_filled(shape: tuple[int, ...], fill: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Makes an array full of one value. Zeros take no memory before they are written."""
    return np.zeros(shape, dtype) if type(fill) is int and fill == 0 else np.full(shape, fill, dtype)
