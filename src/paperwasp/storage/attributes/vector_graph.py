"""The graph over the vectors of a tensor column, by which the nearest are found without comparing all.

A node of the graph is an element of the column's rows: its number is the element's, its vector the element's cells, and
it belongs to the lid whose row has the element. The graph keeps no cells: whoever calls gives those of the column.

What puts and updates change is noted, and the graph is brought up to date, all changes of a batch at once, before
readers see the batch. A graph that is missing, or was made with other settings, is built behind the writer from what is
published, a piece at a time; the writer then does the rest and shows it. Until then there is none for readers. What is
built is saved, too, and goes on after a restart.

Vectors of which some cells are no finite numbers, or that are so long that their distances may be none, are in no
graph: nothing can be said of what is near to them. They are compared one by one; to such a vector of a query, all are.

Vespa: https://docs.vespa.ai/en/querying/approximate-nn-hnsw.html
"""

from __future__ import annotations

import threading
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.env import processors
from paperwasp.core import _core
from paperwasp.document.tensor.types import TensorType
from paperwasp.storage.attributes.column import Arrays, Bitmap, Lids
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.rows import LONGEST_ROW, Rows, places_of, split

NO_LABEL: Final = 0xFFFFFFFF
"""The label of what stands for a tensor without subspaces."""
_CELL_TYPES: Final = ("double", "float", "bfloat16", "int8")
"""By their numbers in the kernel."""
METRICS: Final = ("euclidean", "angular", "product", "hamming", "geodegrees")
"""By their numbers in the kernel."""
_KERNEL_METRICS: Final = {"dotproduct": "product", "prenormalized-angular": "product", "innerproduct": "product"}
"""By distance metric, where the name differs."""
_PRODUCT_RULE: Final = 1
"""How the links of a graph for dot products are chosen; saved ones that do not say so were made by another rule, with
which less is found."""
_LEAST_LINKS: Final = 2
_LEAST_PER_THREAD: Final = 16
_MOST_THREADS: Final = 256
"""The fewest vectors that each thread adds."""
_CHECKED_VECTORS: Final = 4096
"""How many vectors are looked through at once for those that cannot be in a graph."""
_MOST_SQUARE: Final = 2.0**120
"""The square of the length of what can be in a graph, at most: the squares of distances then are single floats."""
_SAVED: Final = ("header", "levels", "owners", "counts", "links", "parents")

Nodes = NDArray[np.uint32]


class GraphSettings(Struct, frozen=True):
    """The settings of a graph. `metric`: by the name of schemas; empty: euclidean."""

    metric: str = ""
    max_links: int = 16
    explore_at_insert: int = 200
    multi_threaded: bool = True

    @property
    def kernel_metric(self) -> int:
        """The number of what the kernel computes."""
        name = self.metric or "euclidean"
        return METRICS.index(_KERNEL_METRICS.get(name, name))

    def numbers(self) -> tuple[int, ...]:
        """Return the numbers that a graph depends on: of two with the same ones each serves for the other."""
        rule = (_PRODUCT_RULE,) if self.kernel_metric == METRICS.index("product") else ()
        return self.kernel_metric, self.max_links, self.explore_at_insert, *rule


class Vectors(NamedTuple):
    """The rows of a column at one moment, and the labels and cells of their elements."""

    rows: Rows
    labels: NDArray[np.uint32]
    cells: NDArray[Any]

    def rows_of(self, lids: Lids) -> Rows:
        """The rows of documents; 0 for unknown lids."""
        rows = np.zeros(len(lids), np.uint64)
        known = lids < len(self.rows)
        rows[known] = self.rows[lids[known]]
        return rows

    def of(self, lids: Lids) -> Rows:
        """The rows of documents; 0 for those without a vector."""
        rows = self.rows_of(lids)
        rows[(rows & np.uint64(LONGEST_ROW)) == 0] = 0
        if self.labels.shape[1]:
            starts, lengths = split(rows)
            there = lengths > 0
            there[there] = self.labels[starts[there], 0] != NO_LABEL
            rows[~there] = 0
        return rows


