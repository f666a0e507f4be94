"""The plain NumPy twin of dots.cpp: its oracle and its documentation. Same arguments; sums in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def all_dots(a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """`out[i, j]` becomes the sum of the products of the cells of row i of `a` and row j of `b`."""
    out[:] = (a.astype(np.float64)[:, None, :] * b.astype(np.float64)[None, :, :]).sum(axis=2)


def greatest_dots(a: NDArray[Any], b: NDArray[Any], starts: NDArray[np.int64], out: NDArray[Any]) -> None:
    """`out[g, j]` becomes the greatest of those of the rows of group g; NaN is passed over."""
    every = np.empty((len(a), len(b)))
    all_dots(a, b, every)
    for group, (start, end) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        out[group] = np.fmax.reduce(every[start:end], axis=0, initial=-np.inf)
