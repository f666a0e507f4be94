"""Removal, mending, new numbers and saved arrays of the graph; searches beside a writer."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.core import _core
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
    unreached,
    up_to,
)

SOME = 3_000


def loaded(graph: _core.Hnsw, cells: Cells, metric: str = "euclidean", threads: int = 1) -> _core.Hnsw:
    return _core.Hnsw.from_arrays(METRICS.index(metric), 1, cells.shape[1], 16, 100, cells, *graph.arrays(), threads)


def test_removed_nodes_are_not_found() -> None:
    rng = np.random.default_rng(SEED)
    cells = clustered(rng, SOME, 8)
    graph, twin = graph_of(cells), new_twin(cells)
    gone = rng.permutation(SOME)[: SOME // 2].astype(np.uint32)
    stay = np.setdiff1d(up_to(SOME), gone)
    twin.add(cells, stay, stay)
    for part in np.array_split(gone, 30):
        graph.remove(cells, part)
        assert not set(part.tolist()) & set(search(graph, cells, cells[part[0]], count=100)[0].tolist())
    graph.remove(cells, numbers(int(gone[0]), SOME + 5))
    assert graph.nodes == len(stay)
    assert recall(graph, twin, cells, cells[::50]) >= 0.98


@pytest.mark.parametrize(
    ("metric", "spread"), [("euclidean", 0.0), ("angular", 0.0), ("product", 0.0), ("product", 0.6)]
)
def test_recall_after_three_replacements_of_everything(metric: str, spread: float) -> None:
    """Row `document + SOME * version` is the vector of a version of a document. `spread`: of lengths' logarithms."""
    rng = np.random.default_rng(1)  # the same in every run: what is asked is less than what chance makes of a few
    cells, queries = clustered(rng, 4 * SOME, 24), clustered(rng, 1_000, 24)
    cells *= rng.lognormal(0, spread, (4 * SOME, 1)).astype(np.float32)
    graph, fresh = new_graph(cells, metric), new_graph(cells, metric)
    graph.add(cells, up_to(SOME), up_to(SOME))
    for version in range(1, 4):
        for documents in np.array_split(rng.permutation(SOME).astype(np.uint32), 60):
            documents.sort()
            graph.remove(cells, documents + np.uint32((version - 1) * SOME))
            graph.add(cells, documents + np.uint32(version * SOME), documents)
    fresh.add(cells, up_to(SOME, 3 * SOME), up_to(SOME))
    assert graph.nodes == SOME
    best = nearest_ten(cells[3 * SOME :], queries, metric)
    for explore in (10, 30, 100):
        found, wanted = (share_found(each, cells, queries, best, explore) for each in (graph, fresh))
        assert found >= wanted - 0.01, f"{found:.3f} and {wanted:.3f} in a new graph, where {explore} are looked at"


def nearest_ten(vectors: Cells, queries: Cells, metric: str) -> list[set[int]]:
    """By query the rows whose vectors are nearest, by all products at once."""
    far = -queries @ vectors.T
    if metric == "euclidean":
        far = np.square(vectors).sum(axis=1) + 2 * far
    if metric == "angular":
        far /= np.linalg.norm(vectors, axis=1)
    return [set(row.tolist()) for row in np.argpartition(far, 10, axis=1)[:, :10]]


def share_found(graph: _core.Hnsw, cells: Cells, queries: Cells, best: list[set[int]], explore: int) -> float:
    found = [set(search(graph, cells, query, explore=explore)[0].tolist()) for query in queries]
    return sum(len(each & wanted) for each, wanted in zip(found, best, strict=True)) / sum(map(len, best))


def test_everything_removed_and_added_again() -> None:
    cells = clustered(np.random.default_rng(SEED), 400, 6)
    graph = new_graph(cells)
    graph.add(cells, up_to(200), up_to(200))
    graph.remove(cells, up_to(200))
    assert graph.nodes == 0 and len(search(graph, cells, cells[0])[0]) == 0
    graph.add(cells, up_to(200, 200), up_to(200))
    assert search(graph, cells, cells[300])[0][0] == 100
    assert len(search(graph, cells, cells[300], count=200, explore=200)[0]) == 200