class GraphView(Protocol):
    """Searches a graph beside the writer that changes it."""

    def search(
        self,
        cells: NDArray[Any],
        query: NDArray[Any],
        count: int,
        explore: int,
        accept: Bitmap | None,
        limit: int,
        threshold: float,
        filter_first: bool,
        exploration: float,
        slack: float,
        end_ns: int = 0,
    ) -> tuple[Lids, NDArray[np.float64], NDArray[np.uint32]]:
        """Return the lids of about the `count` nearest documents, the distance of the nearest vector of each, and the
        number of that node; the nearest first.

        `cells`: (elements, cells of a vector), as the reader's view has them; nodes beyond its end are skipped, and so
        are documents with lids from `limit` on. `query`: as `attributes.distances` makes it. `explore`: how many of the
        nearest nodes are kept in sight, at least `count`. `accept`: the documents that may be found; None: all.
        `threshold`: the greatest distance, as `attributes.distances` has it. `filter_first`: whether distances are only
        computed to nodes that `accept` has, once few of those near the query are; then `exploration`, from 0 to 1, says
        how far beyond the neighbours of a node others are looked for. `slack`: how much farther than the last that is
        kept in sight, as a share of its distance, nodes are still followed. `end_ns`: the moment on the monotonic clock
        from which on only what was met until then is found; 0: there is none.
        """
        ...

    def for_kernels(self, cells: NDArray[Any]) -> tuple[_core.Hnsw, NDArray[Any]] | None:
        """Return the graph and the cells that it is of, for kernels that search it themselves; None where not all
        vectors are in it."""
        ...


class VectorGraphView:
    """The graph for readers, at one moment of the column; what was added since is not looked at."""

    __slots__ = ("_apart", "_elements", "_hnsw", "_linked", "_metric", "_vectors")

    def __init__(
        self, hnsw: _core.Hnsw, metric: int, vectors: Vectors, elements: int, linked: Rows, apart: Lids
    ) -> None:
        """`elements`: those below are in the cells that readers give. `linked`: by lid, 0 where no vector is in the
        graph. `apart`: documents with vectors that cannot be in it."""
        self._hnsw = hnsw
        self._metric = metric
        self._vectors = vectors
        self._elements = elements
        self._linked = linked
        self._apart = apart

    def search(
        self,
        cells: NDArray[Any],
        query: NDArray[Any],
        count: int,
        explore: int,
        accept: Bitmap | None,
        limit: int,
        threshold: float,
        filter_first: bool,
        exploration: float,
        slack: float,
        end_ns: int = 0,
    ) -> tuple[Lids, NDArray[np.float64], Nodes]:
        """Return as `GraphView.search` does, documents with vectors that cannot be in the graph included."""
        cells = cells[: self._elements]
        if _can_be_near(query.reshape(1, -1)).all():
            lids = self._apart
            found = self._hnsw.search(
                cells, query, count, explore, accept, limit, threshold, filter_first, exploration, slack, end_ns
            )
            if not len(lids):
                return found
        else:
            lids, found = np.flatnonzero(self._linked).astype(np.uint32), _NOTHING
        lids = lids[lids < limit]
        if accept is not None:
            lids = lids[(accept[lids >> np.uint32(6)] >> (lids & np.uint32(63)).astype(np.uint64)) & np.uint64(1) > 0]
        return _joined(found, self._compared(cells, query, lids, threshold), count)

    def for_kernels(self, cells: NDArray[Any]) -> tuple[_core.Hnsw, NDArray[Any]] | None:
        """Return as `GraphView.for_kernels` does."""
        return None if len(self._apart) else (self._hnsw, cells[: self._elements])

    def _compared(
        self, cells: NDArray[Any], query: NDArray[Any], lids: Lids, threshold: float
    ) -> tuple[Lids, NDArray[np.float64], Nodes]:
        """The documents of some that are within the threshold, as a search gives them, in no order."""
        rows = self._vectors.of(lids)
        distances, vectors = np.empty(len(rows)), np.empty(len(rows), np.uint32)
        _core.least_distances(self._metric, query, cells, rows, distances, vectors)
        near = (distances <= threshold) & (distances < np.inf)
        nodes = split(rows)[0].astype(np.uint32) + vectors
        return lids[near], distances[near], nodes[near]


