"""The plain twin of core/vectors/nearest_hits.cpp: which documents an exact search for nearest neighbours finds."""

from __future__ import annotations

import math
from collections.abc import Sequence


def nearest_hits(distances: Sequence[float], threshold: float, target: int) -> list[int]:
    """Return the places of the hits, rising. `distances`: of the documents in the order of their lids.

    A document is a hit if it is no farther than `threshold`, and no farther than the last of the nearest `target` hits
    before it.
    """
    hits: list[int] = []
    for place, distance in enumerate(distances):
        nearest = sorted(distances[hit] for hit in hits)[:target]
        limit = min(threshold, nearest[-1]) if len(nearest) == target else threshold
        if distance <= limit and not math.isinf(distance):
            hits.append(place)
    return hits
