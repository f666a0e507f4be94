"""The plain NumPy twin of core/vectors/max_similarity.cpp. Same arguments; sums in double."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Starts = NDArray[np.int64]
Counts = NDArray[np.int64]


def greatest_dots(
    tokens: NDArray[Any], cells: NDArray[Any], starts: Starts, counts: Counts, greatest: NDArray[Any]
) -> None:
    """`greatest[i, j]` becomes the greatest dot product of token j and one of the rows starts[i] to starts[i] +
    counts[i]; NaN is passed over, and without rows it is -infinity. Cells of uint16 are the upper halves of floats."""
    if cells.dtype == np.uint16:
        cells = (cells.astype(np.uint32) << np.uint32(16)).view(np.float32)
    _greatest(lambda rows: rows.astype(np.float64) @ tokens.astype(np.float64).T, cells, starts, counts, greatest)


def greatest_sums(
    tokens: NDArray[Any], cells: NDArray[np.int8], starts: Starts, counts: Counts, greatest: NDArray[Any]
) -> None:
    """The same of rows of bits, the first bit of an octet being its highest: dot products with 0 and 1."""
    bits = np.unpackbits(cells.view(np.uint8), axis=1)
    greatest_dots(tokens, bits, starts, counts, greatest)


def least_bits(
    tokens: NDArray[np.int8], cells: NDArray[np.int8], starts: Starts, counts: Counts, least: NDArray[np.uint32]
) -> None:
    """`least[i, j]` becomes the least number of bits in which token j and one of the rows of i differ; without rows it
    is 2^32 - 1."""
    least[:] = 2**32 - 1
    for place, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        different = (tokens[:, None, :] ^ cells[None, start : start + count]).view(np.uint8)
        if count:
            least[place] = np.unpackbits(different, axis=2).sum(axis=2).min(axis=1)


def _greatest(
    dots: Callable[[NDArray[Any]], NDArray[Any]],
    cells: NDArray[Any],
    starts: Starts,
    counts: Counts,
    greatest: NDArray[Any],
) -> None:
    for place, (start, count) in enumerate(zip(starts.tolist(), counts.tolist(), strict=True)):
        greatest[place] = np.fmax.reduce(dots(cells[start : start + count]), axis=0, initial=-np.inf)
