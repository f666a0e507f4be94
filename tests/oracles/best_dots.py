"""The plain NumPy twin of core/rank/best_dots.cpp. Same arguments; sums in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS
from tests.oracles.best_of import best_of
from tests.oracles.dots import dots_at


def best_dots(
    vector: NDArray[Any],
    vectors: NDArray[Any],
    rows: NDArray[np.uint64],
    nothing: float,
    hits: NDArray[np.uint64],
    wanted: int,
    first: int = 0,
    last: int = 0xFFFFFFFF,
) -> tuple[NDArray[np.uint32], NDArray[np.float64], int]:
    """The lids and scores of the best `wanted` of the hits from lid `first` up to `last`, best first, and how many hits
    were scored in time: all.

    Errors of the kernel: ValueError for arrays that do not fit each other, OutOfTime where no hit was scored in time.
    """
    bits = np.unpackbits(hits.view(np.uint8), bitorder="little")
    lids = np.flatnonzero(bits[first:last]).astype(np.uint32) + np.uint32(first)
    own = np.zeros(len(lids), np.uint64)
    own[lids < len(rows)] = rows[lids[lids < len(rows)]]
    starts = (own >> np.uint64(ROW_LENGTH_BITS)).astype(np.int64)
    counts = (own & np.uint64((1 << ROW_LENGTH_BITS) - 1)).astype(np.int64)
    scores = dots_at(vector, vectors, starts, counts, nothing)
    scores[~np.isfinite(scores)] = -np.inf
    return *best_of(lids, scores, wanted), len(lids) if wanted else 0
