"""Distances: the metrics of tensor attributes, and areas of the earth with the positions of a column in them.

What the kernel computes orders vectors; of it a metric makes the distance and the closeness that people see.

A circle on the earth is as round as Vespa's: distances along a parallel are shortened by the cosine of the latitude of
its centre, and the rest is flat; it does not go around the back of the earth.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#distance-metric,
https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES, Tensor, as_cells
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.column import Bitmap, Elements, Lids, empty_bitmap
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.position import PositionView
from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS, Rows, places_of
from paperwasp.storage.attributes.tensor import NO_LABEL, TensorView
from paperwasp.storage.attributes.vector_graph import METRICS, GraphView

EARTH_RADIUS_KM: Final = 6371.0088
"""The mean one."""

Numbers = NDArray[np.float64]


class GraphSearch(Struct, frozen=True):
    """A search of a graph: the arguments of `GraphView.search`."""

    count: int
    explore: int
    accept: Bitmap | None
    limit: int
    threshold: float
    filter_first: bool
    exploration: float
    slack: float
    end_ns: int = 0


class KernelGraph(NamedTuple):
    """The graph of a column in which each document has one vector at most, and what it is of."""

    graph: _core.Hnsw
    cells: NDArray[Any]
    rows: Rows


class Found(NamedTuple):
    """Documents that a graph found, by rising lid."""

    lids: Lids
    distances: Numbers
    """As the kernel computes them."""
    nodes: NDArray[np.uint32]
    """The nearest vector of each."""

    def of(self, places: NDArray[np.bool_]) -> Found:
        """The documents at these places."""
        return Found(self.lids[places], self.distances[places], self.nodes[places])


class DistanceMetric(Struct, frozen=True):
    """`kernel`: the name of what is computed. `norm` is the product of the query's vector with itself."""

    kernel: str
    distance: Callable[[Numbers, float], Numbers]
    """Turns what is computed into the distance that people see."""
    limit: Callable[[float, float], float]
    """The greatest that is computed where the distance is no more than a threshold."""
    is_product: bool = False
    """True where the closeness is the dot product itself: the greater the better, and not from 0 to 1."""

    def closeness(self, computed: Numbers, norm: float) -> Numbers:
        """The raw score."""
        return self.closeness_at(self.distance(computed, norm))

    def closeness_at(self, distance: Numbers) -> Numbers:
        """The raw score of a distance as people see it."""
        return -distance if self.is_product else 1.0 / (1.0 + distance)


def _angle(computed: Numbers, _: float) -> Numbers:
    return _core.angles_of(computed)


def _angular_limit(threshold: float, _: float) -> float:
    return 0.0 if threshold < 0 else 2.0 if threshold > math.pi else 1.0 - math.cos(threshold)


def _cosine_distance(computed: Numbers, norm: float) -> Numbers:
    return 1.0 - np.minimum(np.maximum(-computed / norm, -1.0), 1.0)  # in half of the time that np.clip takes


def _great_circle_km(computed: Numbers, _: float) -> Numbers:
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(computed, 0.0, 1.0)))


def _haversine_limit(threshold_km: float, _: float) -> float:
    return math.sin(min(max(threshold_km / (2 * EARTH_RADIUS_KM), 0.0), math.pi / 2)) ** 2


_PRENORMALIZED: Final = DistanceMetric("product", _cosine_distance, lambda limit, norm: -(1.0 - limit) * norm)
DISTANCE_METRICS: Final[Mapping[str, DistanceMetric]] = {
    "euclidean": DistanceMetric("euclidean", lambda computed, _: np.sqrt(computed), lambda limit, _: limit * limit),
    "angular": DistanceMetric("angular", _angle, _angular_limit),
    "dotproduct": DistanceMetric("product", lambda computed, _: computed, lambda limit, _: limit, is_product=True),
    "prenormalized-angular": _PRENORMALIZED,
    "innerproduct": _PRENORMALIZED,
    "hamming": DistanceMetric("hamming", lambda computed, _: computed, lambda limit, _: limit),
    "geodegrees": DistanceMetric("geodegrees", _great_circle_km, _haversine_limit),
}
"""By the names of schemas."""


