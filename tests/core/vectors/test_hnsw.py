"""The graph finds nearly what looking at every vector finds, for every metric, type of cells and kind of filter."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from paperwasp.core import _core, clock
from paperwasp.storage.attributes.vector_graph import METRICS
from tests.chance import SEED
from tests.core.vectors.recall import (
    Cells,
    are_same,
    bitmap,
    cells_of,
    clustered,
    graph_of,
    new_graph,
    new_twin,
    numbers,
    query_of,
    recall,
    search,
    up_to,
)
from tests.oracles.hnsw import CELL_TYPES, PlainHnsw

FEW = 2_000


def twin_of(cells: Cells, metric: str = "euclidean") -> PlainHnsw:
    twin = new_twin(cells, metric)
    twin.add(cells, up_to(len(cells)), up_to(len(cells)))
    return twin


@functools.cache
def filtered() -> tuple[Cells, _core.Hnsw, PlainHnsw]:
    """Vectors, a graph and a twin that only searches with filters share: none changes them."""
    cells = clustered(np.random.default_rng(SEED), 2 * FEW, 16)
    return cells, graph_of(cells), twin_of(cells)


@pytest.mark.parametrize("cell_type", CELL_TYPES)
@pytest.mark.parametrize("metric", METRICS)
def test_the_nearest_are_found(metric: str, cell_type: str) -> None:
    rng = np.random.default_rng(SEED)
    size = 2 if metric == "geodegrees" else 24
    vectors = clustered(rng, FEW, size)
    if metric == "geodegrees":
        vectors *= [1, 2]  # of int8 cells that are not at their bounds
    if metric == "product":
        vectors *= rng.random((FEW, 1), np.float32)
    cells = cells_of(vectors, cell_type)
    graph, twin = graph_of(cells, metric), twin_of(cells, metric)
    found = 0
    for row in range(0, FEW, 50):
        query = query_of(cells, row)
        owners, distances, nodes = search(graph, cells, query)
        _, wanted, _ = search(twin, cells, query)
        assert (owners == nodes).all() and len(set(owners.tolist())) == 10
        assert (np.diff(distances) >= 0).all()
        # Whoever is as near as the tenth is right: places and bits have many equals.
        found += int((distances <= wanted[-1] * (1 + 1e-5 * np.sign(wanted[-1])) + 1e-6).sum())
        exact, which = np.empty(10), np.empty(10, np.uint32)
        rows = nodes.astype(np.uint64) << np.uint64(24) | np.uint64(1)
        _core.least_distances(METRICS.index(metric), query, cells, rows, exact, which)
        assert (exact == distances).all()
    assert found / 400 >= 0.98


def test_many_equal_vectors_are_no_wall() -> None:
    """Boilerplate: most documents have one vector in common. Their links must not keep walks from the others."""
    rng = np.random.default_rng(SEED)
    kinds = np.concatenate([np.arange(600), np.full(1_500, 600)])
    rng.shuffle(kinds)
    cells = clustered(rng, 601, 64)[kinds].astype(np.float32)
    graph = graph_of(cells, "angular")
    alone = np.flatnonzero(kinds < 600)[::4]
    found = [int(row) in search(graph, cells, query_of(cells, row), explore=20)[0].tolist() for row in alone]
    assert np.mean(found) >= 0.9


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_vectors_too_close_for_codes_of_bytes(offset: float) -> None:
    """Far from zero and near each other, they all have the same code: the graph goes by their cells then."""
    rng = np.random.default_rng(SEED)
    cells = (clustered(rng, FEW, 16) + offset).astype(np.float32)
    graph, twin = graph_of(cells), twin_of(cells)
    assert recall(graph, twin, cells, cells[::50]) >= 0.98


@pytest.mark.parametrize("dimensions", [1, 3, 63, 64, 65, 100, 200])
def test_any_number_of_dimensions(dimensions: int) -> None:
    rng = np.random.default_rng(SEED)
    for cell_type in ("float32", "int8"):
        cells = cells_of(clustered(rng, 500, dimensions), cell_type)
        graph, twin = graph_of(cells), twin_of(cells)
        for row in range(0, 500, 25):
            wanted = search(twin, cells, cells[row])[1]
            assert search(graph, cells, cells[row])[1] == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1, 0.3, 0.5])
def test_filters(share: float, filter_first: bool) -> None:
    rng = np.random.default_rng(SEED + 1)
    cells, graph, twin = filtered()
    accept = bitmap(rng.random(2 * FEW) < share)
    queries = clustered(rng, 40, 16)
    how = {"accept": accept, "filter_first": filter_first, "exploration": 0.3}
    assert recall(graph, twin, cells, queries, **how) >= 0.97


@pytest.mark.parametrize("filter_first", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.03, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("place", ["near", "far"])
def test_filters_that_go_with_the_distance(place: str, share: float, filter_first: bool) -> None:
    """What is let through is nearest to the queries, or farthest from them."""
    rng = np.random.default_rng(SEED + 1)
    cells, graph, twin = filtered()
    queries = (cells[7] + rng.standard_normal((20, 16))).astype(np.float32)
    order = np.argsort(((cells - cells[7]) ** 2).sum(axis=1))
    allowed = np.zeros(2 * FEW, np.bool_)
    allowed[order[: int(2 * FEW * share)] if place == "near" else order[-int(2 * FEW * share) :]] = True
    how = {"accept": bitmap(allowed), "filter_first": filter_first, "exploration": 0.3}
    assert recall(graph, twin, cells, queries, **how) >= 0.95


@pytest.mark.parametrize("filter_first", [False, True])
def test_filters_far_from_the_query(filter_first: bool) -> None:
    """Only documents of a cluster are let through, and the query is in another."""
    rng = np.random.default_rng(SEED)
    cluster = rng.integers(0, 8, FEW)
    cells = (rng.standard_normal((8, 12)) * 8)[cluster].astype(np.float32)
    cells += rng.standard_normal((FEW, 12)).astype(np.float32)
    graph, twin = graph_of(cells), twin_of(cells)
    for far in range(8):
        queries = cells[cluster == (far + 1) % 8][:5]
        how = {"accept": bitmap(cluster == far), "filter_first": filter_first, "explore": 50}
        assert recall(graph, twin, cells, queries, **how) >= 0.9


def test_fewer_than_asked_for() -> None:
    cells = clustered(np.random.default_rng(SEED), 300, 8)
    graph, few = graph_of(cells), np.zeros(300, np.bool_)
    few[[3, 77, 290]] = True
    for filter_first in (False, True):
        owners, _, _ = search(graph, cells, cells[3], accept=bitmap(few), filter_first=filter_first)
        assert set(owners.tolist()) == {3, 77, 290} and owners[0] == 3
    assert len(search(graph, cells, cells[0], accept=np.zeros(0, np.uint64))[0]) == 0
    assert len(search(graph, cells, cells[0], count=0)[0]) == 0
    assert set(search(graph, cells, cells[0], limit=5)[0].tolist()) <= set(range(5))
    assert len(search(graph, cells, cells[0], count=1000, explore=0)[0]) == 300


def test_documents_of_many_vectors() -> None:
    rng = np.random.default_rng(SEED)
    cells = clustered(rng, FEW, 12)
    owners = np.sort(rng.integers(0, 100, FEW)).astype(np.uint32)
    graph, twin = new_graph(cells), new_twin(cells)
    for each in (graph, twin):
        each.add(cells, up_to(FEW), owners)
    for row in range(0, FEW, 50):
        found, distances, nodes = search(graph, cells, cells[row], explore=30)
        assert len(set(found.tolist())) == 10 and (owners[nodes] == found).all()
        assert distances == pytest.approx(search(twin, cells, cells[row])[1], rel=1e-4, abs=1e-4)


def test_threshold() -> None:
    cells = np.arange(100, dtype=np.float32).reshape(-1, 1)
    graph = graph_of(cells)
    owners, distances, _ = search(graph, cells, np.array([50.25], np.float32), threshold=1.5625)
    assert owners.tolist() == [50, 51, 49] and distances.tolist() == [0.0625, 0.5625, 1.5625]
    assert len(search(graph, cells, np.array([50.25], np.float32), threshold=0.05)[0]) == 0


def test_slack_finds_no_less() -> None:
    rng = np.random.default_rng(SEED)
    cells, queries = clustered(rng, FEW, 32), clustered(rng, 50, 32)
    graph, twin = graph_of(cells, links=4, explore=20), twin_of(cells)
    tight = recall(graph, twin, cells, queries, explore=10)
    assert tight < recall(graph, twin, cells, queries, explore=10, slack=0.3) <= 1


def test_what_is_no_number_is_never_found() -> None:
    cells = clustered(np.random.default_rng(SEED), 50, 4)
    cells[7, 2], cells[9, 0] = np.nan, np.inf
    graph = graph_of(cells)
    assert graph.nodes == 48
    assert sorted(search(graph, cells, cells[0], count=50)[0].tolist()) == [i for i in range(50) if i not in (7, 9)]
    graph.remove(cells, numbers(7))
    assert graph.nodes == 48


def test_zero_vectors_have_no_angle() -> None:
    cells = np.array([[0, 0], [1, 0], [-1, 0.5]], np.float32)
    owners, distances, _ = search(graph_of(cells, "angular"), cells, np.array([2, 0], np.float32))
    assert owners.tolist() == [1, 0, 2] and distances[:2].tolist() == [0, 1]


def test_products_of_vectors_of_any_length() -> None:
    """The longest are nearest to nearly all queries; the shortest are reached, too, where a filter leaves only them."""
    rng = np.random.default_rng(SEED)
    lengths = rng.lognormal(0, 0.6, (FEW, 1)).astype(np.float32)
    cells, queries = clustered(rng, FEW, 24) * lengths, clustered(rng, 100, 24)
    graph, twin = graph_of(cells, "product"), twin_of(cells, "product")
    assert recall(graph, twin, cells, queries, explore=30) >= 0.9
    shortest = bitmap(np.linalg.norm(cells, axis=1) < np.quantile(np.linalg.norm(cells, axis=1), 0.1))
    for filter_first in (False, True):
        assert recall(graph, twin, cells, queries, accept=shortest, filter_first=filter_first) >= 0.9
    assert len(search(graph, cells, queries[0], count=FEW, explore=FEW)[0]) >= 0.99 * FEW


@pytest.mark.parametrize("zeros", [1, 5, 40])
def test_zero_vectors_have_a_product(zeros: int) -> None:
    """With each vector it is 0, which is more than half of the others have."""
    rng = np.random.default_rng(SEED)
    cells = clustered(rng, 100, 4)
    cells[rng.permutation(100)[:zeros]] = 0
    graph, twin = graph_of(cells, "product", 6, 40), twin_of(cells, "product")
    for query in clustered(rng, 20, 4):
        owners, distances, _ = search(graph, cells, query, count=100)
        wanted, apart, _ = search(twin, cells, query, count=100)
        assert set(owners.tolist()) <= set(wanted.tolist()) and len(owners) >= 100 - zeros
        assert distances[:10] == pytest.approx(apart[:10], rel=1e-5, abs=1e-5)


def test_nothing_is_found_in_nothing() -> None:
    cells = np.zeros((0, 3), np.float32)
    assert [len(each) for each in search(new_graph(cells), cells, np.zeros(3, np.float32))] == [0, 0, 0]


def test_one_thread_makes_one_graph() -> None:
    cells = clustered(np.random.default_rng(SEED), 500, 8)
    whole, parts = graph_of(cells), new_graph(cells)
    for start in range(0, 500, 100):
        parts.add(cells[: start + 100], up_to(100, start), up_to(100, start))
    assert are_same(whole.arrays(), parts.arrays())


def test_several_threads() -> None:
    rng = np.random.default_rng(SEED)
    cells, queries = clustered(rng, FEW, 16), clustered(rng, 50, 16)
    graph = new_graph(cells)
    graph.add(cells, up_to(FEW), up_to(FEW), 4)
    assert graph.nodes == FEW
    assert recall(graph, twin_of(cells), cells, queries) >= 0.98


def test_a_search_ends_with_its_time() -> None:
    cells = clustered(np.random.default_rng(SEED), FEW, 16)
    graph = graph_of(cells)
    clock.end_work_at(1)
    try:
        with pytest.raises(_core.OutOfTime):
            for _ in range(1000):
                search(graph, cells, cells[0], explore=FEW)
    finally:
        clock.end_work_at(0)


def test_bad_arguments() -> None:
    cells = clustered(np.random.default_rng(SEED), 50, 4)
    graph, query = new_graph(cells), cells[0]
    for metric, cell, dimensions, links in [
        (9, 1, 4, 16),
        (0, 9, 4, 16),
        (0, 1, 0, 16),
        (4, 1, 4, 16),
        (0, 1, 4, 1),
        (0, 1, 4, 5000),
    ]:
        with pytest.raises(ValueError):
            _core.Hnsw(metric, cell, dimensions, links, 100)
    for wrong in (cells[:, :3].copy(), cells.astype(np.float64)):
        with pytest.raises(ValueError):
            graph.add(wrong, numbers(0), numbers(0))
        with pytest.raises(ValueError):
            search(graph, wrong, query)
    for nodes, owners, threads in [
        ((50,), (0,), 1),
        ((0, 1), (0,), 1),
        ((1, 0), (0, 0), 1),
        ((1, 1), (0, 0), 1),
        ((0,), (0,), 0),
    ]:
        with pytest.raises(ValueError):
            graph.add(cells, numbers(*nodes), numbers(*owners), threads)
    graph.add(cells, numbers(4), numbers(4))
    with pytest.raises(ValueError):
        graph.add(cells, numbers(4), numbers(4))
    for bad_query in (cells[0, :3], cells[0].astype(np.float64)):
        with pytest.raises(ValueError):
            search(graph, cells, np.ascontiguousarray(bad_query))
    assert search(graph, cells, np.full(4, math.nan, np.float32))[0].tolist() == []


@pytest.mark.parametrize("way", [{}, {"accept": True}, {"accept": True, "filter_first": True, "exploration": 1.0}])
def test_a_walk_ends_when_its_time_is_over(way: dict[str, Any]) -> None:
    """With what it has met: at a moment that is past, before it has left the node at which it begins."""
    cells = clustered(np.random.default_rng(SEED), 3_000, 8)
    graph, way = graph_of(cells), dict(way)
    if way.pop("accept", False):
        way["accept"] = bitmap(np.arange(3_000) % 2 == 0)
    without = search(graph, cells, cells[0], **way)
    assert are_same(search(graph, cells, cells[0], end_ns=2**62, **way), without)
    owners, distances, nodes = search(graph, cells, cells[0], end_ns=1, **way)
    assert len(owners) <= 1 < len(without[0])
    assert distances.tolist() == [float(np.square(cells[node] - cells[0]).sum()) for node in nodes]
