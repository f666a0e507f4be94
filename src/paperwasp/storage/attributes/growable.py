"""Arrays that grow at the end while readers hold them.

A reader takes `array[:length]` and keeps it: growth copies into a new array and leaves the old one as it is. Capacity
doubles, and what is not yet appended holds `fill`, so that rows can also be added by moving the length alone. Only
the writer calls these.

Large ones have address space for all that may come (`Reserved`), and stay where they are when they grow: pages come
when they are written, huge ones where the system has them. Elements that such a one had in a file are mapped, and not
read before they are looked at. A paged attribute is in a mapped file without a name: the system writes and drops its
pages when it needs memory. Its disk space is taken before the pages are written, so that a full disk is an error and
never a signal.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final
from weakref import finalize

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from paperwasp.errors import NoSpace
from paperwasp.storage.attributes.array_file import FilePlace

_FIRST_CAPACITY: Final = 16
"""Little: a schema may have ten thousands of columns, and no documents yet."""
_FIRST_BYTES: Final = 64 << 20
"""Fewer elements are made room for at first, where they are larger than this together."""
_RESERVED_FROM_BYTES: Final = 1 << 20
"""Arrays for large elements are moved to reserved address space when they become larger than this."""


class Large(Struct, frozen=True):
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
        """True where address space is reserved, so that it does not move when it grows."""
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


# Reserved memory

RESERVED_BYTES: Final = 1 << 36
"""Address space for one array: 64 GB, of the 128 TB that a process has."""
_STEP_BYTES: Final = 16 << 20
"""Disk space is taken in steps of this size, or of an eighth of what there is already."""
_MAP_FIXED: Final = 0x10
_MAP_NORESERVE: Final = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
"""In mman.h; the module `mmap` does not name them everywhere. Other systems than Linux reserve nothing anyway."""
_ZEROS: Final = bytes(1 << 20)
_LIBRARY: Final = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mmap.restype = ctypes.c_void_p
_LIBRARY.mmap.argtypes = (
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
)


class Reserved:
    """A mapping of `size_bytes`, zeros at first. `allow` says how much of it may be written. The writer's: readers hold
    arrays over it, which keep the memory."""

    def __init__(self, size_bytes: int, folder: Path | None) -> None:
        """`folder`: where a paged array has its file; None: anonymous memory. Errors: OSError; NoSpace."""
        self._file: int | None = None
        self._allowed_bytes = size_bytes
        if folder is None:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            self.memory = mmap.mmap(-1, size_bytes, flags=flags)
            if hasattr(mmap, "MADV_HUGEPAGE"):
                self.memory.madvise(mmap.MADV_HUGEPAGE)
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._file, name = mkstemp(dir=folder)
        Path(name).unlink()
        finalize(self, os.close, self._file)
        os.truncate(self._file, size_bytes)
        self._allowed_bytes = 0
        self.memory = mmap.mmap(self._file, size_bytes, flags=mmap.MAP_SHARED)

    def allow(self, size_bytes: int) -> None:
        """Make sure that this number of bytes can be written. Errors: NoSpace."""
        if size_bytes <= self._allowed_bytes or self._file is None:
            return
        step = max(_STEP_BYTES, self._allowed_bytes // 8, size_bytes - self._allowed_bytes)
        step = min(step, len(self.memory) - self._allowed_bytes)
        try:
            _take_space(self._file, self._allowed_bytes, step)
        except OSError as error:
            raise NoSpace(f"{self._folder}: no space left for a paged attribute: {error.strerror}") from error
        self._allowed_bytes += step

    def begin_with(self, place: FilePlace, size_bytes: int) -> int:
        """Has bytes of a file at the beginning: read when they are looked at, and copied before they are written. Gives
        the offset of the first of them, since only whole pages can be mapped. Only for anonymous memory.

        Errors: OSError, after which the memory is of no use.
        """
        skew = place.offset % mmap.PAGESIZE
        end = skew + size_bytes
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE
        with place.path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < place.offset + size_bytes:
                raise OSError(f"{place.path}: cut within an array")
            if _LIBRARY.mmap(address, end, access, flags, file.fileno(), place.offset - skew) != address:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), str(place.path))
        self.memory[end : end + -end % mmap.PAGESIZE] = bytes(-end % mmap.PAGESIZE)  # what follows in the file
        return skew


def _take_space(file: int, offset: int, size_bytes: int) -> None:
    """Has disk space for a part of a file that was never written. Errors: OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, offset, size_bytes)
        return
    end = offset + size_bytes
    while offset < end:
        offset += os.pwrite(file, _ZEROS[: end - offset], offset)