class Distances:
    """From the one vector of a query to those of a column: dense ones, or one for each label of the mapped dimensions.

    Errors: ValueError for tensors that cannot be compared so.
    """

    def __init__(self, column: TensorView | ImportedView, query: Tensor, metric: str) -> None:
        tensors = column.innermost if isinstance(column, ImportedView) else column
        if not isinstance(tensors, TensorView):
            raise ValueError("field is not a tensor")
        _check(tensors.type, query.type, metric)
        self._imported = column if isinstance(column, ImportedView) else None
        self._column = tensors
        self.metric: Final = metric or "euclidean"
        self._metric = DISTANCE_METRICS[self.metric]
        self._query_type = query.type
        self._query = _as_kept(query, tensors.type.cell_type)
        self._norm = _core.norm_of_query(self._query)

    def computed(self, lids: Lids) -> tuple[Numbers, NDArray[np.uint32]]:
        """Numbers that order documents, the nearest first (infinite without a vector), and the vector each is of."""
        rows = self._rows(lids)
        distances, vectors = np.empty(len(rows)), np.zeros(len(rows), np.uint32)
        asked = vectors if self._column.type.mapped else None  # else each document has one
        metric = METRICS.index(self._metric.kernel)
        _core.least_distances(metric, self._query, self._flat_cells, rows, distances, asked)
        return distances, vectors

    @property
    def graph(self) -> GraphView | None:
        """The graph that finds near vectors; None where all have to be compared, as those of parents."""
        return None if self._imported is not None else self._column.graph

    @property
    def kernel_graph(self) -> KernelGraph | None:
        """The same for kernels that search it themselves; None where they would have to look at more."""
        graph = self.graph
        if graph is None or self._column.type.mapped:
            return None
        found = graph.for_kernels(self._flat_cells)
        return None if found is None else KernelGraph(*found, self._column.rows)

    def search(self, graph: GraphView, search: GraphSearch) -> Found:
        """Return about the nearest documents."""
        found, distances, nodes = graph.search(
            self._flat_cells,
            self._query,
            search.count,
            search.explore,
            search.accept,
            search.limit,
            search.threshold,
            search.filter_first,
            search.exploration,
            search.slack,
            search.end_ns,
        )
        order = found.argsort()
        return Found(found[order], distances[order], nodes[order])

    def of_found(self, found: Found) -> tuple[Numbers, NDArray[np.uint32]]:
        """Return what `computed` does, of documents that a graph found.

        The graph may be of a later moment than the column: its distances are those of the column where each document
        has one vector, and the graph found that.
        """
        ones = found.nodes.astype(np.uint64) << np.uint64(ROW_LENGTH_BITS) | np.uint64(1)
        if np.array_equal(self._rows(found.lids), ones):
            return found.distances, np.zeros(len(ones), np.uint32)
        return self.computed(found.lids)

    def distance(self, computed: Numbers) -> Numbers:
        """As people see it: an angle in radians, kilometres, bits, …"""
        return self._metric.distance(computed, self._norm)

    def closeness(self, computed: Numbers) -> Numbers:
        """The raw score: 1 / (1 + distance), or the dot product."""
        return self._metric.closeness(computed, self._norm)

    def closeness_at(self, distance: Numbers) -> Numbers:
        """The same, of a distance as people see it."""
        return self._metric.closeness_at(distance)

    @property
    def least_closeness(self) -> float:
        """The lower bound of all closenesses."""
        return float(np.finfo(np.float64).min) if self._metric.is_product else 0.0

    def limit(self, threshold: float) -> float:
        """The greatest `computed` of what is within a distance."""
        return self._metric.limit(threshold, self._norm)

    @property
    def types(self) -> tuple[str, str]:
        """The tensor types of the column and of the query's vector."""
        return str(self._column.type), str(self._query_type)

    @property
    def bytes_of_vector(self) -> int:
        """How much of the column is read to compute one distance."""
        return int(self._query.nbytes)

    @property
    def _flat_cells(self) -> NDArray[Any]:
        cells = self._column.cells
        return cells.reshape(len(cells), -1)

    def _rows(self, lids: Lids) -> Rows:
        """Where the vectors of documents stand; a tensor without subspaces has none."""
        rows: Rows
        if self._imported is None:
            rows = self._column.rows[lids]
        else:
            parents, is_there = self._imported.rows(lids)
            rows = np.zeros(len(lids), np.uint64)
            rows[is_there] = self._column.rows[parents[is_there]]
        if self._column.type.mapped and len(self._column.labels):
            starts = np.minimum(rows >> np.uint64(ROW_LENGTH_BITS), np.uint64(len(self._column.labels) - 1))
            rows = np.where(self._column.labels[starts, 0] == NO_LABEL, np.uint64(0), rows)
        return rows


