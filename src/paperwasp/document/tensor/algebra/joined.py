"""join: a function of the cells of two tensors that agree in the dimensions both have; merge; concat; rename.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#join
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.algebra.rows import (
    Alignment,
    CellFunction,
    Cells,
    Rows,
    aligned,
    apply_function,
    beside,
    bounds,
    check_size,
    converted,
    operand,
    picked,
    spread,
)
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType


def joined(a: TensorBatch, b: TensorBatch, function: CellFunction) -> TensorBatch:
    """The function of each pair of cells that agree in the dimensions that both have."""
    type_ = rules.joined(a.type, b.type)
    pairs = aligned(a, b, type_)
    return pairs.batch(type_, _combine(a, b, pairs, type_, function))


def merged(a: TensorBatch, b: TensorBatch, function: CellFunction) -> TensorBatch:
    """The cells of both; the function of them where both have one.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#merge
    """
    type_ = rules.merged(a.type, b.type)
    if not type_.mapped:
        return joined(a, b, function)
    is_single = a.is_single and b.is_single
    hits = b.hits if a.is_single else a.hits
    a, b = spread(a, hits), spread(b, hits)
    pairs = aligned(a, b, type_)
    both = _combine(a, b, pairs, type_, function)
    only_a, only_b = _others(pairs.a, len(a.cells)), _others(pairs.b, len(b.cells))
    check_size(len(both) + len(only_a) + len(only_b), type_)
    owners = np.concatenate(
        [np.repeat(np.arange(hits), np.diff(pairs.starts)), a.owners[only_a], b.owners[only_b]],
    )
    order = np.argsort(owners, kind="stable")
    labels = np.concatenate([pairs.labels, a.labels[only_a], b.labels[only_b]])
    sides = (converted(side.cells[rows], type_.cell_type) for side, rows in ((a, only_a), (b, only_b)))
    cells = np.concatenate([both, *sides])
    starts = bounds(np.bincount(owners, minlength=hits))
    return TensorBatch(type_, starts, labels[order], cells[order], is_single)


def _combine(a: TensorBatch, b: TensorBatch, pairs: Alignment, type_: TensorType, function: CellFunction) -> Cells:
    shape = (pairs.count, *type_.shape)
    operands = [
        np.broadcast_to(beside(operand(picked(side.cells, rows)), side.type, type_), shape)
        for side, rows in ((a, pairs.a), (b, pairs.b))
    ]
    return apply_function(function, shape, type_.cell_type, *operands)


def _others(rows: Rows | None, count: int) -> Rows:
    """The rows that are not among these."""
    is_other = np.ones(count, np.bool_)
    is_other[slice(None) if rows is None else rows] = False
    return np.flatnonzero(is_other)


# concat: joins tensors end to end along an indexed dimension; rename: gives dimensions other names.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#concat


def concatenated(a: TensorBatch, b: TensorBatch, dimension: str) -> TensorBatch:
    """The places of `a` in this dimension, and after them those of `b`; one that lacks it has one place."""
    type_ = rules.concatenated(a.type, b.type, dimension)
    pairs = aligned(a, b, type_)
    axis = 1 + [d.name for d in type_.indexed].index(dimension)
    parts = []
    for side, rows in ((a, pairs.a), (b, pairs.b)):
        cells = beside(converted(picked(side.cells, rows), type_.cell_type), side.type, type_)
        shape = [pairs.count, *type_.shape]
        shape[axis] = cells.shape[axis]
        parts.append(np.broadcast_to(cells, shape))
    return pairs.batch(type_, np.concatenate(parts, axis))


def renamed(batch: TensorBatch, old: Sequence[str], new: Sequence[str]) -> TensorBatch:
    """With these dimensions named otherwise.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#rename
    """
    type_ = rules.renamed(batch.type, old, new)
    names = dict(zip(old, new, strict=True))
    mapped = [names.get(d.name, d.name) for d in batch.type.mapped]
    indexed = [names.get(d.name, d.name) for d in batch.type.indexed]
    columns = [mapped.index(d.name) for d in type_.mapped]
    axes = [1 + indexed.index(d.name) for d in type_.indexed]
    labels = batch.labels if columns == sorted(columns) else np.ascontiguousarray(batch.labels[:, columns])
    cells = np.ascontiguousarray(batch.cells.transpose(0, *axes))
    return TensorBatch(type_, batch.starts, labels, cells, batch.is_single)
