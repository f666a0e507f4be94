"""The plain NumPy twin of core/vectors/dots.cpp. Same arguments; sums in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def all_dots(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """`out[i, j]` becomes the sum of the products of the cells of row i of `a` and row j of `b`."""
    out[:] = (a.astype(np.float64)[:, None, :] * b.astype(np.float64)[None, :, :]).sum(axis=2)


def dots_at(
    vector: NDArray[Any], rows: NDArray[Any], starts: NDArray[np.int64], counts: NDArray[np.int64], nothing: float
) -> NDArray[np.float64]:
    """The sum of the products of the cells of `vector` and of row `starts[i]`; `nothing` where `counts[i]` is 0."""
    found, there = np.full(len(starts), nothing), counts > 0
    found[there] = (vector.astype(np.float64) * rows[starts[there]].astype(np.float64)).sum(axis=1)
    return found
