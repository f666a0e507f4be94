"""Functions of each cell, and cells chosen: map, cells of other types, cell_order, top, slices.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#map
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.reduced import reduced
from paperwasp.document.tensor.algebra.rows import (
    CELL_FUNCTIONS,
    CellFunction,
    Cells,
    Rows,
    aligned,
    apply_function,
    bounds,
    check_size,
    converted,
    operand,
    ordered_within,
    spread,
    taken,
    with_rows,
)
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import TensorType


def mapped(batch: TensorBatch, function: CellFunction) -> TensorBatch:
    """The function of each cell."""
    type_ = rules.mapped(batch.type)
    check_size(len(batch.cells), type_)
    return _with(batch, type_, apply_function(function, batch.cells.shape, type_.cell_type, batch.cells))


def cast(batch: TensorBatch, cell_type: str) -> TensorBatch:
    """With cells of this type.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#cell_cast
    """
    return retyped(batch, rules.cast(batch.type, cell_type))


def retyped(batch: TensorBatch, type_: TensorType) -> TensorBatch:
    """The same cells in a type that has the same dimensions."""
    if type_ == batch.type:
        return batch
    check_size(len(batch.cells), type_)
    return _with(batch, type_, converted(batch.cells, type_.cell_type))


def unpacked(batch: TensorBatch, cell_type: str = "float", endian: str = "big") -> TensorBatch:
    """A cell for each bit of cells of int8, along the last indexed dimension; `endian`: which bit is the first.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#unpack-bits
    """
    type_ = rules.unpacked(batch.type, cell_type)
    check_size(len(batch.cells), type_)
    octets = np.ascontiguousarray(batch.cells).view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little" if endian == "little" else "big")
    return _with(batch, type_, converted(bits, cell_type))


def _with(batch: TensorBatch, type_: TensorType, cells: Cells) -> TensorBatch:
    return TensorBatch(type_, batch.starts, batch.labels, cells, batch.is_single)


# cell_order: the rank of each cell; top: the cells of the highest ranks.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#cell-order


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


# Slices: the cells at one place in some dimensions, which may be another place for each hit.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#slice


Places = Rows
"""A place in one dimension for each hit, or a single one for all: the number of a label, or an index."""

_NOWHERE: Final = np.iinfo(np.int64).min
"""A number that no label has, and no place in an indexed dimension."""
_OWN_NUMBERS: Final = 10**18
"""Whole numbers below this are the numbers of their labels."""


def index_place(index: int) -> Places:
    return np.array([index], np.int64)


def label_place(label: str, labels: Labels) -> Places:
    number = labels.known(label)
    return np.array([_NOWHERE if number is None else number], np.int64)


def index_places(values: NDArray[np.float64]) -> Places:
    """The places in an indexed dimension that computed numbers name; fractions are cut off."""
    return _whole(values)


def label_places(values: NDArray[np.float64], labels: Labels) -> Places:
    """The labels that computed numbers name: the numbers in digits; fractions are cut off."""
    whole = _whole(values)
    is_text = (whole < 0) | (whole >= _OWN_NUMBERS)
    if is_text.any():
        texts, at = np.unique(whole[is_text], return_inverse=True)
        known = [labels.known(str(number)) for number in texts.tolist()]
        numbers = np.array([_NOWHERE if number is None else number for number in known], np.int64)
        whole[is_text] = numbers[at.reshape(-1)]
    return whole


def _whole(values: NDArray[np.float64]) -> Places:
    fits = np.abs(values) < 2.0**63
    return np.where(fits, np.where(fits, values, 0.0).astype(np.int64), _NOWHERE)


def sliced(batch: TensorBatch, places: Mapping[str, Places]) -> TensorBatch:
    """The cells at a place in each of these dimensions. Where there is none: 0 if no mapped dimension is left."""
    type_ = rules.sliced(batch.type, list(places))
    keys = _keys(batch.type, places)
    found = aligned(batch, keys, TensorType.of([*batch.type.mapped, *type_.indexed], type_.cell_type))
    owners = np.repeat(np.arange(len(found.starts) - 1), np.diff(found.starts))
    rows = owners * 0 if batch.is_single and not batch.type.mapped else found.a
    rows = np.arange(found.count) if rows is None else rows
    there = np.ones(found.count, np.bool_)
    indexes: list[Any] = []
    for dimension in batch.type.indexed:
        if dimension.name not in places:
            indexes.append(slice(None))
            continue
        given = places[dimension.name]
        index = given[owners] if len(given) > 1 else np.broadcast_to(given, len(owners))
        there &= (index >= 0) & (index < (dimension.size or 0))
        indexes.append(index)
    if not there.all():
        indexes = [index if isinstance(index, slice) else index[there] for index in indexes]
    cells = converted(batch.cells[(rows[there], *indexes)], type_.cell_type)
    if not type_.mapped:
        return _one_each(type_, len(found.starts) - 1, owners[there], cells, found.is_single)
    kept = [column for column, d in enumerate(batch.type.mapped) if d.name not in places]
    starts = bounds(there.astype(np.int64))[found.starts]
    return TensorBatch(type_, starts, found.labels[there][:, kept], cells, found.is_single)


def _keys(type_: TensorType, places: Mapping[str, Places]) -> TensorBatch:
    """For each hit one subspace, whose labels are the places in mapped dimensions."""
    hits = next((len(column) for column in places.values() if len(column) != 1), 1)
    mapped = [d for d in type_.mapped if d.name in places]
    columns = [np.broadcast_to(places[d.name], hits) for d in mapped]
    labels = np.stack(columns, axis=1) if columns else np.zeros((hits, 0), np.int64)
    return TensorBatch(TensorType.of(mapped), np.arange(hits + 1), labels, np.zeros(hits), is_single=hits == 1)


def _one_each(type_: TensorType, hits: int, owners: Rows, cells: NDArray[Any], is_single: bool) -> TensorBatch:
    """A batch of one row for each hit, 0 for those that are no owners."""
    all_cells = cells
    if len(owners) < hits:
        all_cells = np.zeros((hits, *type_.shape), cells.dtype)
        all_cells[owners] = cells
    return TensorBatch.dense(type_, np.ascontiguousarray(all_cells), is_single)


# map_subspaces and filter_subspaces: functions of the dense subspaces; and tensors chosen for each hit.
#
# The subspaces of a batch are the tensors of another one: of as many hits as there are subspaces.
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#map-subspaces


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
