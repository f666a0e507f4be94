"""The reads of columns by ranking: numbers of arrays, weights of sets, positions, tensors, and elements as labels.

Columns that are imported are read through their references. Strings are numbers in a batch of tensors, and are looked
up once for a query: `CodeTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.document.tensor.batch import KeptTensors, StoredTensors, TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.document.z_curve import positions_of
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.column import ColumnView, Lids
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.distances import numbers_of
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.position import PositionView
from paperwasp.storage.attributes.rows import places_of, split
from paperwasp.storage.attributes.string import StringView
from paperwasp.storage.attributes.tensor import NO_LABEL, TensorView, cells_at

Counts = NDArray[np.int64]
"""The number of values of each lid; the values of all stand one lid after another."""


def numbers_in(column: ColumnView, lids: Lids) -> tuple[Counts, NDArray[np.float64]]:
    """Read the elements of arrays of numbers; any other column has none."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or inner.dictionary is not None:
        return counts, np.zeros(0)
    places, lengths = places_of(inner.rows[rows])
    counts[is_there] = lengths
    return counts, inner.values[places].astype(np.float64)


def sums_by_key(column: ColumnView, lids: Lids, weights: Mapping[Value, float]) -> NDArray[np.float64]:
    """For each set, sum the products of the weights of its keys and those given."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or not weights:
        return np.zeros(len(lids))
    codes = inner.dictionary
    known = {key if codes is None else codes.find(key): weight for key, weight in weights.items()}
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


def weights_of(column: ColumnView, lids: Lids) -> NDArray[np.float64]:
    """Sum the weights of each set."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, ArrayView) or not len(inner.key_weights):
        return np.zeros(len(lids))
    places, lengths = places_of(inner.rows[rows])
    counts[is_there] = lengths
    return sums_of(counts, inner.key_weights[places].astype(np.float64))


def positions_in(column: ColumnView, lids: Lids) -> tuple[Counts, NDArray[np.int32]]:
    """Read the positions, (n, 2) of x and y in millionths of degrees."""
    inner, rows, counts, is_there = own_rows(column, lids)
    assert isinstance(inner, PositionView)
    numbers, lengths = numbers_of(inner, rows)
    counts[is_there] = lengths
    return counts, positions_of(numbers)


def subspace_labels(column: ColumnView, lids: Lids, subspaces: NDArray[np.uint32]) -> list[tuple[str, ...]]:
    """Read the labels of the subspace with a number in the tensor of each lid, all of which have it."""
    inner, rows, _, _ = own_rows(column, lids)
    assert isinstance(inner, TensorView) and len(rows) == len(lids)
    starts = (inner.rows[rows] >> np.uint64(24)).astype(np.int64)
    codes = inner.labels[starts + subspaces]
    assert not (codes == NO_LABEL).any()
    return [tuple(inner.dictionary.decode(row)) for row in codes.tolist()]


def numbers_within(counts: Counts) -> NDArray[np.int64]:
    """Return the number, from 0, of each value among those of its lid."""
    numbers: NDArray[np.int64] = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return numbers


