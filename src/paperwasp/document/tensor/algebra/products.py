"""The sums of the products of two tensors along dimensions, without the tensor of all products where that can be.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#matmul-t1-t2
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.alignment import Alignment, aligned, crossed, picked
from paperwasp.document.tensor.algebra.cells import CELL_FUNCTIONS, Cells, converted
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.reduced import reduced
from paperwasp.document.tensor.algebra.rows import take_memory
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES

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


@dataclass(frozen=True, slots=True)
class _Matrix:
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
