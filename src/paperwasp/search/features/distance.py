"""Distances of a hit from vectors, places and paths of the query: distance, closeness, closest and their kin."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.document.types import TensorFieldType
from paperwasp.errors import InvalidQuery, LanguageError
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import (
    Check,
    Compute,
    Floats,
    RankSetup,
    TensorCompute,
    check_field,
    one,
    register,
)
from paperwasp.search.features.setting import leaves_of
from paperwasp.search.features.time import Fall
from paperwasp.search.operators.geo import PositionMatch
from paperwasp.search.operators.nearest_neighbor import NearestNeighborMatch
from paperwasp.storage.attributes.distances import EARTH_RADIUS_KM, MILLIONTHS, great_circle_km
from paperwasp.storage.attributes.elements import positions_in, subspace_labels
from paperwasp.text.parsing.tokens import did_you_mean

# The vectors of hits that are nearest to those of the query, for closeness, distance and closest.
#
# A term of nearestNeighbor has them for every hit, also for those that it does not match: as in Vespa, they are
# computed then.


_KINDS = ("field", "label")


def check_of(feature: str, position_outputs: tuple[str, ...]) -> Check:
    """For `feature(name)` and `feature(field,name)` of tensors or positions, and `feature(label,name)`.

    The outputs are only there for positions. Vespa: distancefeature.cpp and closenessfeature.cpp (`setup`).
    """

    def check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
        if is_of_positions(setup, arguments):
            return ""
        kind, name = kind_and_name(arguments)
        if kind not in _KINDS:
            near = did_you_mean(kind, _KINDS)
            raise LanguageError(f"the first argument of {feature} is field or label, not {kind!r}{near}")
        if kind == "field":
            check_field("tensor-attribute", name, setup, feature)
        if output in position_outputs:
            raise LanguageError(f"{feature}({','.join(arguments)}) has no output {output!r}: that is for positions")
        return ""

    return check


def kind_and_name(arguments: tuple[str, ...]) -> tuple[str, str]:
    """ "field" or "label", and the name of it; a single argument is a field."""
    return ("field", arguments[0]) if len(arguments) == 1 else (arguments[0], arguments[1])


def is_of_positions(setup: RankSetup, arguments: tuple[str, ...]) -> bool:
    """Whether these are the arguments of a feature of positions."""
    if len(arguments) == 2 and arguments[0] != "field":
        return False
    try:
        check_field("position-attribute", arguments[-1], setup, "distance")
    except LanguageError:
        return False
    return True


class NearVectors(Struct, frozen=True, eq=False):
    """The vector of each hit that is nearest to a term's vector, whether the term matches or not."""

    distances: NDArray[np.float64]
    """Infinite where a hit has no vector."""
    closeness: NDArray[np.float64]
    """The raw scores; `least` where a hit has no vector."""
    subspaces: NDArray[np.uint32]
    """The number of the vector among those of its hit."""
    least: float


def near_vectors(block: Block, term: int, field: str) -> NearVectors | None:
    """The vectors that are near to that of term number `term`; None: it is not nearestNeighbor in this field."""
    for match in block.matches(term, field):
        if isinstance(match.unmasked, NearestNeighborMatch):
            return NearVectors(*match.unmasked.nearest(block.lids), match.unmasked.least_score)
    return None


