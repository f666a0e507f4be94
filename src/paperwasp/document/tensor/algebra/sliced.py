"""Slices: the cells at one place in some dimensions, which may be another place for each hit.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#slice
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.alignment import aligned
from paperwasp.document.tensor.algebra.cells import converted
from paperwasp.document.tensor.algebra.rows import Rows, bounds
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import TensorType

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
