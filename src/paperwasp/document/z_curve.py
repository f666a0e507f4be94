"""Positions as places on a z-curve: 64-bit numbers whose even bits are those of x (millionths of a degree east), and
whose odd bits are those of y (north). So what is near is often near in number.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SPREAD = ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F), (2, 0x3333333333333333),
           (1, 0x5555555555555555))  # fmt: skip
"""Steps that move the bits of a half-word apart: shift, and the bits that count afterwards."""


def z_curve(positions: NDArray[np.int32]) -> NDArray[np.int64]:
    """The numbers of positions: shape (positions, 2), x and y."""
    x, y = (_spread(positions[:, axis]) for axis in (0, 1))
    return (x | y << np.uint64(1)).view(np.int64)


def positions_of(numbers: NDArray[np.int64]) -> NDArray[np.int32]:
    """The positions of numbers: shape (numbers, 2), x and y."""
    bits = numbers.view(np.uint64)
    return np.stack((_gather_bits(bits), _gather_bits(bits >> np.uint64(1))), axis=1)


def _spread(numbers: NDArray[np.int32]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(numbers).view(np.uint32).astype(np.uint64)
    for shift, mask in _SPREAD:
        bits = (bits | bits << np.uint64(shift)) & np.uint64(mask)
    return bits


def _gather_bits(bits: NDArray[np.uint64]) -> NDArray[np.int32]:
    bits = bits & np.uint64(_SPREAD[-1][1])
    shifts = [shift for shift, _ in _SPREAD]
    masks = [mask for _, mask in _SPREAD]
    for shift, mask in zip(reversed(shifts), [*reversed(masks[:-1]), 0xFFFFFFFF], strict=True):
        bits = (bits | bits >> np.uint64(shift)) & np.uint64(mask)
    return bits.astype(np.uint32).view(np.int32)
