"""Memory for arrays that grow to any size and never move: address space is reserved, and pages come when written.

Anonymous memory, in huge pages where the system has them; or, for paged attributes, a file without a name that is
mapped, whose pages the system writes and drops when it needs memory. The disk space of such a file is taken before
its pages are written, so that a full disk is an error and never a signal.

The writer's thread makes and enlarges these; readers hold arrays over them, which keep the memory.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from tempfile import mkstemp
from typing import Final
from weakref import finalize

from paperwasp.errors import NoSpace

RESERVED_BYTES: Final = 1 << 36
"""Address space for one array: 64 GB, of the 128 TB that a process has."""
_STEP_BYTES: Final = 16 << 20
"""Disk space is taken in steps of this size, or of an eighth of what there is already."""
_MAP_NORESERVE: Final = 0x4000
"""In Linux's mman.h; the module `mmap` does not name it."""


class Reserved:
    """A mapping of `size_bytes`, zeros at first. `allow` says how much of it may be written."""

    def __init__(self, size_bytes: int, folder: Path | None) -> None:
        """`folder`: where a paged array has its file; None: anonymous memory. Errors: OSError; NoSpace."""
        self._file: int | None = None
        self._allowed_bytes = size_bytes
        if folder is None:
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
            self.memory = mmap.mmap(-1, size_bytes, flags=flags)
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
        """Makes sure that so many bytes can be written. Errors: NoSpace."""
        if size_bytes <= self._allowed_bytes or self._file is None:
            return
        step = max(_STEP_BYTES, self._allowed_bytes // 8, size_bytes - self._allowed_bytes)
        step = min(step, len(self.memory) - self._allowed_bytes)
        try:
            os.posix_fallocate(self._file, self._allowed_bytes, step)
        except OSError as error:
            raise NoSpace(f"{self._folder}: no space left for a paged attribute: {error.strerror}") from error
        self._allowed_bytes += step
