"""Memory for arrays that grow to any size and never move: address space is reserved, and pages come when written.

Anonymous memory, in huge pages where the system has them, which may begin with a part of a file; or, for paged
attributes, a file without a name that is mapped, whose pages the system writes and drops when it needs memory. The disk
space of such a file is taken before its pages are written, so that a full disk is an error and never a signal.

The writer's thread makes and enlarges these; readers hold arrays over them, which keep the memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from pathlib import Path
from tempfile import mkstemp
from typing import Final, NamedTuple
from weakref import finalize

from paperwasp.errors import NoSpace

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


class FilePlace(NamedTuple):
    """Where in a file an array begins. The file is never changed; it may lose its name."""

    path: Path
    offset: int


class Reserved:
    """A mapping of `size_bytes`, zeros at first. `allow` says how much of it may be written."""

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
        """Makes sure that this number of bytes can be written. Errors: NoSpace."""
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
