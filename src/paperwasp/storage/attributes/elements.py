"""The reads by ranking of columns with many values: the numbers of arrays, the weights of sets, positions.

Columns that are imported are read through their references.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.storage.attributes.areas import numbers_of
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.column import ColumnView, Lids
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.position import PositionView, positions_of
from paperwasp.storage.attributes.rows import places_of
from paperwasp.storage.attributes.tensor import NO_LABEL, TensorView

Counts = NDArray[np.int64]
"""How many values each lid has; the values of all stand one lid after another."""


def numbers_in(column: ColumnView, lids: Lids) -> tuple[Counts, NDArray[np.float64]]:
    """The elements of arrays of numbers; of any other column none."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or inner.dictionary is not None:
        return counts, np.zeros(0)
    places, lengths = places_of(inner.rows[rows])
    counts[is_there] = lengths
    return counts, inner.values[places].astype(np.float64)


def sums_by_key(column: ColumnView, lids: Lids, weights: Mapping[Value, float]) -> NDArray[np.float64]:
    """For each set the sum of the products of the weights of its keys and theirs here."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or not weights:
        return np.zeros(len(lids))
    known = {_number_of(inner, key): weight for key, weight in weights.items()}
    known.pop(None, None)
    keys = np.array(sorted(known), np.int64)  # type: ignore[type-var]
    if not len(keys):
        return np.zeros(len(lids))
    factors = np.array([known[key] for key in keys.tolist()])
    places, lengths = places_of(inner.rows[rows])
    counts[is_there] = lengths
    values = inner.values[places].astype(np.int64)
    found = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
    weights_here = inner.key_weights[places].astype(np.float64)
    products = np.where(keys[found] == values, factors[found], 0.0) * weights_here
    return sums_of(counts, products)


def _number_of(view: ArrayView, key: Value) -> int | None:
    """The number that stands for a key in a column: a code, or the number itself; None: no code."""
    return view.dictionary.find(key) if view.dictionary is not None else key


def weights_of(column: ColumnView, lids: Lids) -> NDArray[np.float64]:
    """The sum of all weights of each set."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or not len(inner.key_weights):
        return np.zeros(len(lids))
    places, lengths = places_of(inner.rows[rows])
    counts[is_there] = lengths
    return sums_of(counts, inner.key_weights[places].astype(np.float64))


def positions_in(column: ColumnView, lids: Lids) -> tuple[Counts, NDArray[np.int32]]:
    """The positions, (n, 2) of x and y in millionths of degrees."""
    inner, rows, counts, is_there = own_rows(column, lids)
    assert isinstance(inner, PositionView)
    numbers, lengths = numbers_of(inner, rows)
    counts[is_there] = lengths
    return counts, positions_of(numbers)


def subspace_labels(column: ColumnView, lids: Lids, subspaces: NDArray[np.uint32]) -> list[tuple[str, ...]]:
    """The labels of the subspace with a number in the tensor of each lid, all of which have it."""
    inner, rows, _, _ = own_rows(column, lids)
    assert isinstance(inner, TensorView) and len(rows) == len(lids)
    starts = (inner.rows[rows] >> np.uint64(24)).astype(np.int64)
    codes = inner.labels[starts + subspaces]
    assert not (codes == NO_LABEL).any()
    return [tuple(inner.dictionary.decode(row)) for row in codes.tolist()]


def numbers_within(counts: Counts) -> NDArray[np.int64]:
    """The number, from 0, of each value among those of its lid."""
    numbers: NDArray[np.int64] = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def sums_of(counts: Counts, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the values of each lid."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return np.bincount(owners, values, len(counts)).astype(np.float64)


def own_rows(column: ColumnView, lids: Lids) -> tuple[ColumnView, Lids, Counts, NDArray[np.bool_]]:
    """The column that has the values, the rows of lids in it, a count of 0 for each lid, and whether it has a row."""
    is_there = np.ones(len(lids), np.bool_)
    while isinstance(column, ImportedView):
        parents, found = column.parents(lids)
        is_there[is_there] = found
        column, lids = column.parent, parents[found]
    return column, lids, np.zeros(len(is_there), np.int64), is_there
