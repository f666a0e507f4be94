"""The sums of the products of two tensors along dimensions, without the tensor of all products where that can be.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#matmul-t1-t2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

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
    dtype = DTYPES[products.cell_type]
    shared = {d.name for d in a.type.dimensions} & {d.name for d in b.type.dimensions}
    with np.errstate(all="ignore"):
        if b.is_single and shared == summed:
            cells = _all_pairs(a, b, type_, dtype)
        else:
            cells = _own_pairs(a, b, pairs, type_, dtype)
    return pairs.batch(type_, converted(cells, type_.cell_type))


def _all_pairs(a: TensorBatch, b: TensorBatch, type_: TensorType, dtype: str) -> Cells:
    """Each row of `a` with each of `b`, as one product of matrices. All dimensions that both have are summed."""
    names = [[d.name for d in side.type.indexed] for side in (a, b)]
    shared = [name for name in names[0] if name in names[1]]
    axes = [[1 + of_side.index(name) for name in shared] for of_side in names]
    left, right = (side.cells.astype(dtype, copy=False) for side in (a, b))
    product: Cells = np.tensordot(left, right, (axes[0], axes[1]))
    kept = ["", *(n for n in names[0] if n not in shared), "", *(n for n in names[1] if n not in shared)]
    order = [0, kept.index("", 1), *(kept.index(d.name) for d in type_.indexed)]
    return product.transpose(order).reshape(-1, *type_.shape)


def _own_pairs(a: TensorBatch, b: TensorBatch, pairs: Alignment, type_: TensorType, dtype: str) -> Cells:
    """Each row of one with the rows of the other that it belongs to."""
    numbers = {name: n for n, name in enumerate(sorted({d.name for d in (*a.type.indexed, *b.type.indexed)}), 1)}
    operands: list[Any] = []
    for side, rows in ((a, pairs.a), (b, pairs.b)):
        cells = picked(side.cells, rows).astype(dtype, copy=False)
        operands += [cells, [0, *(numbers[d.name] for d in side.type.indexed)]]
    sums: Cells = np.einsum(*operands, [0, *(numbers[d.name] for d in type_.indexed)])
    return np.broadcast_to(sums, (pairs.count, *type_.shape))
