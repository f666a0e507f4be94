"""reduce: one value of the cells along dimensions.

What is reduced to a tensor without mapped dimensions is 0 where there are no cells. Sums and products are in the cell
type of the result: all cells to one number are added in double.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#reduce
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.core.clock import check_time
from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.cells import Cells, converted
from paperwasp.document.tensor.algebra.keys import numbered, ordered, ordered_within
from paperwasp.document.tensor.algebra.pieces import PIECE_CELLS
from paperwasp.document.tensor.algebra.rows import Rows, bounds, check_size, take_memory
from paperwasp.document.tensor.batch import LabelNumbers, TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES


def reduced(batch: TensorBatch, aggregator: str, dimensions: Sequence[str] = ()) -> TensorBatch:
    """The aggregate of the cells along these dimensions, or of all. `aggregator`: of `AGGREGATORS`."""
    type_ = rules.reduced(batch.type, dimensions)
    removed = set(dimensions) or {d.name for d in batch.type.dimensions}
    axes = tuple(axis for axis, d in enumerate(batch.type.indexed, 1) if d.name in removed)
    columns = [column for column, d in enumerate(batch.type.mapped) if d.name not in removed]
    groups = _group_rows(batch, columns)
    check_size(max(len(batch.cells), groups.count), type_)
    with np.errstate(all="ignore"):
        values = AGGREGATORS[aggregator](batch.cells, axes, groups, np.dtype(DTYPES[type_.cell_type]))
    cells = groups.spread(converted(values, type_.cell_type), type_)
    return TensorBatch(type_, groups.starts, groups.labels, cells, batch.is_single)


@dataclass(frozen=True, slots=True, eq=False)
class _Groups:
    """Rows that become one row of the result. Those of no rows are left out: they are 0."""

    order: Rows | None
    """The rows, those of a group side by side; None: as they are."""
    places: Rows | None
    """Where each group begins in that order; None: each row is a group."""
    counts: Rows
    """Rows of each group."""
    targets: Rows | None
    """The row of the result of each group; None: as they are."""
    starts: Rows
    labels: LabelNumbers

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def aggregate_rows(self, function: Any, rows: Cells, **options: Any) -> Cells:
        """Applies a binary function of NumPy over the rows of each group."""
        if self.places is None:
            return rows
        if self.order is not None:
            take_memory(rows.nbytes, "putting cells in order")
            rows = rows[self.order]
        if not len(self.places):
            return rows[:0]
        result: Cells = function.reduceat(rows, self.places, axis=0, **options)
        return result

    def spread(self, values: Cells, type_: TensorType) -> Cells:
        """The values of the groups as the rows of the result."""
        if self.targets is None:
            return values
        cells = np.zeros((self.count, *type_.shape), values.dtype)
        cells[self.targets] = values
        return cells


def _group_rows(batch: TensorBatch, columns: Sequence[int]) -> _Groups:
    """Groups the rows by the hit and the labels in these columns."""
    if len(columns) == len(batch.type.mapped):
        return _Groups(None, None, np.ones(len(batch.labels), np.int64), None, batch.starts, batch.labels)
    if not columns:
        counts = batch.counts
        filled = np.flatnonzero(counts)
        starts = np.arange(batch.hits + 1, dtype=np.int64)
        labels = np.zeros((batch.hits, 0), np.int64)
        targets = None if len(filled) == batch.hits else filled
        return _Groups(None, batch.starts[filled], counts[filled], targets, starts, labels)
    owners = batch.owners
    order, in_order = ordered(numbered([owners, *(batch.labels[:, column] for column in columns)]))
    is_first = np.ones(len(order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    places = np.flatnonzero(is_first)
    firsts = order[places]
    counts = np.diff(places, append=len(order))
    starts = bounds(np.bincount(owners[firsts], minlength=batch.hits))
    return _Groups(order, places, counts, None, starts, batch.labels[firsts][:, list(columns)])


Axes = tuple[int, ...]
_Aggregate = Callable[[Cells, Axes, _Groups, "np.dtype[Any]"], Cells]
"""From the cells, the axes to reduce and the groups of rows to a row for each group, computed in a type."""


def _fold(function: Any) -> _Aggregate:
    """Makes the aggregate of a function of two values that is applied until one is left."""

    def aggregate(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
        rows = function.reduce(cells, axis=axes, dtype=dtype) if axes else cells
        return groups.aggregate_rows(function, rows, dtype=dtype)

    return aggregate


def _outermost(function: Any, without: float) -> _Aggregate:
    """The largest or smallest. NaN is passed over; `without`: what there is with nothing else."""

    def aggregate(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
        rows = function.reduce(cells, axis=axes) if axes else cells
        values: Cells = groups.aggregate_rows(function, rows).astype(dtype)
        values[np.isnan(values)] = without
        return values

    return aggregate


def _sum(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
    """Sums cells. A sum begins with 0, so that it is never -0."""
    sums: Cells = _fold(np.add)(cells, axes, groups, dtype) + dtype.type(0)
    return sums


def _sizes(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
    """How many cells each value is of, for groups of rows with axes of length 1."""
    each = math.prod(cells.shape[axis] for axis in axes)
    kept = cells.ndim - 1 - len(axes)
    sizes: Cells = (groups.counts * each).astype(dtype)
    return sizes.reshape(-1, *[1] * kept)


def _count(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
    kept = [length for axis, length in enumerate(cells.shape) if axis and axis not in axes]
    return np.broadcast_to(_sizes(cells, axes, groups, dtype), (len(groups.counts), *kept)).copy()


def _average(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
    average: Cells = _sum(cells, axes, groups, dtype) / _sizes(cells, axes, groups, dtype)
    return average


def _median(cells: Cells, axes: Axes, groups: _Groups, dtype: np.dtype[Any]) -> Cells:
    """The middle one, or half of the sum of the two in the middle; NaN among them makes it NaN."""
    cells = cells.astype(dtype, copy=False)
    kept = [axis for axis in range(1, cells.ndim) if axis not in axes]
    shape = [cells.shape[axis] for axis in kept]
    columns, each = math.prod(shape), math.prod(cells.shape[axis] for axis in axes)
    take_memory(cells.nbytes, "sorting cells")
    rows = cells.transpose(0, *kept, *axes).reshape(len(cells), columns, each)
    if groups.places is None:
        return _medians_of_rows(rows.reshape(-1, each)).reshape(len(cells), *shape)
    take_memory(_SORTING * cells.size, "sorting cells")
    if groups.order is not None:
        rows = rows[groups.order]
    owners = np.repeat(np.arange(len(groups.counts)), groups.counts)
    keys = (owners[:, None] * columns + np.arange(columns)).repeat(each)
    values = rows.reshape(-1)
    values = values[ordered_within(keys.reshape(-1), values)]
    sizes = np.repeat(groups.counts * each, columns)
    starts = bounds(sizes)[:-1]
    middle = values[starts + sizes // 2]
    below = values[starts + np.maximum(sizes // 2 - 1, 0)]
    medians: Cells = np.where(sizes % 2 == 1, middle, (middle + below) / dtype.type(2))
    medians[np.isnan(values[starts + sizes - 1])] = np.nan
    return medians.reshape(len(groups.counts), *shape)


_SORTING: Final = 6 * 8
"""Bytes that a cell takes while cells of several rows are sorted together."""


def _medians_of_rows(rows: Cells) -> Cells:
    """That of each row, all of one length."""
    length = rows.shape[1]
    medians = np.empty(len(rows), rows.dtype)
    step = max(1, PIECE_CELLS // max(1, length))
    for start in range(0, len(rows), step):
        check_time()
        part = rows[start : start + step]
        part = np.sort(part, axis=1)
        middle, below = part[:, length // 2], part[:, max(length // 2 - 1, 0)]
        found = middle if length % 2 == 1 else (middle + below) / rows.dtype.type(2)
        medians[start : start + step] = np.where(np.isnan(part[:, -1]), np.nan, found)
    return medians


AGGREGATORS: Final[Mapping[str, _Aggregate]] = {
    "avg": _average,
    "count": _count,
    "max": _outermost(np.fmax, -math.inf),
    "median": _median,
    "min": _outermost(np.fmin, math.inf),
    "prod": _fold(np.multiply),
    "sum": _sum,
}