def _can_be_near(vectors: NDArray[Any]) -> NDArray[np.bool_]:
    """By vector, whether its cells are finite and it is not too long."""
    if vectors.dtype == np.int8:
        return np.ones(len(vectors), np.bool_)
    if vectors.dtype == np.uint16:
        vectors = (vectors.astype(np.uint32) << np.uint32(16)).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        found: NDArray[np.bool_] = np.einsum("ij,ij->i", vectors, vectors) <= _MOST_SQUARE
    return found


_Found = tuple[Lids, NDArray[np.float64], Nodes]
_NOTHING: Final = np.zeros(0, np.uint32), np.zeros(0), np.zeros(0, np.uint32)


def _joined(first: _Found, second: _Found, count: int) -> _Found:
    """The nearest of two searches, each document once."""
    lids = np.concatenate([first[0], second[0]])
    distances = np.concatenate([first[1], second[1]])
    nodes = np.concatenate([first[2], second[2]])
    order = np.lexsort((nodes, lids, distances))
    _, firsts = np.unique(lids[order], return_index=True)
    order = order[np.sort(firsts)[:count]]
    return lids[order], distances[order], nodes[order]


class VectorGraph:
    """The writer's side of the graph of one column. While it is built, `build` alone is called on another thread."""

    def __init__(self, settings: GraphSettings, tensor_type: TensorType) -> None:
        self.settings = settings
        self._cell_type = _CELL_TYPES.index(tensor_type.cell_type)
        self._dimensions = tensor_type.shape[0]
        self._start_empty()
        self._changed: list[Lids] = []
        self._step = threading.Lock()
        """Held while a piece is built, and while what is built is saved."""
        self.is_built = True
        """True where readers see it."""
        self.numbering = 0
        """How often elements got other numbers."""

    def _start_empty(self) -> None:
        self._hnsw = _core.Hnsw(*self._kernel_settings)
        self._linked = GrowableArray(np.uint64)
        """By lid, the row whose vectors are in the graph; 0: none are. May be longer or shorter than the column."""
        self._apart: Lids = np.zeros(0, np.uint32)
        self._next_lid = 0
        self._built_numbering = -1

    @property
    def _kernel_settings(self) -> tuple[int, int, int, int, int]:
        settings = self.settings
        links = max(_LEAST_LINKS, settings.max_links)
        return settings.kernel_metric, self._cell_type, self._dimensions, links, settings.explore_at_insert

    @property
    def nodes(self) -> int:
        """How many vectors can be found."""
        return int(self._hnsw.nodes)

    def size_bytes(self) -> int:
        return int(self._hnsw.size_bytes) + self._linked.size_bytes

    def view(self, vectors: Vectors, elements: int) -> VectorGraphView | None:
        """The graph for readers; None while it is built. `elements`: below these a reader's cells are those that the
        graph was made of."""
        if not self.is_built:
            return None
        metric, linked = self.settings.kernel_metric, self._linked.view()
        return VectorGraphView(self._hnsw, metric, vectors, elements, linked, self._apart)

    # Changes

    def note(self, lids: Lids) -> None:
        """The rows of these documents are other ones now."""
        if self.is_built:
            self._changed.append(lids)

    def settle(self, vectors: Vectors, dead: Lids) -> None:
        """Brings the graph up to date with what was noted, and with documents that are gone."""
        if not self.is_built or not (self._changed or len(dead)):
            return
        dead = dead[dead < len(vectors.rows)]
        lids = np.unique(np.concatenate([*self._changed, dead]))
        self._changed = []
        rows = vectors.of(lids)
        rows[np.isin(lids, dead)] = 0
        self._link(vectors, lids, rows)

    def _link(self, vectors: Vectors, lids: Lids, rows: Rows) -> None:
        """Has the graph have these rows of documents, and no others that these had."""
        if not len(lids):
            return
        self._linked.pad(int(lids[-1]) + 1)
        before = self._linked.array[lids]
        changed = before != rows
        lids, rows, before = lids[changed], rows[changed], before[changed]
        places, lengths = places_of(rows)
        order = np.argsort(places)
        nodes, owners = places[order].astype(np.uint32), np.repeat(lids, lengths)[order]
        pieces = (nodes[start : start + _CHECKED_VECTORS] for start in range(0, len(nodes), _CHECKED_VECTORS))
        fit = np.concatenate([np.zeros(0, np.bool_), *(_can_be_near(vectors.cells[piece]) for piece in pieces)])
        self._hnsw.add(vectors.cells, nodes[fit], owners[fit], self._threads(len(nodes)))
        self._hnsw.remove(vectors.cells, places_of(before)[0].astype(np.uint32))
        self._linked.array[lids] = rows
        if len(self._apart) or not fit.all():
            self._apart = np.union1d(self._apart[~np.isin(self._apart, lids)], np.unique(owners[~fit]))

    def _threads(self, count: int) -> int:
        if not self.settings.multi_threaded:
            return 1
        return max(1, min(processors(), _MOST_THREADS, count // _LEAST_PER_THREAD))

    # Other numbers of elements

    def renumber(self, vectors: Vectors, places: NDArray[np.int64], rows: Rows) -> None:
        """Goes on where element i is what element places[i] of `vectors` was, in these rows. Nothing is left noted."""
        self.numbering += 1
        if self.is_built:
            self._hnsw = self._hnsw.renumbered(vectors.cells, places.astype(np.uint32), owners_of(rows))
            linked = np.zeros(len(rows), np.uint64)
            there = np.flatnonzero(self._linked.view()[: len(rows)])
            linked[there] = rows[there]
            self._linked = GrowableArray.of(linked)

    def is_fit(self, other: VectorGraph) -> bool:
        """Tell whether it is whole and of the kind of another."""
        return self.is_built and not self._changed and self.settings.numbers() == other.settings.numbers()

    def take_over(self, other: VectorGraph, before: Vectors, lids: Lids, after: Vectors) -> None:
        """Becomes the graph of the same documents in new rows: `lids` are those that they have in the column of
        `other`; the new ones are 0, 1, 2, …"""
        places, lengths = places_of(before.rows_of(lids))
        owners = np.repeat(np.arange(len(lids), dtype=np.uint32), lengths)
        self._hnsw = other._hnsw.renumbered(before.cells, places.astype(np.uint32), owners)
        self._linked = GrowableArray.of(after.of(np.arange(len(lids), dtype=np.uint32)))
        self._apart = np.flatnonzero(np.isin(lids, other._apart)).astype(np.uint32)
        self._changed = []

    # Building

    def rebuild(self) -> None:
        """Begins with nothing; readers see no graph until it is built."""
        self._start_empty()
        self._changed = []
        self.is_built = False

    def build(self, vectors: Vectors, numbering: int, is_live: NDArray[np.bool_], most: int) -> bool:
        """Adds documents of a published moment of the column, up to about `most` vectors; says whether all are in.

        Any thread, one at a time. `is_live`: by lid, whether the document is there.
        """
        with self._step:
            if numbering != self._built_numbering:
                self._start_empty()
                self._built_numbering = numbering
            first = self._next_lid
            end = min(len(vectors.rows), first + most)
            lengths = split(vectors.rows[first:end].copy())[1]
            end = first + max(1, int(np.searchsorted(np.cumsum(lengths), most)))
            end = min(len(vectors.rows), end)
            self._link_live(vectors, np.arange(first, end, dtype=np.uint32), is_live)
            self._next_lid = end
            return end >= len(vectors.rows)

    def finish(self, vectors: Vectors, is_live: NDArray[np.bool_]) -> bool:
        """Adds what has come since, and shows the graph; False where elements have got other numbers meanwhile, so that
        building begins again. The writer's thread."""
        if self._built_numbering == self.numbering:
            self._link_live(vectors, np.arange(len(vectors.rows), dtype=np.uint32), is_live)
            self.is_built = True
        return self.is_built

    def _link_live(self, vectors: Vectors, lids: Lids, is_live: NDArray[np.bool_]) -> None:
        rows = vectors.of(lids)
        known = lids < len(is_live)
        rows[~known] = 0
        rows[known] *= is_live[lids[known]]
        self._link(vectors, lids, rows)

    # Saving

    def freeze(self) -> Arrays:
        """Return the arrays that are saved, for the elements as they are numbered now.

        While the graph is built, they are of the moment after the present piece; none where elements have got other
        numbers since that began.
        """
        if self.is_built:
            return self._frozen() | {"graph_linked": np.packbits(self._linked.view() > 0, bitorder="little")}
        with self._step:
            if self._built_numbering != self.numbering:
                return {}
            # Rows may be other ones by now than those that were linked.
            linked = self._linked.view().copy()
            return self._frozen() | {"graph_rows": linked, "graph_next": np.array([self._next_lid], np.uint64)}

    def _frozen(self) -> dict[str, NDArray[Any]]:
        arrays: list[NDArray[Any]] = list(self._hnsw.arrays())
        saved = {f"graph_{name}": values for name, values in zip(_SAVED, arrays, strict=True)}
        settings = np.array(self.settings.numbers(), np.uint64)
        return saved | {"graph_settings": settings, "graph_apart": self._apart}

    def load(self, arrays: Arrays, vectors: Vectors) -> None:
        """Becomes what was frozen; is to be built where that was of other settings, or none is there, and goes on to be
        where it was not whole. Errors: ValueError, KeyError for what is damaged."""
        settings = arrays.get("graph_settings")
        linked = vectors.of(np.arange(len(vectors.rows), dtype=np.uint32))
        self._changed = []
        if settings is None or settings.tolist() != list(self.settings.numbers()):
            self.rebuild()
            self.is_built = not linked.any()
            return
        header, levels, owners, counts, links = (arrays[f"graph_{name}"] for name in _SAVED[:-1])
        parents = arrays.get("graph_parents", _NOTHING[0])  # older files have none
        self._start_empty()
        self._hnsw = _core.Hnsw.from_arrays(
            *self._kernel_settings,
            vectors.cells,
            header,
            levels,
            owners,
            counts,
            links,
            parents,
            self._threads(len(levels)),
        )
        self._apart = arrays["graph_apart"].astype(np.uint32)
        if len(self._apart) and int(self._apart.max()) >= len(vectors.rows):
            raise ValueError("vectors apart from the graph in rows that are not there")
        self.is_built = "graph_rows" not in arrays
        if self.is_built:
            is_linked = np.unpackbits(arrays["graph_linked"], count=len(linked), bitorder="little")
            self._linked = GrowableArray.of(linked * is_linked)
        else:
            self._linked = GrowableArray.of(_checked_rows(arrays["graph_rows"], len(vectors.rows), len(vectors.cells)))
            self._next_lid = int(arrays["graph_next"][0])
            self._built_numbering = self.numbering


def _checked_rows(rows: NDArray[Any], most: int, elements: int) -> Rows:
    """Rows that may be anything, if they are no more than that many, of elements that are there. Errors: ValueError."""
    rows = rows.astype(np.uint64)
    starts, lengths = split(rows)
    if len(rows) > most or np.any(starts < 0) or np.any(starts + lengths > elements):
        raise ValueError("a graph of rows that are not there")
    return rows


def owners_of(rows: Rows) -> Lids:
    """By element, the lid of its row, where elements stand one row after another."""
    return np.repeat(np.arange(len(rows), dtype=np.uint32), split(rows)[1])
