"""What a graph has, and what it finds when it is asked for everything, compared with all vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor.value import Tensor
from paperwasp.storage.attributes.distances import Distances, Found
from paperwasp.storage.attributes.tensor import NO_LABEL, TensorView, cells_of
from paperwasp.storage.attributes.vector_graph import VectorGraphView
from tests.core.vectors.recall import unreached

EVERYTHING = 100_000
_REMOVED = 0x80
_MOST_SQUARE = 2.0**120


def check_graph(view: TensorView, live: Sequence[int], metric: str, query: Tensor) -> None:
    """The nodes are just the vectors of the `live` documents, all of which links lead to, and what is found has the
    right distances."""
    assert isinstance(view.graph, VectorGraphView)
    assert not unreached(view.graph._hnsw)
    assert nodes_of(view) == expected_nodes(view, live)
    distances = Distances(view, query, metric)
    computed, _ = distances.computed(np.array(live, np.uint32))
    expected = {lid: found for lid, found in zip(live, computed.tolist(), strict=True) if found < np.inf}
    found = search(view, distances, None, np.inf)
    check_found(found, expected)
    for lid, _, node in found:
        assert node in elements_of(view, lid)
    check_of_found(distances, found)
    if len(expected) > 1:
        accepted = list(expected)[::2]
        flags = np.zeros(-(-view.limit // 64) * 64, np.bool_)
        flags[accepted] = True
        threshold = float(np.median(list(expected.values())))
        found = search(view, distances, np.packbits(flags, bitorder="little").view(np.uint64), threshold)
        check_found(found, {lid: expected[lid] for lid in accepted if expected[lid] <= threshold})


def check_of_found(distances: Distances, found: list[tuple[int, float, int]]) -> None:
    """What is taken from a search is what is computed, also where the column has other nodes than the graph."""
    lids = np.array(sorted(lid for lid, _, _ in found), np.uint32)
    of_lid = {lid: (distance, node) for lid, distance, node in found}
    found_distances = np.array([of_lid[lid][0] for lid in lids.tolist()], np.float64)
    nodes = np.array([of_lid[lid][1] for lid in lids.tolist()], np.uint32)
    expected, expected_vectors = distances.computed(lids)
    taken, vectors = distances.of_found(Found(lids, found_distances, nodes))
    assert np.array_equal(taken, expected) and np.array_equal(vectors, expected_vectors)
    moved, vectors = distances.of_found(Found(lids, found_distances + 1.0, nodes + np.uint32(1)))
    assert np.array_equal(moved, expected) and np.array_equal(vectors, expected_vectors)


def check_found(found: list[tuple[int, float, int]], expected: dict[int, float]) -> None:
    assert len({lid for lid, _, _ in found}) == len(found), "a document is found twice"
    assert [distance for _, distance, _ in found] == sorted(distance for _, distance, _ in found)
    distances = {lid: distance for lid, distance, _ in found}
    assert distances == expected


def nodes_of(view: TensorView) -> dict[int, int]:
    """Node → lid, as the graph has them."""
    assert isinstance(view.graph, VectorGraphView)
    _, levels, owners, _, _, _ = view.graph._hnsw.arrays()
    return {int(node): int(owners[node]) for node in np.flatnonzero((levels != 0) & ((levels & _REMOVED) == 0))}


def expected_nodes(view: TensorView, live: Sequence[int]) -> dict[int, int]:
    """The same, of the rows of documents that are there, without vectors that cannot be in a graph."""
    cells = cells_of(view.cells, view.type) if len(view.cells) < EVERYTHING else view.cells
    found = {}
    for lid in live:
        for element in elements_of(view, lid):
            vector = cells[element].astype(np.float64)
            if (view.labels.shape[1] == 0 or view.labels[element, 0] != NO_LABEL) and vector @ vector <= _MOST_SQUARE:
                found[element] = int(lid)
    return found


def elements_of(view: TensorView, lid: int) -> range:
    row = int(view.rows[lid])
    return range(row >> 24, (row >> 24) + (row & 0xFFFFFF))


def search(
    view: TensorView, distances: Distances, accept: NDArray[np.uint64] | None, threshold: float
) -> list[tuple[int, float, int]]:
    """Lid, distance and node of all that is accepted and within the threshold, the nearest first."""
    assert view.graph is not None
    cells, most = view.cells.reshape(len(view.cells), -1), EVERYTHING
    found = view.graph.search(cells, distances._query, most, most, accept, view.limit, threshold, False, 0.0, 0.0)
    lids, values, nodes = (each.tolist() for each in found)
    return list(zip(lids, values, nodes, strict=True))
