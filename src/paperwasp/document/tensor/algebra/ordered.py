"""cell_order: the rank of each cell; top: the cells of the highest ranks.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#cell-order
"""

from __future__ import annotations

import math

import numpy as np

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.cells import CELL_FUNCTIONS, converted, operand
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.keys import ordered_within
from paperwasp.document.tensor.algebra.rows import check_size
from paperwasp.document.tensor.algebra.subspaces import filter_subspaces
from paperwasp.document.tensor.batch import TensorBatch


def cell_order(batch: TensorBatch, order: str) -> TensorBatch:
    """The rank of each cell among those of its hit, from 0: the largest first for `max`, the smallest for `min`. NaN
    comes last; of equal cells the one that stands first is the first."""
    type_ = rules.mapped(batch.type)
    check_size(len(batch.cells), type_)
    each = math.prod(batch.type.shape)
    values = operand(batch.cells).reshape(-1)
    owners = np.repeat(batch.owners, each)
    in_order = ordered_within(owners, -values if order == "max" else values)
    ranks = np.empty(len(values))
    ranks[in_order] = np.arange(len(values)) - batch.starts[owners] * each
    cells = converted(ranks, type_.cell_type).reshape(batch.cells.shape)
    return TensorBatch(type_, batch.starts, batch.labels, cells, batch.is_single)


def top(n: TensorBatch, batch: TensorBatch) -> TensorBatch:
    """The `n` largest cells, where each subspace is one cell.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#top-t
    """
    is_top = filter_subspaces(joined(cell_order(batch, "max"), n, CELL_FUNCTIONS["less"]), lambda subspace: subspace)
    return joined(batch, is_top, CELL_FUNCTIONS["multiply"])
