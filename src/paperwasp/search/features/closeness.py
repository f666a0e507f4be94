"""closeness(position), closeness(field,tensor) and closeness(label,name): how near a hit is to what is looked for.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#closeness(dimension,name)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.search.features import distance
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.features.logscale import Fall
from paperwasp.search.features.nearest_vectors import check_of, is_of_positions, kind_and_name, vectors_of

DEFAULT_MAX_DISTANCE: Final = 9_013_305.0
"""In millionths of degrees: about 1,000 km."""
DEFAULT_SCALE: Final = 5 * 9013.305


@register(
    "closeness",
    "name",
    "name",
    optional=1,
    outputs=("out", "logscale"),
    pending=check_of("closeness", ("logscale",)),
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if is_of_positions(setup, arguments):
        return _of_positions(setup, arguments, output)
    kind, name = kind_and_name(arguments)

    def compute(block: Block) -> Floats:
        found = vectors_of(block, kind, name)
        if len(found) == 1:
            return np.maximum(found[0].least, found[0].closeness)
        greatest = np.full(len(block.lids), found[-1].least if found else 0.0)
        for vectors in found:
            greatest = np.maximum(greatest, vectors.closeness)
        return greatest

    return compute


def _of_positions(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """1 at no distance, falling to 0 at maxDistance: in a line, or (logscale) as a logarithm."""
    name = f"closeness({','.join(arguments)})"
    fall = Fall.of(setup, (f"{name}.maxDistance", DEFAULT_MAX_DISTANCE), (f"{name}.halfResponse", 1.0), DEFAULT_SCALE)
    distances = distance.bind(setup, arguments, "out")
    falling = fall.logarithmic if output == "logscale" else fall.linear

    def compute(block: Block) -> Floats:
        return falling(distances(block))

    return compute
