"""The plain NumPy twin of dots.cpp: its oracle and its documentation. Same arguments; sums in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def all_dots(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """`out[i, j]` becomes the sum of the products of the cells of row i of `a` and row j of `b`."""
    out[:] = (a.astype(np.float64)[:, None, :] * b.astype(np.float64)[None, :, :]).sum(axis=2)


def dots_at(vector: NDArray[Any], rows: NDArray[Any], at: NDArray[np.int64], out: NDArray[Any]) -> None:
    """`out[i]` becomes the sum of the products of the cells of `vector` and of row `at[i]`; where that is below 0, it
    stays as it is."""
    there = at >= 0
    out[there] = (vector.astype(np.float64) * rows[at[there]].astype(np.float64)).sum(axis=1)
