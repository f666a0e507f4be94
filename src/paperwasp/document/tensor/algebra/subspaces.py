"""map_subspaces and filter_subspaces: functions of the dense subspaces; and tensors chosen for each hit.

The subspaces of a batch are the tensors of another one: of as many hits as there are subspaces.
Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#map-subspaces
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.cells import converted
from paperwasp.document.tensor.algebra.mapped import retyped
from paperwasp.document.tensor.algebra.reduced import reduced
from paperwasp.document.tensor.algebra.rows import Rows, bounds, check_size, spread, taken, with_rows
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType

BatchFunction = Callable[[TensorBatch], TensorBatch]


def map_subspaces(batch: TensorBatch, function: BatchFunction) -> TensorBatch:
    """The function of each dense subspace; it gives a tensor without mapped dimensions."""
    if not batch.type.mapped:
        return function(batch)
    results = spread(function(_subspaces(batch)), len(batch.cells))
    type_ = rules.with_subspaces(batch.type, results.type)
    check_size(len(results.cells), type_)
    cells = converted(results.cells, type_.cell_type)
    return TensorBatch(type_, batch.starts, batch.labels, cells, batch.is_single)


def filter_subspaces(batch: TensorBatch, function: BatchFunction) -> TensorBatch:
    """The subspaces for which the function is true: for which the sum of its cells is not 0.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#filter-subspaces
    """
    rules.filtered(batch.type)
    results = spread(function(_subspaces(batch)), len(batch.cells))
    sums = results if results.type.is_number else reduced(results, "sum")
    return with_rows(batch, sums.cells != 0.0)


def _subspaces(batch: TensorBatch) -> TensorBatch:
    """Each subspace as the tensor of a hit."""
    type_ = rules.dense_part(batch.type)
    return TensorBatch.dense(type_, converted(batch.cells, type_.cell_type))


def chosen(which: Rows, batches: Sequence[TensorBatch], type_: TensorType) -> TensorBatch:
    """For each hit the tensor of the batch of this number, in a type that holds those of all. `which`: one for each hit
    (a single one for all hits)."""
    batches = [retyped(batch, type_) for batch in batches]
    if len(which) == 1:
        return batches[int(which[0])]
    parts = []
    hits = []
    for choice, batch in enumerate(batches):
        own = np.flatnonzero(which == choice)
        parts.append(spread(batch, len(own)) if batch.is_single else taken(batch, own))
        hits.append(own)
    starts = bounds(np.concatenate([part.counts for part in parts]))
    check_size(int(starts[-1]), type_)
    united = TensorBatch(
        type_, starts, np.concatenate([p.labels for p in parts]), np.concatenate([p.cells for p in parts])
    )
    return taken(united, np.argsort(np.concatenate(hits), kind="stable"))
