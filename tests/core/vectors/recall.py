"""Vectors, graphs over them and their recall, for tests of the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.storage.attributes.vector_graph import METRICS
from tests.oracles.hnsw import CELL_TYPES, PlainHnsw

Cells = NDArray[Any]
Numbers = NDArray[np.uint32]
Graph = _core.Hnsw | PlainHnsw


def clustered(rng: np.random.Generator, count: int, dimensions: int, centres: int = 40) -> NDArray[np.float32]:
    """Vectors as embeddings are: in clusters that overlap."""
    middles = rng.standard_normal((centres, dimensions))
    return (middles[rng.integers(0, centres, count)] + rng.standard_normal((count, dimensions))).astype(np.float32)


def cells_of(vectors: NDArray[np.float32], cell_type: str) -> Cells:
    """As a column of this type keeps them."""
    if cell_type == "uint16":
        return (vectors.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return (np.clip(vectors * 20, -128, 127) if cell_type == "int8" else vectors).astype(cell_type)


def query_of(cells: Cells, row: int) -> Cells:
    """A row as a query: cells of 16 bits come as floats."""
    found: Cells = cells[row]
    return (found.astype(np.uint32) << np.uint32(16)).view(np.float32) if cells.dtype == np.uint16 else found


def are_same(first: Iterable[Any], second: Iterable[Any]) -> bool:
    """Arrays of equal numbers, one after another."""
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def numbers(*values: int) -> Numbers:
    return np.array(values, np.uint32)


def up_to(count: int, start: int = 0) -> Numbers:
    return np.arange(start, start + count, dtype=np.uint32)


def new_graph(cells: Cells, metric: str = "euclidean", links: int = 16, explore: int = 100) -> _core.Hnsw:
    return _core.Hnsw(METRICS.index(metric), CELL_TYPES.index(cells.dtype.name), cells.shape[1], links, explore)


def new_twin(cells: Cells, metric: str = "euclidean") -> PlainHnsw:
    return PlainHnsw(METRICS.index(metric), CELL_TYPES.index(cells.dtype.name), cells.shape[1], 16, 100)


def graph_of(cells: Cells, metric: str = "euclidean", links: int = 16, explore: int = 100) -> _core.Hnsw:
    """With every row, which are documents of the same numbers."""
    graph = new_graph(cells, metric, links, explore)
    graph.add(cells, up_to(len(cells)), up_to(len(cells)))
    return graph


def bitmap(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    padded = np.zeros((len(flags) + 63) // 64 * 64, np.bool_)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.uint64)


def search(
    graph: Graph,
    cells: Cells,
    query: Cells,
    count: int = 10,
    explore: int = 100,
    accept: NDArray[np.uint64] | None = None,
    limit: int = 2**32 - 1,
    threshold: float = math.inf,
    filter_first: bool = False,
    exploration: float = 0.01,
    slack: float = 0.0,
    end_ns: int = 0,
) -> tuple[Numbers, NDArray[np.float64], Numbers]:
    return graph.search(
        cells, query, count, explore, accept, limit, threshold, filter_first, exploration, slack, end_ns
    )  # fmt: skip


def recall(graph: Graph, twin: PlainHnsw, cells: Cells, queries: Cells, **how: Any) -> float:
    """The share of the best documents that the graph finds."""
    wanted = found = 0
    for query in queries:
        best = set(search(twin, cells, query, **how)[0].tolist())
        wanted += len(best)
        found += len(best & set(search(graph, cells, query, **how)[0].tolist()))
    return found / max(wanted, 1)


def unreached(graph: _core.Hnsw) -> set[int]:
    """The live nodes to which no links of the lowest level lead from the entry, and those that the entry is not led to
    from: with none of them, a walk finds all from wherever it begins."""
    header, levels, _, counts, links, _ = (each.tolist() for each in graph.arrays())
    ends = np.cumsum([0, *counts]).tolist()
    leads_to: dict[int, list[int]] = {}
    led_from: dict[int, list[int]] = {node: [] for node, level in enumerate(levels) if level}
    place = 0
    for node in led_from:
        leads_to[node] = links[ends[place] : ends[place + 1]]
        place += levels[node] & 0x7F
        for other in leads_to[node]:
            led_from[other].append(node)
    live = {node for node in led_from if levels[node] < 0x80}
    return (live - _walked(leads_to, header[5])) | (live - _walked(led_from, header[5])) if live else set()


def _walked(neighbours: dict[int, list[int]], start: int) -> set[int]:
    met, ahead = {start}, [start]
    while ahead:
        for node in neighbours[ahead.pop()]:
            if node not in met:
                met.add(node)
                ahead.append(node)
    return met
