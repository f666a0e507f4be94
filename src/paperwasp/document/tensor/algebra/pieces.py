"""Large arrays piece by piece: between two pieces the clock is asked and other threads run, and what is computed on the
way to the result stays as small as a piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from paperwasp.core.clock import check_time

PIECE_CELLS: Final = 1 << 16
"""Cells that are computed at a time: some 50 µs of adding, 1 ms of functions that take long."""


def pieces(shape: tuple[int, ...], most_cells: int = PIECE_CELLS) -> Iterator[tuple[slice, ...]]:
    """Indexes of pieces of an array of this shape, which cover it in its order. One piece where it is small.

    Errors: OutOfTime, before a piece.
    """
    axis, below = len(shape), 1
    while axis > 0 and below * shape[axis - 1] <= most_cells:
        axis -= 1
        below *= shape[axis]
    if axis == 0:
        yield ()
        return
    cut, outer = axis - 1, shape[: axis - 1]
    step = max(1, most_cells // max(1, below))
    for number in range(math.prod(outer)):
        place: list[slice] = []
        for length in reversed(outer):
            number, at = divmod(number, length)
            place.insert(0, slice(at, at + 1))
        for start in range(0, shape[cut], step):
            check_time()
            yield (*place, slice(start, min(shape[cut], start + step)))
