"""The position of each hit that is nearest to the places of the query, for distance, closeness and
great_circle_distance.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Floats
from paperwasp.search.features.query_terms import leaves_of
from paperwasp.search.operators.geo import PositionMatch
from paperwasp.storage.attributes.areas import MILLIONTHS, great_circle_km
from paperwasp.storage.attributes.elements import positions_in

NO_LATITUDE: Final = 90.0
NO_LONGITUDE: Final = -180.0


@dataclass(frozen=True, slots=True, eq=False)
class NearestPlaces:
    """One of each hit. Without one: infinitely far, number -1, and a place at the pole."""

    kilometres: Floats
    numbers: Floats
    latitudes: Floats
    longitudes: Floats


def nearest_places(block: Block, field: str) -> NearestPlaces:
    """Those of a block, found once for all features of the field."""
    return block.once(("nearest places", field), lambda: _nearest_places(block, field))


def places_of_query(block: Block, field: str) -> Sequence[tuple[int, int]]:
    """The centres, x and y in millionths of degrees, of circles that the query searches in a field of positions.

    Where it searches none there, those of all that it searches.
    """
    matches = (match for term in leaves_of(block.setting.operator) for match in term.matches)
    located = [match for match in matches if isinstance(match, PositionMatch) and match.area.has_center]
    return [match.area.center for match in located if match.field == field] or [match.area.center for match in located]


def _nearest_places(block: Block, field: str) -> NearestPlaces:
    """Along the earth. Of equally near ones that which is near to the first place of the query, then the first."""
    hits = len(block.lids)
    counts, positions = positions_in(block.column(field), block.lids)
    kilometres, numbers = np.full(hits, np.inf), np.full(hits, -1, np.int64)
    starts = np.cumsum(counts) - counts
    has = counts > 0
    for place in places_of_query(block, field):
        if not has.any():
            break
        apart = great_circle_km(positions, place)
        least = np.full(hits, np.inf)
        least[has] = np.minimum.reduceat(apart, starts[has])
        nearer = least < kilometres
        kilometres[nearer] = least[nearer]
        numbers[nearer] = first_of(apart == np.repeat(least, counts), counts)[nearer]
    found = numbers >= 0
    latitudes, longitudes = np.full(hits, NO_LATITUDE), np.full(hits, NO_LONGITUDE)
    nearest = positions[(starts + numbers)[found]] / MILLIONTHS
    longitudes[found], latitudes[found] = nearest[:, 0], nearest[:, 1]
    return NearestPlaces(kilometres, numbers.astype(np.float64), latitudes, longitudes)


def first_of(chosen: NDArray[np.bool_], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number, within its hit, of the first of a hit's values that is chosen; -1 where none is."""
    owners = np.repeat(np.arange(len(counts)), counts)
    numbers = np.full(len(counts), -1, np.int64)
    places = np.flatnonzero(chosen)[::-1]
    numbers[owners[places]] = places - (np.cumsum(counts) - counts)[owners[places]]
    return numbers