def test_readers_of_older_views() -> None:
    """Rows that a reader's column does not have are not looked at, and the graph may begin at one of them."""
    cells = clustered(np.random.default_rng(SEED), SOME, 8)
    graph = graph_of(cells)
    for rows in (1, 10, 100, 2_000):
        owners, _, nodes = search(graph, cells[:rows], cells[0], count=10)
        assert len(owners) > 0 and nodes.max() < rows and owners[0] == 0
    assert len(search(graph, cells[:0], cells[0])[0]) == 0


def test_new_numbers() -> None:
    rng = np.random.default_rng(SEED)
    cells, queries = clustered(rng, SOME, 16), clustered(rng, 50, 16)
    graph = graph_of(cells)
    graph.remove(cells, up_to(500))
    stay = np.flatnonzero(rng.random(SOME) < 0.8).astype(np.uint32)
    made = graph.renumbered(cells, stay, up_to(len(stay), 7))
    found = stay[stay >= 500]
    assert graph.nodes == SOME - 500 and made.nodes == len(found)
    twin = new_twin(cells)
    twin.add(
        cells[stay],
        np.flatnonzero(stay >= 500).astype(np.uint32),
        np.flatnonzero(stay >= 500).astype(np.uint32) + np.uint32(7),
    )
    assert recall(made, twin, cells[stay], queries) >= 0.98
    made.add(np.concatenate((cells[stay], queries)), up_to(50, len(stay)), up_to(50, 100_000))
    assert search(made, np.concatenate((cells[stay], queries)), queries[20])[0][0] == 100_020


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("metric", ["euclidean", "product"])
def test_saved_and_loaded(metric: str, threads: int) -> None:
    rng = np.random.default_rng(SEED)
    cells = clustered(rng, SOME, 8)
    graph = graph_of(cells[: SOME - 100], metric)
    graph.remove(cells, up_to(40, 100))
    made = loaded(graph, cells, metric, threads)
    assert made.nodes == graph.nodes
    assert are_same(graph.arrays(), made.arrays())
    for each in (graph, made):
        each.add(cells, up_to(100, SOME - 100), up_to(100, SOME - 100))
    for row in range(0, SOME, 100):
        assert are_same(search(graph, cells, cells[row]), search(made, cells, cells[row]))


@pytest.mark.parametrize("threads", [1, 3])
def test_a_node_whose_vector_became_no_number(threads: int) -> None:
    cells = clustered(np.random.default_rng(SEED), SOME, 8)
    graph, cells[SOME - 1, 3] = graph_of(cells), np.nan
    with pytest.raises(ValueError):
        loaded(graph, cells, threads=threads)
    with pytest.raises(ValueError):
        loaded(graph, cells, threads=0)


def test_an_empty_graph_is_loaded() -> None:
    cells = np.zeros((3, 2), np.float32)
    assert loaded(new_graph(cells), cells).nodes == 0


def test_arrays_of_other_settings() -> None:
    cells = clustered(np.random.default_rng(SEED), 100, 8)
    arrays = graph_of(cells).arrays()
    for metric, dimensions, links, rows in [(1, 8, 16, 100), (0, 8, 8, 100), (0, 8, 16, 50)]:
        with pytest.raises(ValueError):
            _core.Hnsw.from_arrays(metric, 1, dimensions, links, 100, cells[:rows], *arrays)
    with pytest.raises(ValueError):
        _core.Hnsw.from_arrays(0, 1, 4, 16, 100, cells.reshape(200, 4), *arrays)


@seed(SEED)
@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 5),
    st.integers(0, 1_000_000),
    st.sampled_from([0, 1, 2, 5, 17, 0x7F, 0x81, 0xFFFF, 2**31, 2**32 - 1]),
)
def test_damaged_arrays_are_refused_or_searched(part: int, place: int, value: int) -> None:
    """One number is another: either it is seen, or what was loaded can be searched and changed all the same."""
    rng = np.random.default_rng(1)
    cells = clustered(rng, 120, 4)
    arrays: list[Any] = [each.copy() for each in SAVED]
    damaged = arrays[part]
    damaged[place % len(damaged)] = np.uint64(value).astype(damaged.dtype)
    try:
        graph = _core.Hnsw.from_arrays(0, 1, 4, 4, 20, cells, *arrays)
    except ValueError:
        return
    search(graph, cells, cells[5], count=120)
    graph.remove(cells, up_to(60))
    search(graph, cells, cells[5], count=120)