def _check(column: TensorType, query: TensorType, metric: str) -> None:
    if len(column.indexed) != 1:
        raise ValueError(f"field type {column} is not supported by nearest neighbor searcher")
    if query.mapped or column.indexed != query.indexed:
        raise ValueError(f"field type {column} does not match query type {query}")
    if metric == "geodegrees" and column.indexed[0].size != 2:
        raise ValueError(f"field type {column} has no latitude and longitude")


def _as_kept(query: Tensor, cell_type: str) -> NDArray[Any]:
    """The query's cells as the column's: what an int8 cannot hold becomes the nearest that it can."""
    if cell_type in ("float", "double") and query.cells.dtype == DTYPES[cell_type]:
        return np.ascontiguousarray(query.cells.reshape(-1))
    cells = query.cells.reshape(-1).astype(np.float64)
    if cell_type == "int8":
        cells = np.clip(np.nan_to_num(np.trunc(cells)), -128, 127)
    return np.ascontiguousarray(as_cells(cells, cell_type))


# Areas of the earth

MILLIONTHS: Final = 1_000_000
"""The parts of a degree in which positions are kept."""
ANYWHERE: Final = 2**64 - 1
"""The square of a radius that leaves out nothing."""
_KM_OF_A_MILLIONTH: Final = math.pi / 180.0 / MILLIONTHS * EARTH_RADIUS_KM
_LEAST, _MOST = -(2**31), 2**31 - 1
_UNSET: Final = np.iinfo(np.int64).min
_WHOLE_ASPECT: Final = 2**32 - 1
_NO_ROWS: Final = np.zeros(0, np.uint64)