def sums_of(counts: Counts, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the values of each lid."""
    owners = np.repeat(np.arange(len(counts)), counts)
    return np.bincount(owners, values, len(counts)).astype(np.float64)


def own_rows(column: ColumnView, lids: Lids) -> tuple[ColumnView, Lids, Counts, NDArray[np.bool_]]:
    """Return the column of the values, the rows of lids in it, a count of 0 for each lid, and whether it has a row."""
    is_there = np.ones(len(lids), np.bool_)
    while isinstance(column, ImportedView):
        parents, found = column.parents(lids)
        is_there[is_there] = found
        column, lids = column.parent, parents[found]
    return column, lids, np.zeros(len(is_there), np.int64), is_there


# Tensors, and elements as their labels

_UNKNOWN: Final = np.iinfo(np.int64).min


class CodeTable:
    """The numbers of the strings of a dictionary, each computed when it is first needed. For one query, any thread."""

    def __init__(self, numbers_of: Callable[[Sequence[str]], NDArray[Any]]) -> None:
        self._numbers_of = numbers_of
        self._dictionary: StringDictionary | None = None
        self._numbers: NDArray[np.int64] = np.zeros(0, np.int64)
        self._lock = Lock()

    def numbers(self, dictionary: StringDictionary, codes: NDArray[np.uint32]) -> NDArray[np.int64]:
        if not codes.size:
            return np.zeros(codes.shape, np.int64)
        with self._lock:
            return self._known(dictionary, codes)

    def _known(self, dictionary: StringDictionary, codes: NDArray[np.uint32]) -> NDArray[np.int64]:
        if dictionary is not self._dictionary:
            self._dictionary, self._numbers = dictionary, np.zeros(0, np.int64)
        needed = int(codes.max()) + 1
        if needed > len(self._numbers):
            more = np.full(max(needed, len(dictionary)) - len(self._numbers), _UNKNOWN)
            self._numbers = np.concatenate([self._numbers, more])
        unknown = codes[self._numbers[codes] == _UNKNOWN]
        if unknown.size:
            fresh = np.unique(unknown)
            self._numbers[fresh] = self._numbers_of(dictionary.decode(fresh.tolist()))
        numbers: NDArray[np.int64] = self._numbers[codes]
        return numbers

    def of_texts(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of strings that are in no dictionary."""
        numbers: NDArray[np.int64] = self._numbers_of(texts)
        return numbers


def tensors_in(column: ColumnView, lids: Lids, type_: TensorType, table: CodeTable) -> TensorBatch:
    """Read the tensor of each lid. Where there is none: without subspaces, or of cells that are 0."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, TensorView):
        rows_of_none = 0 if type_.mapped else len(lids)
        none = np.zeros((rows_of_none, *type_.shape), DTYPES[type_.cell_type])
        starts = np.zeros(len(lids) + 1, np.int64) if type_.mapped else np.arange(len(lids) + 1)
        return TensorBatch(type_, starts, np.zeros((rows_of_none, len(type_.mapped)), np.int64), none)
    if not type_.mapped:
        starts, lengths = split(inner.rows[rows])
        is_set = lengths > 0
        if is_there.all() and is_set.all():
            return TensorBatch.dense(type_, cells_at(inner.cells, _run(starts), type_))
        there = np.flatnonzero(is_there)[is_set]
        cells = np.zeros((len(lids), *type_.shape), DTYPES[type_.cell_type])
        cells[there] = cells_at(inner.cells, starts[is_set], type_)
        return TensorBatch.dense(type_, cells)
    places, lengths = places_of(inner.rows[rows])
    codes = inner.labels[places]
    is_empty = codes[:, 0] == NO_LABEL
    if is_empty.any():
        lengths = lengths - np.bincount(np.repeat(np.arange(len(lengths)), lengths)[is_empty], minlength=len(lengths))
        places, codes = places[~is_empty], codes[~is_empty]
    counts[is_there] = lengths
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells = cells_at(inner.cells, _run(places), type_)
    return TensorBatch(type_, starts, table.numbers(inner.dictionary, codes), cells)


def kept_tensors(column: ColumnView, lids: Lids, type_: TensorType) -> KeptTensors:
    """Find where the tensor of each lid stands; without subspaces where there is none."""
    inner, rows, counts, is_there = own_rows(column, lids)
    if not isinstance(inner, TensorView):
        none = np.zeros((0, *type_.shape), DTYPES[type_.cell_type])
        return KeptTensors(type_, none, np.zeros(len(lids), np.int64), counts)
    found, lengths = split(inner.rows[_run(rows)])
    if type_.mapped:
        has = np.flatnonzero(lengths)
        lengths[has[inner.labels[found[has], 0] == NO_LABEL]] = 0
    if len(found) == len(lids):
        return KeptTensors(type_, inner.cells, found, lengths)
    starts = np.zeros(len(lids), np.int64)
    starts[is_there], counts[is_there] = found, lengths
    return KeptTensors(type_, inner.cells, starts, counts)


def stored_tensors(column: ColumnView, type_: TensorType) -> StoredTensors | None:
    """Find where the tensors of all lids stand; None for mapped dimensions, or tensors of other documents."""
    if not isinstance(column, TensorView) or type_.mapped:
        return None
    return StoredTensors(type_, column.cells, column.rows)


def _run(rows: NDArray[np.int64] | Lids) -> NDArray[np.int64] | Lids | slice:
    """The same rows; as a slice, which copies nothing, where they stand together. Rows once written do not change."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


class Labelled(NamedTuple):
    """Elements as labels, those of one lid after another."""

    counts: Counts
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    """The weights of the keys of a weighted set; 1 elsewhere."""


def labelled(column: ColumnView, lids: Lids, table: CodeTable) -> Labelled:
    """Reads the elements of single values, arrays and weighted sets of strings or whole numbers; others have none."""
    inner, rows, counts, is_there = own_rows(column, lids)
    match inner:
        case StringView():
            lengths = np.ones(len(rows), np.int64)
            labels, weights = table.numbers(inner.dictionary, inner.values[rows]), np.ones(len(rows))
        case NumericView() if inner.values.dtype.kind != "f":
            lengths, labels, weights = (
                np.ones(len(rows), np.int64),
                _whole(inner.values[rows], table),
                np.ones(len(rows)),
            )
        case ArrayView() if inner.dictionary is not None or inner.values.dtype.kind != "f":
            places, lengths = places_of(inner.rows[rows])
            values = inner.values[places]
            is_text = inner.dictionary is not None
            labels = table.numbers(inner.dictionary, values) if is_text else _whole(values, table)  # type: ignore[arg-type]
            weights = inner.key_weights[places].astype(np.float64) if len(inner.key_weights) else np.ones(len(places))
        case _:
            return Labelled(counts, np.zeros(0, np.int64), np.zeros(0))
    counts[is_there] = lengths
    return Labelled(counts, labels, weights)


def _whole(values: NDArray[Any], table: CodeTable) -> NDArray[np.int64]:
    """Return whole numbers as labels: those that are negative have to be looked up."""
    numbers = values.astype(np.int64)
    is_negative = numbers < 0
    if is_negative.any():
        distinct, places = np.unique(numbers[is_negative], return_inverse=True)
        numbers[is_negative] = table.of_texts([str(number) for number in distinct.tolist()])[places.reshape(-1)]
    return numbers


def text_numbers(column: ColumnView, lids: Lids, element: int, table: CodeTable) -> NDArray[np.float64]:
    """Read a string as a number: of a single value, or of the element with this number; 0 where there is none.

    The table has the bits of these numbers.
    """
    inner, rows, _, is_there = own_rows(column, lids)
    found = np.zeros(len(lids))
    if isinstance(inner, StringView) and element == 0:
        found[is_there] = table.numbers(inner.dictionary, inner.values[rows]).view(np.float64)
    elif isinstance(inner, ArrayView) and inner.dictionary is not None:
        starts, lengths = split(inner.rows[rows])
        has = lengths > element
        codes = inner.values[starts[has] + element]
        found[np.flatnonzero(is_there)[has]] = table.numbers(inner.dictionary, codes).view(np.float64)
    return found
