"""distanceToPath(position): how far a hit is from a path of the query, and where along it.

The path is the rank property `distanceToPath(name).path`: "(x1,y1,x2,y2,…)", in millionths of degrees. Distances are
flat.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#distanceToPath(name).distance
Differs: a path of very many points, or of numbers that are not finite, is an error.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidQuery
from paperwasp.search.features.block import Block
from paperwasp.search.features.distance import FARTHEST, NOWHERE
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.storage.attributes.elements import positions_in

_WITHOUT_PATH: Final = {"distance": NOWHERE, "traveled": 1.0, "product": 0.0}
_NUMBER: Final = compile_later(
    r"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE
)
_POINT: Final = 1e-6
"""What is shorter is no line."""


class _Nearest(NamedTuple):
    """Of each position, the nearest point of a path."""

    square: Floats
    """Of the distance."""
    traveled: Floats
    """From the start of the path."""
    product: Floats
    """The cross product of its segment and of the way to it."""
    segment: NDArray[np.int64]


@register("distanceToPath", "position-attribute", outputs=tuple(_WITHOUT_PATH))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    name = f"distanceToPath({field}).path"

    def compute(block: Block) -> Floats:
        path = _path(name, block.setting.properties.get(name, ""))
        if len(path) < 2:
            return one(_WITHOUT_PATH[output])
        counts, positions = positions_in(block.column(field), block.lids)
        nearest = _nearest(path, positions.astype(np.float64))
        owners = np.repeat(np.arange(len(counts)), counts)
        order = np.lexsort((np.arange(len(owners)), nearest.segment, nearest.square, owners))
        first = np.ones(len(order), np.bool_)
        first[1:] = owners[order][1:] != owners[order][:-1]
        best, hits = order[first], owners[order[first]]
        if output == "distance":
            return _filled(len(counts), math.sqrt(FARTHEST), hits, np.sqrt(nearest.square[best]))
        if output == "product":
            return _filled(len(counts), 0.0, hits, nearest.product[best])
        length = float(np.hypot(*np.diff(path, axis=0).T).sum())
        share = nearest.traveled[best] / length if length > 0 else np.zeros(len(best))
        return _filled(len(counts), 1.0, hits, share)

    return compute


def _filled(hits: int, default: float, places: NDArray[np.int64], values: Floats) -> Floats:
    filled = np.full(hits, default)
    filled[places] = values
    return filled


def _nearest(path: Floats, positions: Floats) -> _Nearest:
    """Of equally near segments the first."""
    many = len(positions)
    best = _Nearest(np.full(many, np.inf), np.zeros(many), np.zeros(many), np.zeros(many, np.int64))
    gone = 0.0
    for number, (start, end) in enumerate(pairwise(path)):
        along = end - start
        length = math.sqrt(float(along @ along))
        share = np.zeros(many)
        if length >= _POINT:
            share = np.clip((positions - start) @ along / (length * length), 0.0, 1.0)
        way = start + share[:, None] * along - positions
        square = (way * way).sum(axis=1)
        nearer = square < best.square
        best.square[nearer] = square[nearer]
        best.traveled[nearer] = gone + share[nearer] * length
        best.product[nearer] = (along[0] * way[:, 1] - along[1] * way[:, 0])[nearer]
        best.segment[nearer] = number
        gone += length
    return best


@lru_cache(maxsize=64)
def _path(name: str, text: str) -> Floats:
    """The points of a path, (points, 2) of x and y; none for a text without parentheses.

    A number without its other is left out, and what is not a number is 0. Vespa: distancetopathfeature.cpp.
    """
    text = text.strip().strip("\"'")
    if len(text) < 2 or (text[0], text[-1]) != ("(", ")"):
        return np.zeros((0, 2))
    found = (_NUMBER.match(item) for item in text[1:-1].split(","))
    numbers = [0.0 if number is None else float(number[0]) for number in found]
    points = len(numbers) // 2
    if points > limits.PATH_POINTS:
        raise InvalidQuery(f"{name}: a path of {points} points; at most {limits.PATH_POINTS}")
    if not all(map(math.isfinite, numbers)):
        raise InvalidQuery(f"{name}: the points of a path are finite")
    return np.array(numbers[: 2 * points]).reshape(-1, 2)
