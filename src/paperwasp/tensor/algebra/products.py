"""The sums of the products of two tensors along dimensions, without the tensor of all products where that can be.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#matmul-t1-t2
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from paperwasp.core.clock import check_time
from paperwasp.tensor import type_rules as rules
from paperwasp.tensor.algebra.alignment import Alignment, aligned, picked
from paperwasp.tensor.algebra.cells import CELL_FUNCTIONS, Cells, converted
from paperwasp.tensor.algebra.joined import joined
from paperwasp.tensor.algebra.reduced import reduced
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import DTYPES

_EINSUM_DIMENSIONS: Final = 24
"""What NumPy takes at a time, with room for the rows."""
_PRODUCTS: Final = 1 << 21
"""That are summed at a time, of rows that must be brought together first: what stays in the cache."""
_MATRIX_PRODUCTS: Final = 1 << 29
"""That are summed at a time by a product of matrices: what takes a fraction of a second."""


def summed_products(a: TensorBatch, b: TensorBatch, dimensions: Sequence[str] = ()) -> TensorBatch:
    """`reduce(a * b, sum, dimensions)`."""
    products = rules.joined(a.type, b.type)
    type_ = rules.reduced(products, dimensions)
    summed = set(dimensions) or {d.name for d in products.dimensions}
    in_both = {d.name for d in a.type.indexed} & {d.name for d in b.type.indexed}
    if not summed <= in_both or len(products.indexed) > _EINSUM_DIMENSIONS:
        return reduced(joined(a, b, CELL_FUNCTIONS["multiply"]), "sum", dimensions)
    pairs = aligned(a, b, type_)
    if a.is_single and not b.is_single:
        a, b, pairs = b, a, Alignment(pairs.b, pairs.a, pairs.starts, pairs.labels, pairs.is_single)
    shared = {d.name for d in a.type.dimensions} & {d.name for d in b.type.dimensions}
    work = _all_pairs if b.is_single and shared == summed else _own_pairs
    with np.errstate(all="ignore"):
        parts = [converted(part, type_.cell_type) for part in work(a, b, pairs, products, type_)]
    cells = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return pairs.batch(type_, cells)


def _all_pairs(
    a: TensorBatch, b: TensorBatch, pairs: Alignment, products: TensorType, type_: TensorType
) -> Iterator[Cells]:
    """Each row of `a` with each of `b`, as products of matrices. All dimensions that both have are summed."""
    names = [[d.name for d in side.type.indexed] for side in (a, b)]
    shared = [name for name in names[0] if name in names[1]]
    axes = [[1 + of_side.index(name) for name in shared] for of_side in names]
    kept = ["", *(n for n in names[0] if n not in shared), "", *(n for n in names[1] if n not in shared)]
    order = [0, kept.index("", 1), *(kept.index(d.name) for d in type_.indexed)]
    right = b.cells.astype(DTYPES[products.cell_type], copy=False)
    for rows in _parts(len(a.cells), len(b.cells) * math.prod(products.shape), _MATRIX_PRODUCTS):
        left = a.cells[rows].astype(right.dtype, copy=False)
        product: Cells = np.tensordot(left, right, (axes[0], axes[1]))
        yield product.transpose(order).reshape(-1, *type_.shape)


def _own_pairs(
    a: TensorBatch, b: TensorBatch, pairs: Alignment, products: TensorType, type_: TensorType
) -> Iterator[Cells]:
    """Each row of one with the rows of the other that it belongs to."""
    axes = {d.name: axis for axis, d in enumerate(products.indexed, 1)}
    for part in _parts(pairs.count, math.prod(products.shape), _PRODUCTS):
        operands: list[Any] = []
        for side, rows in ((a, pairs.a), (b, pairs.b)):
            cells = side.cells if rows is None and len(side.cells) < pairs.count else picked(side.cells, rows, part)
            cells = cells.astype(DTYPES[products.cell_type], copy=False)
            operands += [cells, [0, *(axes[d.name] for d in side.type.indexed)]]
        sums: Cells = np.einsum(*operands, [0, *(axes[d.name] for d in type_.indexed)])
        yield np.broadcast_to(sums, (part.stop - part.start, *type_.shape))


def _parts(rows: int, products_of_row: int, at_a_time: int) -> Iterator[slice]:
    """The rows part by part; at least one part."""
    step = max(1, at_a_time // max(1, products_of_row))
    for start in range(0, max(1, rows), step):
        check_time()
        yield slice(start, min(rows, start + step))
