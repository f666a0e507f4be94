"""Bits by lid: bit (lid & 63) of word (lid >> 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class GrowingBitmap:
    """The writer's bitmap. `copy` gives what readers keep."""

    __slots__ = ("words",)

    def __init__(self, words: Words | None = None) -> None:
        self.words = np.zeros(64, np.uint64) if words is None or len(words) == 0 else words.copy()

    def set_range(self, start: int, end: int) -> None:
        """Set the bits start..end - 1."""
        while len(self.words) * 64 < end:
            self.words = np.concatenate((self.words, np.zeros_like(self.words)))
        first, last = start >> 6, (end - 1) >> 6
        if end <= start:
            return
        self.words[first : last + 1] |= _mask(first, last, start, end)

    def clear(self, lids: NDArray[np.uint32]) -> None:
        """Clear these bits."""
        bits = np.left_shift(np.uint64(1), (lids & np.uint32(63)).astype(np.uint64))
        np.bitwise_and.at(self.words, lids >> np.uint32(6), ~bits)

    def copy(self, limit: int) -> Words:
        """The words for the lids below `limit`."""
        return self.words[: (limit + 63) >> 6].copy()


def open_ended(words: Words, limit: int) -> Words:
    """A copy whose last word has ones from `limit` on: rows that are added later count as there."""
    copy = words.copy()
    if limit & 63:
        copy[-1] |= ~np.uint64(0) << np.uint64(limit & 63)
    return copy


def lids_of(words: Words) -> NDArray[np.uint32]:
    """The lids whose bits are set, rising."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).astype(np.uint32)


def _mask(first: int, last: int, start: int, end: int) -> Words:
    mask = np.full(last - first + 1, ~np.uint64(0), np.uint64)
    mask[0] &= ~np.uint64(0) << np.uint64(start & 63)
    mask[-1] &= ~np.uint64(0) >> np.uint64(63 - ((end - 1) & 63))
    return mask
