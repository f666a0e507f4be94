"""concat: joins tensors end to end along an indexed dimension; rename: gives dimensions other names.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#concat
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.alignment import aligned, beside, picked
from paperwasp.document.tensor.algebra.cells import converted
from paperwasp.document.tensor.batch import TensorBatch


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
