"""Our graph, hnswlib, faiss and usearch over the same vectors of unit length, in process, one thread each.

All have 16 links a node and look at 200 nodes when one is added. A search takes how many nodes to look at and gives the
numbers of ten vectors; what it is timed by begins with a NumPy vector and ends with a NumPy array.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.vector_data import HITS, Data, Flags, Vectors
from paperwasp.core import _core
from paperwasp.storage.attributes.vector_graph import METRICS
from tests.oracles.hnsw import CELL_TYPES

LINKS: Final = 16
EXPLORE_AT_INSERT: Final = 200
EXACT_SHARE: Final = 0.02
FILTER_FIRST_SHARE: Final = 0.3
EXPLORATION: Final = 0.3
"""As Vespa chooses among ways to search by default: approximate-threshold, filter-first-threshold and -exploration."""

Search = Callable[[Vectors, int], NDArray[Any]]


class Paperwasp:
    """The kernel, as the operator nearestNeighbor calls it."""

    name = "paperwasp"

    def __init__(self, data: Data) -> None:
        self._cells, self._numbers = data.vectors, np.arange(data.count, dtype=np.uint32)
        self.graph = _core.Hnsw(
            METRICS.index("angular"), CELL_TYPES.index("float32"), data.dimensions, LINKS, EXPLORE_AT_INSERT
        )

    def build(self) -> None:
        self.graph.add(self._cells, self._numbers, self._numbers)

    def search(self) -> Search:
        return self._search(None, False)

    def filtered(self, allowed: Flags) -> Search:
        accept, share = bitmap(allowed).view(np.uint64), float(allowed.mean())
        if share < EXACT_SHARE:
            return lambda query, _: self._exact(query, accept)
        return self._search(accept, share < FILTER_FIRST_SHARE)

    def _search(self, accept: NDArray[np.uint64] | None, first: bool) -> Search:
        graph, cells, count = self.graph, self._cells, len(self._cells)
        return lambda query, explore: graph.search(
            cells, query, HITS, explore, accept, count, math.inf, first, EXPLORATION, 0.0
        )[0]

    def _exact(self, query: Vectors, accept: NDArray[np.uint64]) -> NDArray[np.uint32]:
        lids = _core.bitmap_lids(accept, len(self._cells))
        distances, vectors = np.empty(len(lids)), np.empty(len(lids), np.uint32)
        rows = lids.astype(np.uint64) << np.uint64(24) | np.uint64(1)
        _core.least_distances(METRICS.index("angular"), query, self._cells, rows, distances, vectors)
        return lids[np.argsort(distances, kind="stable")[:HITS]]


class Hnswlib:
    """hnswlib, compiled for this machine. Its filters are Python functions, so it is not asked for any."""

    name = "hnswlib"

    def __init__(self, data: Data) -> None:
        self._data = data
        self._index: Any = importlib.import_module("hnswlib").Index("cosine", data.dimensions)
        self._index.init_index(data.count, ef_construction=EXPLORE_AT_INSERT, M=LINKS)
        self._index.set_num_threads(1)

    def build(self) -> None:
        self._index.add_items(self._data.vectors, num_threads=1)

    def search(self) -> Search:
        index = self._index

        def find(query: Vectors, explore: int) -> NDArray[Any]:
            index.set_ef(max(explore, HITS))
            found: NDArray[Any] = index.knn_query(query, HITS, num_threads=1)[0][0]
            return found

        return find


class Faiss:
    """faiss, IndexHNSWFlat over inner products."""

    name = "faiss"

    def __init__(self, data: Data) -> None:
        self._data, self._faiss = data, importlib.import_module("faiss")
        self._faiss.omp_set_num_threads(1)
        self._index = self._faiss.IndexHNSWFlat(data.dimensions, LINKS, self._faiss.METRIC_INNER_PRODUCT)
        self._index.hnsw.efConstruction = EXPLORE_AT_INSERT

    def build(self) -> None:
        self._index.add(self._data.vectors)

    def search(self) -> Search:
        return self._search(None)

    def filtered(self, allowed: Flags) -> Search:
        return self._search(self._faiss.IDSelectorBitmap(bitmap(allowed)))

    def _search(self, selector: Any) -> Search:
        index, settings = self._index, self._faiss.SearchParametersHNSW(sel=selector)

        def find(query: Vectors, explore: int) -> NDArray[Any]:
            settings.efSearch = explore
            found: NDArray[Any] = index.search(query[None], HITS, params=settings)[1][0]
            return found

        return find


class Usearch:
    """usearch, of single precision as the others. It has no filters in Python."""

    name = "usearch"

    def __init__(self, data: Data) -> None:
        self._data = data
        self._index: Any = importlib.import_module("usearch.index").Index(
            ndim=data.dimensions, metric="ip", dtype="f32", connectivity=LINKS, expansion_add=EXPLORE_AT_INSERT
        )

    def build(self) -> None:
        self._index.add(np.arange(self._data.count, dtype=np.uint64), self._data.vectors, threads=1)

    def search(self) -> Search:
        index = self._index

        def find(query: Vectors, explore: int) -> NDArray[Any]:
            index.expansion_search = explore
            found: NDArray[Any] = index.search(query, HITS, threads=1).keys
            return found

        return find


Engine = Paperwasp | Hnswlib | Faiss | Usearch


def engines(data: Data, names: str) -> list[Engine]:
    """Ours first. Errors: ImportError for a peer that is not installed."""
    peers = [peer for peer in (Hnswlib, Faiss, Usearch) if peer.name in names.split(",")]
    return [Paperwasp(data), *(peer(data) for peer in peers)]


def bitmap(allowed: Flags) -> NDArray[np.uint8]:
    """A bit for each document, in whole words of 64."""
    padded = np.zeros((len(allowed) + 63) // 64 * 64, np.bool_)
    padded[: len(allowed)] = allowed
    return np.packbits(padded, bitorder="little")