def vector_labels(
    block: Block, field: str, hits: NDArray[np.int64], subspaces: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """The labels of one vector of each of some hits, those of one hit after those of another, as numbers of the query's
    labels. `hits`: places in the block."""
    texts = subspace_labels(block.column(field), block.lids[hits], subspaces)
    return block.labels.numbers(chain.from_iterable(texts))


def vectors_of(block: Block, kind: str, name: str) -> Sequence[NearVectors]:
    """The nearest vectors in a block by `kind`, field or label; found once for closeness and distance."""
    return block.once(("nearest vectors", kind, name), lambda: tuple(_vectors_of(block, kind, name)))


def _vectors_of(block: Block, kind: str, name: str) -> Iterator[NearVectors]:
    """Yield those of the terms that search the field, or of the labelled term in all its fields. An operator with the
    label counts with its raw score, where it matches."""
    if kind == "field":
        for number in range(len(block.setting.terms)):
            if (found := near_vectors(block, number, name)) is not None:
                yield found
        return
    labelled = next((number for number, term in enumerate(block.terms) if term.label == name), None)
    if labelled is not None:
        for field in block.terms[labelled].fields:
            yield near_vectors(block, labelled, field) or _of_raw_scores(block, labelled, field)


def _of_raw_scores(block: Block, number: int, field: str) -> NearVectors:
    matched, scores = block.matched(number, field), block.raw_scores(number, field)
    with np.errstate(divide="ignore"):
        distances = np.where(matched, 1.0 / scores - 1.0, np.inf)
    return NearVectors(distances, np.where(matched, scores, 0.0), np.zeros(len(scores), np.uint32), 0.0)


# The position of each hit that is nearest to the places of the query, for distance, closeness and
# great_circle_distance.
#
# Vespa: https://docs.vespa.ai/en/querying/geo-search.html


NO_LATITUDE: Final = 90.0
NO_LONGITUDE: Final = -180.0


class NearestPlaces(Struct, frozen=True, eq=False):
    """One of each hit. Without one: infinitely far, number -1, and a place at the pole."""

    kilometres: Floats
    numbers: Floats
    latitudes: Floats
    longitudes: Floats


def nearest_places(block: Block, field: str) -> NearestPlaces:
    """The nearest places of a block, found once for all features of the field."""
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


# distance(position), distance(field,tensor) and distance(label,name): how far a hit is from what the query looks for.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#distance(name)


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
def bind_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if is_of_positions(setup, arguments):
        return lambda block: _shown(nearest_places(block, arguments[-1]), output)
    kind, name = kind_and_name(arguments)

    def compute(block: Block) -> Floats:
        least = np.full(len(block.lids), FARTHEST)
        for vectors in vectors_of(block, kind, name):
            least = np.minimum(least, vectors.distances)
        return least

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


# closeness(position), closeness(field,tensor) and closeness(label,name): how near a hit is to what is looked for.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#closeness(dimension,name)


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
def bind_closeness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if is_of_positions(setup, arguments):
        return _closeness_of_positions(setup, arguments, output)
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


def _closeness_of_positions(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """1 at no distance, falling to 0 at maxDistance: in a line, or (logscale) as a logarithm."""
    name = f"closeness({','.join(arguments)})"
    fall = Fall.of(setup, (f"{name}.maxDistance", DEFAULT_MAX_DISTANCE), (f"{name}.halfResponse", 1.0), DEFAULT_SCALE)
    distances = bind_distance(setup, arguments, "out")
    falling = fall.logarithmic if output == "logscale" else fall.linear

    def compute(block: Block) -> Floats:
        return falling(distances(block))

    return compute


# closest(tensor) and closest(tensor,label): which of a hit's vectors is nearest to that of the query.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#closest(name)


def _field_type(setup: RankSetup, field: str) -> TensorType:
    described = setup.described(field)
    assert described is not None and isinstance(described.type, TensorFieldType)
    return described.type.tensor


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """The mapped dimensions of the field, with its cells."""
    field = _field_type(setup, arguments[0])
    return TensorType.of(field.mapped, field.cell_type)


def _check_closest(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    field = _field_type(setup, arguments[0])
    if not field.mapped or len(field.indexed) != 1:
        raise LanguageError(
            f"rank feature 'closest': field {arguments[0]!r} is a {field}: mapped dimensions and one indexed"
            " dimension are expected"
        )
    return ""


@register("closest", "tensor-attribute", "name", optional=1, type_=_type, pending=_check_closest)
def bind_closest(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    field, label = arguments[0], arguments[1] if len(arguments) == 2 else None
    type_ = _type(setup, arguments, output)

    def compute(block: Block) -> TensorBatch:
        hits = len(block.lids)
        nearest, subspaces = np.full(hits, np.inf), np.zeros(hits, np.uint32)
        for number, term in terms_of(block, field):
            vectors = near_vectors(block, number, field) if label in (None, term.label) else None
            if vectors is not None:
                nearer = vectors.distances < nearest
                nearest[nearer], subspaces[nearer] = vectors.distances[nearer], vectors.subspaces[nearer]
        found = np.flatnonzero(nearest < np.inf)
        starts = np.concatenate([[0], np.cumsum(nearest < np.inf)]).astype(np.int64)
        labels = vector_labels(block, field, found, subspaces[found]).reshape(len(found), len(type_.mapped))
        return TensorBatch(type_, starts, labels, np.ones(len(found), DTYPES[type_.cell_type]))

    return compute


# great_circle_distance(position): kilometres along the earth to the nearest position of a hit.
#
# Vespa: not in its reference; a feature of its content nodes.


NAME = "great_circle_distance"


def _check_great_circle_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    if len(arguments) == 2 and arguments[0] != "field":
        raise LanguageError(f"the first of two arguments of {NAME} is field, not {arguments[0]!r}")
    return check_field("position-attribute", arguments[-1], setup, NAME)


@register(
    NAME, "name", "name", optional=1, outputs=("km", "latitude", "longitude"), pending=_check_great_circle_distance
)
def bind_great_circle_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        places = nearest_places(block, arguments[-1])
        if output == "km":
            return np.minimum(places.kilometres, FARTHEST)
        return places.latitudes if output == "latitude" else places.longitudes

    return compute


# distanceToPath(position): how far a hit is from a path of the query, and where along it.
#
# The path is the rank property `distanceToPath(name).path`: "(x1,y1,x2,y2,…)", in millionths of degrees. Distances are
# flat.
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#distanceToPath(name).distance
# Differs: a path of very many points, or of numbers that are not finite, is an error.


_WITHOUT_PATH: Final = {"distance": NOWHERE, "traveled": 1.0, "product": 0.0}
_NUMBER: Final = compile_later(
    r"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE
)
_POINT: Final = 1e-6
"""A path that is shorter is no line."""


class _Nearest(NamedTuple):
    """The point of a path that is nearest to each position."""

    square: Floats
    """The square of the distance."""
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
    """Find the nearest points of a path; of equally near segments the first counts."""
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
