"""Arrays of which each group has a part: part i of them is offsets[i]:offsets[i + 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def offsets_of(lengths: NDArray[Any]) -> Numbers:
    """Where parts of these lengths begin, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def lengths_of(offsets: NDArray[Any]) -> Numbers:
    """The length of each part."""
    ends = offsets.astype(np.int64, copy=False)
    return ends[1:] - ends[:-1]


def numbers_within(offsets: NDArray[Any]) -> Numbers:
    """The number of each element within its part, from 0."""
    lengths = lengths_of(offsets)
    starts = offsets_of(lengths)
    return np.arange(int(starts[-1]), dtype=np.int64) - np.repeat(starts[:-1], lengths)


def parts_at(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Pick parts: the offsets of those in `rows`, in this order, and the places of their elements before."""
    lengths = lengths_of(offsets)[rows]
    picked = offsets_of(lengths)
    return picked, np.repeat(offsets[:-1][rows], lengths) + numbers_within(picked)
