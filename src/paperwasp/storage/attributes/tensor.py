"""Tensors by lid: rows of dense subspaces (`attributes.rows`), each with the codes of its labels beside its cells.

A tensor without mapped dimensions is a row of one subspace. A tensor without subspaces, which is a value too, has one
whose labels are `NO_LABEL`. Cells of bfloat16 are kept as their upper 16 bits.

A dense row is not changed where it stands: a reader never sees the cells of two values mixed. So cells are found by
`rows[lid] >> 24`, and rows that are unset take no cells.

Where the field has an index there is a graph beside the rows (`attributes.vector_graph`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES, Tensor
from paperwasp.storage.attributes.array_file import FileArrays
from paperwasp.storage.attributes.column import Arrays, Frozen, Lids, OpaqueView, are_many_spare, spare_of
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.growable import GrowableArray, Large
from paperwasp.storage.attributes.rows import RowColumn, Rows, RowStore, places_of, split
from paperwasp.storage.attributes.string import checked_codes, used_codes
from paperwasp.storage.attributes.vector_graph import NO_LABEL, GraphSettings, GraphView, VectorGraph, Vectors

__all__ = ["NO_LABEL", "TensorColumn", "TensorView", "cells_at", "cells_of", "unset_tensors"]

_BFLOAT16: Final = "bfloat16"
_CELL_BYTES: Final = 8
"""Of JSON beside a label, about."""
_COMPARED_VECTORS: Final = 4096
"""How many are compared at once."""


def unset_tensors(tensor_type: TensorType, limit: int) -> TensorView:
    """A column of which no row has a value."""
    view = TensorColumn(tensor_type).snapshot()
    rows = np.zeros(limit, view.rows.dtype)
    return TensorView(tensor_type, rows, view.labels, view.cells, view.dictionary)


class UnbuiltGraph(NamedTuple):
    """A graph that is to be built, and of what: a moment of its column."""

    graph: VectorGraph
    vectors: Vectors
    numbering: int

    def build(self, is_live: NDArray[np.bool_], most: int) -> bool:
        """Adds up to about `most` vectors of live documents; says whether all are in. Any thread, one at a time."""
        return self.graph.build(self.vectors, self.numbering, is_live, most)


class TensorView(OpaqueView):
    """Rows of subspaces: `labels` (subspaces, mapped dimensions) codes, `cells` (subspaces, *shape) as kept."""

    __slots__ = ("_type", "cells", "dictionary", "graph", "labels", "limit", "rows", "unbuilt")

    def __init__(
        self,
        tensor_type: TensorType,
        rows: Rows,
        labels: NDArray[np.uint32],
        cells: NDArray[Any],
        dictionary: StringDictionary,
        graph: GraphView | None = None,
        unbuilt: UnbuiltGraph | None = None,
    ) -> None:
        """`graph`: finds near vectors among the cells; None: all have to be compared. `unbuilt`: the graph that is to
        be built."""
        self._type = tensor_type
        self.rows = rows
        self.labels = labels
        self.cells = cells
        self.dictionary = dictionary
        self.graph = graph
        self.unbuilt = unbuilt
        self.limit = len(rows)

    @property
    def type(self) -> TensorType:
        return self._type

    def gather(self, lids: Lids) -> list[Value | None]:
        starts, lengths = split(self.rows[lids])
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return [self._tensor(start, start + length) if length else None for start, length in spans]

    def _tensor(self, start: int, end: int) -> Tensor:
        codes = self.labels[start:end]
        if codes.size and codes[0, 0] == NO_LABEL:
            start, codes = end, codes[:0]
        labels = tuple(tuple(self.dictionary.decode(row)) for row in codes.tolist())
        return Tensor(self._type, labels, cells_of(self.cells[start:end], self._type))

    def dense(self, lids: Lids) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The cells of tensors without mapped dimensions, (lids, *shape), 0 where unset; and which rows are set."""
        starts, lengths = split(self.rows[lids])
        is_set = lengths > 0
        cells = np.zeros((len(lids), *self._type.shape), DTYPES[self._type.cell_type])
        cells[is_set] = cells_of(self.cells[starts[is_set]], self._type)
        return cells, is_set


