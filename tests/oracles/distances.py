"""The plain NumPy twin of core/vectors/distances.cpp. Same arguments; sums in double precision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS
from paperwasp.storage.attributes.vector_graph import METRICS


def least_distances(
    metric: int,
    query: NDArray[Any],
    cells: NDArray[Any],
    rows: NDArray[np.uint64],
    distances: NDArray[np.float64],
    vectors: NDArray[np.uint32] | None,
) -> None:
    """For each document the least distance of its vectors, and the number of that vector within the document, unless
    `vectors` is None."""
    if cells.dtype == np.uint16:
        cells = (cells.astype(np.uint32) << np.uint32(16)).view(np.float32)
    for place, row in enumerate(rows.tolist()):
        start, length = row >> ROW_LENGTH_BITS, row & ((1 << ROW_LENGTH_BITS) - 1)
        distances[place], nearest = math.inf, 0
        for number in range(length if start + length <= len(cells) else 0):
            found = distance(METRICS[metric], query, cells[start + number])
            if found < distances[place]:
                distances[place], nearest = found, number
        if vectors is not None:
            vectors[place] = nearest


def distance(metric: str, query: NDArray[Any], vector: NDArray[Any]) -> float:
    """From a query's vector to another, both of one type."""
    return float(distances_to(metric, query, vector[np.newaxis])[0])


def distances_to(metric: str, query: NDArray[Any], vectors: NDArray[Any]) -> NDArray[np.float64]:
    """From a query's vector to each of the rows of `vectors`, all of one type."""
    found: NDArray[np.float64]
    a, b = query.astype(np.float64), vectors.astype(np.float64)
    if metric == "hamming":
        bits = np.unpackbits((query ^ vectors).view(np.uint8), axis=1) if query.dtype == np.int8 else query != vectors
        found = bits.sum(axis=1).astype(np.float64)
    elif metric == "euclidean":
        found = np.square(a - b).sum(axis=1)
    elif metric == "product":
        found = -(b @ a)
    elif metric == "angular":
        norms = (a @ a) * np.square(b).sum(axis=1)
        found = 1 - (b @ a) / np.sqrt(np.where(norms > 0, norms, 1))
    else:
        a, b = np.radians(a), np.radians(b)
        up, along = np.sin((a - b) / 2).T
        found = up * up + np.cos(a[0]) * np.cos(b[:, 0]) * along * along
    return found
