"""Files that are mapped to be read: their pages are in memory while they are used, and as long as there is room."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def map_file(path: Path) -> NDArray[np.uint8]:
    """Map a file, read-only. The mapping outlives the file's name."""
    return np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)


def forget_pages(mapped: NDArray[np.uint8]) -> None:
    """Drop the pages of a mapped file that reading it has brought: those that queries want come again."""
    if isinstance(mapped.base, np.memmap) and (pages := getattr(mapped.base, "_mmap", None)) is not None:
        pages.madvise(mmap.MADV_DONTNEED)
