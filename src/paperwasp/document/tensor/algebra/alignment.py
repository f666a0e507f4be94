"""Which subspaces of two batches belong together: those of one hit with the same labels in the dimensions that both
have. Matching is by sorted keys of (hit, labels), never row by row.
"""

from __future__ import annotations

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.document.tensor.algebra.cells import Cells
from paperwasp.document.tensor.algebra.keys import places
from paperwasp.document.tensor.algebra.rows import Rows, bounds, check_size, ranges, take_memory
from paperwasp.document.tensor.batch import LabelNumbers, TensorBatch
from paperwasp.document.tensor.types import TensorType


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Rows of a result, each of one row of a batch `a` and one of a batch `b`."""

    a: Rows | None
    """None: all rows of `a` in order, or its only row for all."""
    b: Rows | None
    starts: Rows
    labels: LabelNumbers
    is_single: bool

    @property
    def count(self) -> int:
        return int(self.starts[-1])

    def batch(self, type_: TensorType, cells: Cells) -> TensorBatch:
        """The result of these cells."""
        return TensorBatch(type_, self.starts, self.labels, cells, self.is_single)


def picked(cells: Cells, rows: Rows | None, part: slice = slice(None)) -> Cells:
    """The cells of these rows, or of a part of them. Errors: TooLarge, as `take_memory`."""
    if rows is None:
        return cells[part]
    wanted = rows[part]
    take_memory(len(wanted) * (cells.nbytes // max(1, len(cells))), "putting cells beside others")
    return cells[wanted]


def beside(cells: Cells, type_: TensorType, result: TensorType) -> Cells:
    """Cells (rows, *type.shape) with an axis for each indexed dimension of the result: of length 1 for one it lacks."""
    sizes = {d.name: d.size or 0 for d in type_.indexed}
    return cells.reshape(len(cells), *(sizes.get(d.name, 1) for d in result.indexed))


def aligned(a: TensorBatch, b: TensorBatch, result: TensorType) -> Alignment:
    """The rows that are combined to a `result`, which has the mapped dimensions of both. Errors: `check_size`."""
    is_single = a.is_single and b.is_single
    hits = b.hits if a.is_single else a.hits
    if not a.is_single and not b.is_single and a.hits != b.hits:
        raise AssertionError(f"batches of {a.hits} and {b.hits} hits cannot be combined")
    if not b.type.mapped:
        return _with_dense(a, b, hits, result)
    if not a.type.mapped:
        return _swap_sides(_with_dense(b, a, hits, result))
    if a.labels is b.labels and a.starts is b.starts and a.type.mapped == b.type.mapped:
        check_size(len(a.labels), result)
        return Alignment(None, None, a.starts, a.labels, is_single)
    if a.is_single and not b.is_single:
        return _swap_sides(_match_rows(b, a, result))
    return _match_rows(a, b, result)


def crossed(a: TensorBatch, single: TensorBatch, result: TensorType) -> Alignment:
    """Each row of `a` with all rows of `single`, which has no mapped dimension of it; without their numbers."""
    count = len(single.labels)
    check_size(len(a.labels) * count, result)
    labels = np.empty((len(a.labels), count, len(result.mapped)), np.int64)
    names = [[d.name for d in side.type.mapped] for side in (a, single)]
    for column, dimension in enumerate(result.mapped):
        if dimension.name in names[0]:
            labels[:, :, column] = a.labels[:, names[0].index(dimension.name), None]
        else:
            labels[:, :, column] = single.labels[:, names[1].index(dimension.name)]
    rows = labels.reshape(len(a.labels) * count, len(result.mapped))
    return Alignment(None, None, a.starts * count, rows, a.is_single)


def _swap_sides(found: Alignment) -> Alignment:
    return Alignment(found.b, found.a, found.starts, found.labels, found.is_single)


def _with_dense(a: TensorBatch, b: TensorBatch, hits: int, result: TensorType) -> Alignment:
    """`b` has one row for each hit, or one for all."""
    if a.is_single and not b.is_single:
        each = len(a.labels)
        check_size(each * hits, result)
        starts = np.arange(hits + 1, dtype=np.int64) * each
        if not a.type.mapped:
            return Alignment(None, None, starts, b.labels, is_single=False)
        rows = np.tile(np.arange(each), hits)
        return Alignment(rows, np.repeat(np.arange(hits), each), starts, a.labels[rows], is_single=False)
    check_size(len(a.labels), result)
    of_hits = None if b.is_single or not a.type.mapped else a.owners
    return Alignment(None, of_hits, a.starts, a.labels, a.is_single)


def _match_rows(outer: TensorBatch, inner: TensorBatch, result: TensorType) -> Alignment:
    """Finds for each row of `outer` those of `inner` that it meets. The result is in the order of `outer`, which is
    single only if `inner` is too."""
    outer_names = [d.name for d in outer.type.mapped]
    inner_names = [d.name for d in inner.type.mapped]
    common = [name for name in outer_names if name in inner_names]
    if common:
        outer_columns = [outer.labels[:, outer_names.index(name)] for name in common]
        inner_columns = [inner.labels[:, inner_names.index(name)] for name in common]
        if not inner.is_single:
            outer_columns.insert(0, outer.owners)
            inner_columns.insert(0, inner.owners)
        order, starts, counts = places(inner_columns, outer_columns)
    else:
        order = np.arange(len(inner.labels))
        hits = np.zeros(len(outer.labels), np.int64) if inner.is_single else outer.owners
        starts, counts = inner.starts[:-1][hits], inner.counts[hits]
    row_starts = bounds(counts)
    check_size(int(row_starts[-1]), result)
    outer_rows = np.repeat(np.arange(len(outer.labels)), counts)
    inner_rows = order[ranges(starts, counts)]
    labels = np.empty((len(outer_rows), len(result.mapped)), np.int64)
    for column, dimension in enumerate(result.mapped):
        if dimension.name in outer_names:
            labels[:, column] = outer.labels[outer_rows, outer_names.index(dimension.name)]
        else:
            labels[:, column] = inner.labels[inner_rows, inner_names.index(dimension.name)]
    return Alignment(outer_rows, inner_rows, row_starts[outer.starts], labels, outer.is_single)