class Area(Struct, frozen=True):
    """A box, a circle, or what is in both; in millionths of degrees."""

    box: tuple[int, int, int, int] = (_LEAST, _LEAST, _MOST, _MOST)
    """West, south, east, north; all four belong to it."""
    center: tuple[int, int] = (0, 0)
    """x (east) and y (north)."""
    square: int = ANYWHERE
    """The square of the radius."""
    aspect: int = 0
    """How much a distance along a parallel counts, in parts of 2^32; 0: all of it."""

    @classmethod
    def circle(cls, latitude: float, longitude: float, radius_degrees: float, aspect: int | None = None) -> Area:
        """Around a place. A radius below zero: anywhere. No aspect: that of the latitude."""
        y = _millionths(latitude)
        if aspect is None:
            aspect = int(math.cos(math.radians(y / MILLIONTHS)) * _WHOLE_ASPECT) if abs(y) < 90 * MILLIONTHS else 0
        radius = min(_millionths(radius_degrees), _WHOLE_ASPECT)
        return cls(
            center=(_millionths(longitude), y), square=ANYWHERE if radius_degrees < 0 else radius**2, aspect=aspect
        )

    @classmethod
    def rectangle(cls, south: float, west: float, north: float, east: float) -> Area:
        """Between two parallels and two meridians."""
        west, south, east, north = (math.floor(side * MILLIONTHS + 0.5) for side in (west, south, east, north))
        return cls((west, south, east, north))

    @property
    def has_center(self) -> bool:
        """True where it is around a place."""
        return self.box == (_LEAST, _LEAST, _MOST, _MOST)

    def bitmap(self, view: PositionView, limit: int) -> Bitmap:
        """The rows below `limit` with a position in the area."""
        bitmap = empty_bitmap(limit)
        numbers, rows = _parts(view)
        single = rows is None
        _core.places_in(
            numbers[:limit] if single else numbers, _NO_ROWS if rows is None else rows[:limit],
            np.array(self.box, np.int32), *self.center, self.aspect, self.square, single, bitmap,
        )  # fmt: skip
        return bitmap

    def elements(self, view: PositionView, lids: Lids) -> Elements:
        """The positions of rows that are in the area."""
        numbers, lengths = numbers_of(view, lids)
        found = self._among(numbers)
        owners = np.repeat(np.arange(len(lids)), lengths)[found]
        ends = np.cumsum(lengths)
        within = (np.arange(len(numbers)) - np.repeat(ends - lengths, lengths))[found]
        weights = np.ones(len(within), np.int32)
        return Elements(np.bincount(owners, minlength=len(lids)), within, weights, numbers[found])

    def flat_km(self, positions: NDArray[np.int32]) -> NDArray[np.float64]:
        """From positions, (n, 2) of x and y, to the centre, as the circle measures it."""
        apart = np.abs(positions.astype(np.int64) - np.array(self.center, np.int64)).astype(np.uint64)
        if self.aspect:
            apart[:, 0] = apart[:, 0] * np.uint64(self.aspect) >> np.uint64(32)
        square = apart[:, 0] * apart[:, 0] + apart[:, 1] * apart[:, 1]
        kilometres: NDArray[np.float64] = np.sqrt(square.astype(np.float64)) * _KM_OF_A_MILLIONTH
        return kilometres

    def _among(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some positions are in the area."""
        bitmap = np.empty((len(numbers) + 63) // 64, np.uint64)
        _core.places_in(
            np.ascontiguousarray(numbers), _NO_ROWS, np.array(self.box, np.int32), *self.center, self.aspect,
            self.square, True, bitmap,
        )  # fmt: skip
        return np.unpackbits(bitmap.view(np.uint8), bitorder="little", count=len(numbers)).astype(np.bool_)


def great_circle_km(positions: NDArray[np.int32], center: tuple[int, int]) -> NDArray[np.float64]:
    """From positions, (n, 2) of x and y, to a place."""
    longitude, latitude = np.radians(positions.astype(np.float64) / MILLIONTHS).T
    x, y = math.radians(center[0] / MILLIONTHS), math.radians(center[1] / MILLIONTHS)
    up, along = np.sin((latitude - y) / 2), np.sin((longitude - x) / 2)
    haversine = up * up + np.cos(latitude) * math.cos(y) * along * along
    kilometres: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(haversine, 0.0, 1.0)))
    return kilometres


def numbers_of(view: PositionView, lids: Lids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of all positions of rows, one row after another; and how many each has."""
    numbers, rows = _parts(view)
    if rows is not None:
        places, lengths = places_of(rows[lids])
        return numbers[places], lengths
    found = numbers[lids]
    there = found != _UNSET
    return found[there], there.astype(np.int64)


def _parts(view: PositionView) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    """The numbers of a column and, where it is one of arrays, the rows that they are in."""
    if isinstance(view.numbers, ArrayView):
        return view.numbers.values, view.numbers.rows
    assert isinstance(view.numbers, NumericView)
    return view.numbers.values, None


def _millionths(degrees: float) -> int:
    """Towards zero, as in Vespa, but for what floating point takes from a whole number."""
    return int(degrees * MILLIONTHS + math.copysign(1e-6, degrees))