SAVED = graph_of(clustered(np.random.default_rng(1), 100, 4), links=4, explore=20).arrays()


@pytest.mark.parametrize("part", range(6))
def test_cut_arrays_are_refused(part: int) -> None:
    cells = clustered(np.random.default_rng(1), 100, 4)
    arrays: list[Any] = list(SAVED)
    arrays[part] = arrays[part][:-1]
    with pytest.raises(ValueError):
        _core.Hnsw.from_arrays(0, 1, 4, 4, 20, cells, *arrays)


@seed(SEED)
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_as_the_twin_after_any_changes(data: st.DataObject) -> None:
    """Small graphs find everything: whatever was added and removed, both find the same."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    cell_type = data.draw(st.sampled_from(["float32", "float64", "uint16", "int8"]))
    # Floats hardly ever have equal cells, so that by their number all vectors are as far from each other.
    metric = data.draw(st.sampled_from(["euclidean", "angular", *(["hamming"] if cell_type == "int8" else [])]))
    cells = cells_of(clustered(rng, 150, 5), cell_type)
    graph, twin = new_graph(cells, metric, links=6), new_twin(cells, metric)
    end = 0
    for _ in range(data.draw(st.integers(1, 8))):
        added = min(data.draw(st.integers(0, 40)), 150 - end)
        owners = np.sort(rng.integers(0, 90, added)).astype(np.uint32)
        gone = rng.integers(0, 150, data.draw(st.integers(0, 20))).astype(np.uint32)
        gone = gone[gone < end]
        for each in (graph, twin):
            each.add(cells, up_to(added, end), owners)
            each.remove(cells, gone)
        end += added
        accept = data.draw(st.sampled_from([None, bitmap(rng.random(90) < 0.5)]))
        query = query_of(cells, int(rng.integers(0, 150)))
        first = data.draw(st.booleans())
        wanted = search(twin, cells, query, count=150, accept=accept)
        found = search(graph, cells, query, count=150, explore=150, accept=accept, filter_first=first)
        assert graph.nodes == twin.nodes and not unreached(graph)
        assert sorted(found[0].tolist()) == sorted(wanted[0].tolist())
        assert found[1] == pytest.approx(wanted[1], rel=1e-4, abs=1e-4)


def same_direction(rng: np.random.Generator, count: int, dimensions: int) -> Cells:
    return (1 + 0.01 * rng.standard_normal((count, dimensions))).astype(np.float32)


def equal(rng: np.random.Generator, count: int, dimensions: int) -> Cells:
    """Three vectors in all."""
    return rng.standard_normal((3, dimensions)).astype(np.float32)[rng.integers(0, 3, count)]


@pytest.mark.parametrize("vectors", [clustered, same_direction, equal])
@pytest.mark.parametrize("metric", ["euclidean", "angular", "product"])
@pytest.mark.parametrize("links", [2, 3, 8])
def test_every_node_is_reached_after_any_history(vectors: Any, metric: str, links: int) -> None:
    """Additions and removals, a few or most of the nodes at a time, by one thread or several, and other numbers; also
    for readers of an older view, and from nodes that are removed."""
    rng = np.random.default_rng(SEED)
    cells = vectors(rng, 1_500, 4)
    graph, end = new_graph(cells, metric, links, explore=20), 0
    live: set[int] = set()
    while end < len(cells):
        added = min(int(rng.integers(1, 60)), len(cells) - end)
        graph.add(cells, up_to(added, end), up_to(added, end), int(rng.integers(1, 4)))
        live |= set(range(end, end + added))
        end += added
        gone = rng.permutation(sorted(live))[: int(len(live) * rng.choice([0.02, 0.1, 0.5, 0.9]))]
        graph.remove(cells, gone.astype(np.uint32))
        live -= set(gone.tolist())
        assert not unreached(graph), f"of {len(live)} are not reached, seed {SEED}"
        first = sorted(live)[: len(live) // 2 + 1]
        # As many as there are, but not so many that all are compared.
        found = search(graph, cells[: first[-1] + 1], cells[first[0]], count=len(first), explore=len(first))
        if len(first) < len(live):
            assert sorted(found[2].tolist()) == first
    made = loaded_as_before_trees(graph, cells, metric, links)
    order = rng.permutation(sorted(live)).astype(np.uint32)
    for each in (made, graph.renumbered(cells, order, up_to(len(order)))):
        assert each.nodes == len(live) and not unreached(each)


def loaded_as_before_trees(graph: _core.Hnsw, cells: Cells, metric: str, links: int) -> _core.Hnsw:
    """From arrays of the first version, one of whose lists in three has lost all of its links."""
    header, levels, owners, counts, all_links, _ = graph.arrays()
    header[0] = 1
    keeps = np.arange(len(counts)) % 3 > 0
    kept = np.repeat(keeps, counts)
    counts[~keeps] = 0
    return _core.Hnsw.from_arrays(
        METRICS.index(metric), 1, cells.shape[1], links, 20, cells, header, levels, owners, counts, all_links[kept],
        numbers(),
    )  # fmt: skip


def test_few_nodes_are_compared_whole() -> None:
    """Of a graph that has no links at all any more, as no history leaves it."""
    cells = clustered(np.random.default_rng(SEED), 50, 4)
    header, levels, owners, counts, _, parents = graph_of(cells).arrays()
    assert header[0] == 2 and len(parents) == 50
    header[0] = 1
    bare = _core.Hnsw.from_arrays(0, 1, 4, 16, 100, cells, header, levels, owners, counts * 0, numbers(), numbers())
    assert not unreached(bare)
    for accept in (None, bitmap(np.arange(50) % 2 == 0)):
        wanted = search(graph_of(cells), cells, cells[7], count=50, explore=50, accept=accept)
        assert are_same(search(bare, cells, cells[7], count=50, explore=50, accept=accept), wanted)


def test_each_vector_finds_itself() -> None:
    """By a search for few, in a graph of few links where half of all vectors are near one direction: which takes that
    more nodes are kept in sight than hits are wanted. What is found is still the best of what is kept."""
    rng = np.random.default_rng(1)
    cells = rng.standard_normal((1_000, 8)).astype(np.float32)
    cells[::2] = 1 + 0.01 * rng.standard_normal((500, 8))
    graph = new_graph(cells, "angular", 8, 50)
    for part in np.array_split(up_to(1_000), 20):
        graph.add(cells, part, part)

    def missed(explore: int) -> int:
        return sum(row not in search(graph, cells, cells[row], 10, explore)[0] for row in range(1_000))

    assert missed(10) > 5 and missed(limits.GRAPH_EXPLORED_LEAST) == 0
    few, many = (search(graph, cells, cells[7], count, limits.GRAPH_EXPLORED_LEAST) for count in (10, 100))
    assert len(few[0]) == 10 and are_same(few, [found[:10] for found in many])


def test_searches_beside_a_writer() -> None:
    """Two readers of the view that the writer published last find what is there all the time."""
    rng = np.random.default_rng(SEED)
    cells = clustered(rng, SOME, 8)
    graph = new_graph(cells)
    graph.add(cells, up_to(500), up_to(500))
    published, done = [500], threading.Event()
    problems: list[object] = []

    def read() -> None:
        own = np.random.default_rng(SEED)
        while not done.is_set():
            end, row = published[0], int(own.integers(250, 500))
            owners, distances, nodes = search(graph, cells[:end], cells[row], count=5, filter_first=bool(row % 2))
            if owners[0] != row or distances[0] != 0 or nodes.max() >= end:
                problems.append((row, owners, distances, nodes))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for start in range(500, SOME, 50):
        graph.add(cells, up_to(50, start), up_to(50, start), 1 + start % 2)
        graph.remove(cells, up_to(5, (start - 500) // 10))
        published[0] = start + 50
    done.set()
    for reader in readers:
        reader.join()
    assert problems == []
