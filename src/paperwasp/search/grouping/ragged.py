"""Arrays of which each group has a part: part i of them is offsets[i]:offsets[i + 1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import spread

Numbers = NDArray[np.int64]


def offsets_of(lengths: NDArray[Any]) -> Numbers:
    """Where parts of these lengths begin, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def lengths_of(offsets: NDArray[Any]) -> Numbers:
    """The length of each part."""
    ends = offsets.astype(np.int64, copy=False)
    return ends[1:] - ends[:-1]


def parts_at(offsets: Numbers, rows: Numbers) -> tuple[Numbers, Numbers]:
    """Pick parts: the offsets of those in `rows`, in this order, and the places of their elements before."""
    lengths = lengths_of(offsets)[rows]
    return offsets_of(lengths), spread(offsets[:-1][rows], lengths)


def check_arrays(arrays: Mapping[str, NDArray[Any]], types: Mapping[str, type[np.generic]], state: str) -> None:
    """Errors: ValueError for other arrays than those of one dimension with these names and types. `state`: whose."""
    found = {name: (array.dtype, array.ndim) for name, array in arrays.items()}
    if found != {name: (np.dtype(kind), 1) for name, kind in types.items()}:
        raise ValueError(f"{state} has other arrays: {sorted(arrays)}")


def check_offsets(offsets: NDArray[Any], count: int, total: int) -> None:
    """Errors: ValueError for offsets that are not those of `count` parts of arrays of this length."""
    is_whole = 0 < len(offsets) == count + 1 and offsets[0] == 0 and offsets[-1] == total
    if not is_whole or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("the offsets of a state are not those of its groups")
