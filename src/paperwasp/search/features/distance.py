"""distance(position), distance(field,tensor) and distance(label,name): how far a hit is from what the query looks for.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#distance(name)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.features.nearest_places import NearestPlaces, nearest_places
from paperwasp.search.features.nearest_vectors import check_of, is_of_positions, kind_and_name, vectors_of
from paperwasp.storage.attributes.distances import EARTH_RADIUS_KM

FARTHEST: Final = float(np.finfo(np.float64).max)
"""The distance where the query or the hit has no vector."""
NOWHERE: Final = 6_400_000_000.0
"""The distance in millionths of degrees where the query or the hit has no position."""
NOWHERE_KM: Final = 40_000.0
_MILLIONTHS_OF_KM: Final = 1e6 * 180.0 / (math.pi * EARTH_RADIUS_KM)
_OF_PLACES: Final = ("index", "latitude", "longitude", "km")


@register(
    "distance",
    "name",
    "name",
    optional=1,
    outputs=("out", *_OF_PLACES),
    pending=check_of("distance", _OF_PLACES),
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if is_of_positions(setup, arguments):
        return _of_positions(arguments[-1], output)
    kind, name = kind_and_name(arguments)

    def compute(block: Block) -> Floats:
        least = np.full(len(block.lids), FARTHEST)
        for vectors in vectors_of(block, kind, name):
            least = np.minimum(least, vectors.distances)
        return least

    return compute


def _of_positions(field: str, output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return _shown(nearest_places(block, field), output)

    return compute


def _shown(places: NearestPlaces, output: str) -> Floats:
    nowhere = places.numbers < 0
    match output:
        case "index":
            return places.numbers
        case "latitude":
            return places.latitudes
        case "longitude":
            return places.longitudes
        case "km":
            return np.where(nowhere, NOWHERE_KM, places.kilometres)
    return np.where(nowhere, NOWHERE, places.kilometres * _MILLIONTHS_OF_KM)
