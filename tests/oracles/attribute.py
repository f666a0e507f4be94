"""The plain NumPy twins of core/attributes/attribute.cpp and core/attributes/value_sets.cpp: oracle and documentation.
Same arguments, same results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS


def range_bitmap(values: NDArray[Any], low: float, high: float, bitmap: NDArray[np.uint64]) -> None:
    """Rows with low <= value <= high."""
    _pack((values >= low) & (values <= high), bitmap)


def member_bitmap(codes: NDArray[np.uint32], table: NDArray[np.uint8], bitmap: NDArray[np.uint64]) -> None:
    """Rows whose code has a one in `table`."""
    _pack(_members(codes, table), bitmap)


def set_bitmap(values: NDArray[Any], numbers: NDArray[Any], bitmap: NDArray[np.uint64]) -> None:
    """Rows whose value is one of `numbers`, which rise."""
    _pack(np.isin(values, numbers), bitmap)


def array_set_bitmap(
    values: NDArray[Any], rows: NDArray[np.uint64], numbers: NDArray[Any], bitmap: NDArray[np.uint64]
) -> None:
    """Rows of which at least one element is one of `numbers`."""
    _pack(_any_of(np.isin(values, numbers), rows), bitmap)


def array_range_bitmap(
    values: NDArray[Any], rows: NDArray[np.uint64], low: float, high: float, bitmap: NDArray[np.uint64]
) -> None:
    """Rows of which at least one element is in the range."""
    _pack(_any_of((values >= low) & (values <= high), rows), bitmap)


def array_member_bitmap(
    codes: NDArray[np.uint32], rows: NDArray[np.uint64], table: NDArray[np.uint8], bitmap: NDArray[np.uint64]
) -> None:
    """Rows of which at least one element has a one in `table`."""
    _pack(_any_of(_members(codes, table), rows), bitmap)


def _members(codes: NDArray[np.uint32], table: NDArray[np.uint8]) -> NDArray[np.bool_]:
    members = np.zeros(codes.shape, np.bool_)
    known = codes < len(table)
    members[known] = table[codes[known]] != 0
    return members


def _any_of(matches: NDArray[np.bool_], rows: NDArray[np.uint64]) -> NDArray[np.bool_]:
    starts = (rows >> np.uint64(ROW_LENGTH_BITS)).astype(np.int64)
    lengths = (rows & np.uint64((1 << ROW_LENGTH_BITS) - 1)).astype(np.int64)
    inside = starts + lengths <= len(matches)
    return np.array(
        [bool(i) and matches[s : s + n].any() for s, n, i in zip(starts, lengths, inside, strict=True)], bool
    )


def _pack(flags: NDArray[np.bool_], bitmap: NDArray[np.uint64]) -> None:
    packed = np.zeros(len(bitmap) * 8, np.uint8)
    packed[: (len(flags) + 7) // 8] = np.packbits(flags, bitorder="little")
    bitmap[:] = packed.view(np.uint64)
