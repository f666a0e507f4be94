"""reduce: one value of the cells along dimensions; and the sums of the products of two tensors, without the tensor
of all products.

What is reduced to a tensor without mapped dimensions is 0 where there are no cells. Sums and products are in the cell
type of the result: all cells to one number are added in double.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#reduce
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.rows import (
    CELL_FUNCTIONS,
    PIECE_CELLS,
    Alignment,
    Cells,
    Rows,
    aligned,
    bounds,
    check_size,
    converted,
    crossed,
    numbered,
    ordered,
    ordered_within,
    picked,
    take_memory,
)
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


class _Groups(Struct, frozen=True, eq=False):
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


# The sums of the products of two tensors along dimensions, without the tensor of all products where that can be.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#matmul-t1-t2


_EINSUM_DIMENSIONS: Final = 24
"""The dimensions that NumPy's einsum takes at a time, with room for the rows."""
_PRODUCTS: Final = 1 << 21
"""That are summed at a time, of rows that must be brought together first: what stays in the cache."""


def summed_products(a: TensorBatch, b: TensorBatch, dimensions: Sequence[str] = ()) -> TensorBatch:
    """`reduce(a * b, sum, dimensions)`."""
    products = rules.joined(a.type, b.type)
    type_ = rules.reduced(products, dimensions)
    summed = set(dimensions) or {d.name for d in products.dimensions}
    in_both = {d.name for d in a.type.indexed} & {d.name for d in b.type.indexed}
    if not summed <= in_both or len(products.indexed) > _EINSUM_DIMENSIONS:
        return reduced(joined(a, b, CELL_FUNCTIONS["multiply"]), "sum", dimensions)
    if a.is_single and not b.is_single:
        a, b = b, a
    shared = {d.name for d in a.type.dimensions} & {d.name for d in b.type.dimensions}
    if b.is_single and shared == summed:
        return crossed(a, b, type_).batch(type_, converted(_all_pairs(a, b, products, type_), type_.cell_type))
    pairs = aligned(a, b, type_)
    with np.errstate(all="ignore"):
        parts = [converted(part, type_.cell_type) for part in _own_pairs(a, b, pairs, products, type_)]
    return pairs.batch(type_, np.concatenate(parts))


def _all_pairs(a: TensorBatch, b: TensorBatch, products: TensorType, type_: TensorType) -> Cells:
    """Each row of `a` with each of `b`, as the product of two matrices. All dimensions that both have are summed."""
    shared = [d.name for d in a.type.indexed if d in b.type.indexed]
    sides = [_matrix(side, shared, DTYPES[products.cell_type]) for side in (a, b)]
    few, many = sorted(sides, key=lambda side: len(side.rows))  # a row of the first meets many of the others
    take_memory(len(few.rows) * len(many.rows) * few.rows.itemsize, "a product of matrices")
    product = np.empty((len(few.rows), len(many.rows)), few.rows.dtype)
    _core.all_dots(few.rows, many.rows, product)
    if few is not sides[0]:
        product = product.T
    names = ["", *sides[0].kept, "", *sides[1].kept]
    lengths = [len(a.cells), *sides[0].lengths, len(b.cells), *sides[1].lengths]
    order = [0, names.index("", 1), *(names.index(d.name) for d in type_.indexed)]
    return product.reshape(lengths).transpose(order).reshape(-1, *type_.shape)


class _Matrix(Struct, frozen=True):
    """Cells with the summed dimensions as columns, and all else as rows: first the rows of the batch, then `kept`."""

    rows: Cells
    kept: tuple[str, ...]
    lengths: tuple[int, ...]


def _matrix(batch: TensorBatch, summed: Sequence[str], dtype: str) -> _Matrix:
    names = [d.name for d in batch.type.indexed]
    kept = tuple(name for name in names if name not in summed)
    axes = [1 + names.index(name) for name in (*kept, *summed)]
    columns = math.prod(batch.cells.shape[axis] for axis in axes[len(kept) :])
    if batch.cells.dtype != dtype:
        take_memory(batch.cells.size * np.dtype(dtype).itemsize, "cells of another type")
    cells = batch.cells.astype(dtype, copy=False).transpose(0, *axes)
    lengths = tuple(cells.shape[1 : 1 + len(kept)])
    if not cells.flags.c_contiguous:
        take_memory(cells.nbytes, "putting cells in order")
    rows = np.ascontiguousarray(cells.reshape(len(cells) * math.prod(lengths), columns))
    return _Matrix(rows, kept, lengths)


def _own_pairs(
    a: TensorBatch, b: TensorBatch, pairs: Alignment, products: TensorType, type_: TensorType
) -> Iterator[Cells]:
    """Each row of one with the rows of the other that it belongs to."""
    axes = {d.name: axis for axis, d in enumerate(products.indexed, 1)}
    whole = [d.name for d in type_.indexed]
    for part in _parts(pairs.count, math.prod(products.shape)):
        operands: list[Any] = []
        for side, rows in ((a, pairs.a), (b, pairs.b)):
            cells = side.cells if rows is None and len(side.cells) < pairs.count else picked(side.cells, rows, part)
            cells = cells.astype(DTYPES[products.cell_type], copy=False)
            operands += [cells, [0, *(axes[d.name] for d in side.type.indexed)]]
        sums = _summed(operands, [0, *(axes[name] for name in whole)], type_.shape, products.shape)
        sums = sums + sums.dtype.type(0)
        yield np.broadcast_to(sums, (part.stop - part.start, *type_.shape))


def _summed(operands: Sequence[Any], kept: Sequence[int], shape: Sequence[int], products: Sequence[int]) -> Cells:
    """The sums that keep these axes, by einsum. Large ones part by part of an axis that is kept.

    `operands`: arrays, each with its axes behind it. `shape`: of a row of sums; `products`: of the products of a row.
    """
    summed = math.prod(products) // max(1, math.prod(shape))
    axis = max(range(len(shape)), key=lambda number: shape[number], default=None)
    if axis is None or math.prod(products) <= _PRODUCTS:
        found: Cells = np.einsum(*operands, kept)
        return found
    step = max(1, _PRODUCTS * shape[axis] // max(1, summed * math.prod(shape)))
    parts = []
    for start in range(0, shape[axis], step):
        check_time()
        taken = slice(start, start + step)
        parts.append(np.einsum(*_cut(operands, kept[1 + axis], taken), kept))
    return np.concatenate(parts, 1 + axis)


def _cut(operands: Sequence[Any], axis: int, part: slice) -> Iterator[Any]:
    """The operands of einsum with a part of one axis."""
    for cells, axes in zip(operands[::2], operands[1::2], strict=True):
        if axis in axes:
            yield cells[(*[slice(None)] * axes.index(axis), part)]
        else:
            yield cells
        yield axes


def _parts(rows: int, products_of_row: int) -> Iterator[slice]:
    """The rows part by part; at least one part."""
    step = max(1, _PRODUCTS // max(1, products_of_row))
    for start in range(0, max(1, rows), step):
        check_time()
        yield slice(start, min(rows, start + step))