class TensorColumn(RowColumn):
    """The writer's side of tensors of one type."""

    def __init__(
        self, tensor_type: TensorType, paged_in: Path | None = None, graph: GraphSettings | None = None
    ) -> None:
        """`paged_in`: the folder where the cells are in a mapped file. None: they are in memory. `graph`: of what kind
        the graph over its vectors is; None: it has none."""
        self.graph = VectorGraph(graph, tensor_type) if graph is not None else None
        self._type = tensor_type
        self._dictionary = StringDictionary(cased=True)
        dtype = "uint16" if tensor_type.cell_type == _BFLOAT16 else DTYPES[tensor_type.cell_type]
        self._no_cells: NDArray[Any] = np.zeros((1, *tensor_type.shape), dtype)
        self._no_labels = np.full((1, len(tensor_type.mapped)), NO_LABEL, np.uint32)
        labels = GrowableArray(np.uint32, row_shape=(len(tensor_type.mapped),))
        cells = GrowableArray(dtype, row_shape=tensor_type.shape, large=Large(paged_in))
        super().__init__(RowStore(labels, cells))

    def append(self, values: Sequence[Value | None]) -> None:
        first = self.length
        super().append(values)
        self._note(np.arange(first, self.length, dtype=np.uint32))

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        super().fill(lids, values)
        if self.graph is not None:
            self.graph.rebuild()

    def set(self, lid: int, value: Value | None) -> None:
        if self._store.is_sparse:
            self._compact()
        super().set(lid, value)
        self._note(np.array([lid], np.uint32))

    def settle(self, dead: Lids) -> int:
        if self.graph is not None:
            self.graph.settle(self._vectors(), dead)
        if not self._type.mapped or self._type.shape:
            return 0
        self._store.bury(dead)  # there is no graph: that takes an indexed dimension
        return self._drop_labels()

    def _drop_labels(self) -> int:
        """Goes on without the cells, and the labels, that no row has any more, where these are many."""
        before, used = self._dictionary, self._store.elements * len(self._type.mapped)
        if not are_many_spare(len(before), used):
            return 0
        self._dictionary = kept = before.of_codes(self._store.compact_codes())
        return before.json_bytes - kept.json_bytes + _CELL_BYTES * (len(before) - len(kept))

    def finish_graph(self, is_live: NDArray[np.bool_]) -> bool:
        """Shows readers the graph that was built, from the next snapshot on; False where that has to begin again."""
        return self.graph is None or self.graph.finish(self._vectors(), is_live)

    def adopt_graph(self, other: TensorColumn, lids: Lids) -> None:
        """Takes the graph of a column that has the same documents in these rows, rising, and others that are gone. If
        it does not fit, the graph is to be built."""
        if self.graph is None or other.graph is None:
            return
        mine, theirs = self._vectors(), other._vectors()
        if other.graph.is_fit(self.graph) and _are_same(mine, theirs, lids):
            self.graph.take_over(other.graph, theirs, lids, mine)
        else:
            self.graph.rebuild()

    def _note(self, lids: Lids) -> None:
        if self.graph is not None:
            self.graph.note(lids)

    def _compact(self) -> None:
        """Goes on without the elements that no row has any more."""
        self.settle(np.zeros(0, np.uint32))
        before = self._vectors()
        places = self._store.compact()
        if self.graph is not None:
            self.graph.renumber(before, places, self._vectors().rows)

    def _vectors(self) -> Vectors:
        rows, (labels, cells) = self._store.snapshot()
        return Vectors(rows, labels, cells)

    def snapshot(self) -> TensorView:
        vectors, graph = self._vectors(), self.graph
        rows, labels, cells = vectors
        shown = unbuilt = None
        if graph is not None:
            shown = graph.view(vectors, self._store.shown)
            unbuilt = None if graph.is_built else UnbuiltGraph(graph, vectors, graph.numbering)
        return TensorView(self._type, rows, labels, cells, self._dictionary, shown, unbuilt)

    def freeze(self) -> Frozen:
        (rows, labels, cells), strings = self._store.freeze_whole(), self._dictionary.strings()
        graph = {} if self.graph is None else self.graph.freeze()

        def arrays() -> Arrays:
            codes, is_label = labels.copy(), labels != NO_LABEL
            codes[is_label], frozen = used_codes(labels[is_label], strings)
            return {"rows": rows, "labels": codes, "cells": cells, **frozen, **graph}

        return arrays

    def load(self, arrays: Arrays) -> None:
        labels = arrays["labels"]
        self._dictionary.load(arrays)
        checked_codes(labels[labels != NO_LABEL], self._dictionary)
        if "rows" in arrays:
            place = arrays.places.get("cells") if isinstance(arrays, FileArrays) else None
            self._store.load_whole(arrays["rows"], labels, arrays["cells"], places=(None, place))
        else:  # from before elements that no row has were kept
            self._store.load(arrays["lengths"], labels, arrays["cells"])
        if self.graph is not None:
            self.graph.load(arrays, self._vectors())

    def size_bytes(self) -> int:
        graph = 0 if self.graph is None else self.graph.size_bytes()
        return self._store.size_bytes() + self._dictionary.size_bytes + graph

    def spare_strings(self) -> int:
        return spare_of(len(self._dictionary), self._store.elements * len(self._type.mapped))

    def _encode(self, values: Sequence[Tensor | None]) -> tuple[NDArray[Any], ...]:
        """Lengths of rows, labels, cells."""
        there = [value for value in values if value is not None]
        lengths = [0 if value is None else max(1, len(value.labels)) for value in values]
        cells = [self._convert_cells(value.cells) if value.labels else self._no_cells for value in there]
        return (
            np.array(lengths, np.uint64),
            self._encode_labels(there),
            np.concatenate(cells or [self._no_cells[:0]]),
        )

    def _encode_labels(self, values: Sequence[Tensor]) -> NDArray[np.uint32]:
        """Return the codes of the labels of all subspaces; without mapped dimensions each value has one, unlabeled."""
        if not self._type.mapped:
            return np.zeros((len(values), 0), np.uint32)
        labels = [self._no_labels[:0]]
        for value in values:
            if value.labels:
                codes = self._dictionary.encode(list(chain.from_iterable(value.labels)))
                labels.append(codes.reshape(len(value.labels), -1 if codes.size else 0))
            else:
                labels.append(self._no_labels)
        return np.concatenate(labels)

    def _convert_cells(self, cells: NDArray[Any]) -> NDArray[Any]:
        if self._type.cell_type == _BFLOAT16:
            return (np.ascontiguousarray(cells).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
        return cells


def cells_of(kept: NDArray[Any], tensor_type: TensorType) -> NDArray[Any]:
    """A copy of kept cells as a tensor has them."""
    return cells_at(kept, slice(None), tensor_type).copy()


def cells_at(kept: NDArray[Any], rows: Any, tensor_type: TensorType) -> NDArray[Any]:
    """The kept cells of these rows, as a tensor has them."""
    taken: NDArray[Any] = kept[rows]
    if tensor_type.cell_type == _BFLOAT16:
        return (taken.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return taken


def _are_same(mine: Vectors, theirs: Vectors, lids: Lids) -> bool:
    """Tell whether the elements of a column are those of these documents of another, in the same order."""
    places, lengths = places_of(theirs.rows_of(lids))
    rows = mine.rows_of(np.arange(len(lids), dtype=np.uint32))
    found, found_lengths = places_of(rows)
    if not (np.array_equal(found_lengths, lengths) and np.array_equal(found, np.arange(len(found)))):
        return False
    for start in range(0, len(places), _COMPARED_VECTORS):
        chunk = places[start : start + _COMPARED_VECTORS]
        if mine.cells[start : start + len(chunk)].tobytes() != theirs.cells[chunk].tobytes():
            return False
    return True
