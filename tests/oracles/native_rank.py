"""The plain twin of core/rank/native_rank.cpp: how near two terms of a query are in a field of each hit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.features.term_distance import UNDEFINED


def term_distance(
    first_offsets: NDArray[np.uint32],
    first_positions: NDArray[np.uint32],
    first_length: int,
    second_offsets: NDArray[np.uint32],
    second_positions: NDArray[np.uint32],
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """For each hit, the least distance from the end of the first term to a later second term, and where the first is.

    Hit i has positions[offsets[i]:offsets[i + 1]], rising. `first_length` is the number of words of the first term,
    whose positions are those of its first word. Among equal distances the earliest counts.
    """
    hits = len(first_offsets) - 1
    distances, places = np.full(hits, UNDEFINED, np.uint32), np.full(hits, UNDEFINED, np.uint32)
    for hit in range(hits):
        firsts = first_positions[first_offsets[hit] : first_offsets[hit + 1]].tolist()
        seconds = second_positions[second_offsets[hit] : second_offsets[hit + 1]].tolist()
        pairs = [(b - a - first_length + 1, a) for a in firsts for b in seconds if a + first_length - 1 < b]
        if pairs and min(pairs)[0] < UNDEFINED:
            distances[hit], places[hit] = min(pairs)
    return distances, places
