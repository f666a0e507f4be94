"""great_circle_distance(position): kilometres along the earth to the nearest position of a hit.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

import numpy as np

from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block
from paperwasp.search.features.distance import FARTHEST
from paperwasp.search.features.family import Compute, Floats, RankSetup, check_field, register
from paperwasp.search.features.nearest_places import nearest_places

NAME = "great_circle_distance"


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    if len(arguments) == 2 and arguments[0] != "field":
        raise LanguageError(f"the first of two arguments of {NAME} is field, not {arguments[0]!r}")
    return check_field("position-attribute", arguments[-1], setup, NAME)


@register(NAME, "name", "name", optional=1, outputs=("km", "latitude", "longitude"), pending=_check)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        places = nearest_places(block, arguments[-1])
        if output == "km":
            return np.minimum(places.kilometres, FARTHEST)
        return places.latitudes if output == "latitude" else places.longitudes

    return compute
