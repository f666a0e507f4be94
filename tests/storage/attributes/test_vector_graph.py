"""Graphs over vectors: after any changes they find what comparing all vectors finds, if they look far enough."""

from __future__ import annotations

import random
from functools import cache
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.storage.attributes import growable
from paperwasp.storage.attributes import rows as rows_module
from paperwasp.storage.attributes.tensor import TensorColumn, TensorView
from paperwasp.storage.attributes.vector_graph import GraphSettings
from tests.chance import SEED
from tests.storage.attributes.graph_checks import check_graph

TYPES = ["tensor<float>(x[3])", "tensor<double>(a{},x[3])", "tensor<bfloat16>(a{},b{},x[3])", "tensor<int8>(a{},x[3])"]
METRICS = ["", "euclidean", "angular", "dotproduct", "prenormalized-angular", "hamming", "geodegrees"]
ODD = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0]
NO_LIDS = np.zeros(0, np.uint32)


@pytest.fixture(autouse=True)
def few_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements that no row has any more are removed often."""
    monkeypatch.setattr(rows_module, "_LEAST_UNUSED", 6)


@cache
def cells_of(kind: TensorType) -> st.SearchStrategy[list[float]]:
    """Few different vectors, so that some are the same; few odd ones. Of a fixed pool: to draw each cell by itself took
    most of the time."""
    chance = random.Random(SEED)

    def cell() -> float:
        is_odd = kind.cell_type != "int8" and chance.random() < 0.17
        return chance.choice(ODD) if is_odd else float(chance.randint(-3, 3))

    return st.sampled_from([[cell() for _ in range(kind.shape[0])] for _ in range(200)])


@cache
def tensors(kind: TensorType) -> st.SearchStrategy[Tensor]:
    def built(vectors: list[list[float]]) -> Tensor:
        builder = TensorBuilder(kind)
        for number, vector in enumerate(vectors):
            builder.subspace((str(number),) * len(kind.mapped), vector)
        return builder.build()

    return st.lists(cells_of(kind), min_size=0 if kind.mapped else 1, max_size=4 if kind.mapped else 1).map(built)


class History:
    """A column with a graph, and which of its documents are there."""

    def __init__(self, kind: TensorType, settings: GraphSettings) -> None:
        self.kind, self.settings = kind, settings
        self.column = TensorColumn(kind, graph=settings)
        self.live: list[bool] = []
        self.dead: list[int] = []

    def append(self, values: list[Tensor | None]) -> None:
        self.column.append(values)
        self.live += [True] * len(values)

    def bury(self, lids: list[int]) -> None:
        for lid in lids:
            self.live[lid] = False
            self.dead.append(lid)

    def publish(self) -> TensorView:
        self.column.settle(np.array(self.dead, np.uint32))
        self.dead = []
        return self.column.snapshot()

    def restart(self, settings: GraphSettings | None = None) -> None:
        self.publish()
        saved = self.column.freeze()()
        self.column = TensorColumn(self.kind, graph=settings or self.settings)
        self.column.load({name: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for name, a in saved.items()})

    def build(self, most: int) -> None:
        """As the chore of a node does."""
        for _ in range(1000):
            unbuilt = self.publish().unbuilt
            if unbuilt is None:
                return
            if unbuilt.build(np.array(self.live, np.bool_), most):
                self.column.finish_graph(np.array(self.live, np.bool_))
        raise AssertionError("never built")

    def give_new_rows(self) -> None:
        """As the compaction of a node does."""
        self.publish()
        lids = np.flatnonzero(self.live).astype(np.uint32)
        other = TensorColumn(self.kind, graph=self.settings)
        values: Any = self.column.snapshot().gather(lids)
        other.append(values)
        other.adopt_graph(self.column, lids)
        self.column, self.live = other, [True] * len(lids)
        assert self.column.snapshot().unbuilt is None


def kinds_of(metric: str) -> list[TensorType]:
    return [TensorType.parse(text.replace("3", "2") if metric == "geodegrees" else text) for text in TYPES]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data(), st.sampled_from(METRICS), st.integers(2, 5))
def test_a_graph_stays_true(data: st.DataObject, metric: str, links: int) -> None:
    kind = data.draw(st.sampled_from(kinds_of(metric)))
    history = History(kind, GraphSettings(metric, links, 20, multi_threaded=data.draw(st.booleans())))
    optional = st.one_of(tensors(kind), tensors(kind), tensors(kind), st.none())
    query = TensorBuilder(TensorType.parse(f"tensor<{kind.cell_type}>(x[{kind.shape[0]}])"))
    query.subspace((), data.draw(cells_of(kind)))
    asked = query.build()
    for _ in range(data.draw(st.integers(1, 6))):
        history.append(data.draw(st.lists(optional, max_size=12)))
        lids = [lid for lid, is_live in enumerate(history.live) if is_live]
        for lid in data.draw(st.lists(st.sampled_from(lids), max_size=8)) if lids else []:
            history.column.set(lid, data.draw(optional))
        if lids:
            history.bury(data.draw(st.lists(st.sampled_from(lids), max_size=4, unique=True)))
        step = data.draw(st.sampled_from(["publish", "restart", "other settings", "new rows", "nothing"]))
        if step == "restart":
            history.restart()
        elif step == "other settings":
            history.settings = GraphSettings(metric, links + 1 if history.settings.max_links == links else links, 20)
            history.restart(history.settings)
            history.build(data.draw(st.integers(1, 9)))
        elif step == "new rows":
            history.give_new_rows()
        if step != "nothing":
            check_graph(history.publish(), np.flatnonzero(history.live).tolist(), metric, asked)
    check_graph(history.publish(), np.flatnonzero(history.live).tolist(), metric, asked)


def test_readers_search_beside_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search finds in a view has the distance of the cells that the view has for it, whatever is appended,
    moved, changed and removed meanwhile."""
    monkeypatch.setattr(growable, "_RESERVED_FROM_BYTES", 40_000)
    monkeypatch.setattr(rows_module, "_LEAST_UNUSED", 200)
    kind = TensorType.parse("tensor<float>(x[3])")
    history = History(kind, GraphSettings("", 4, 20))
    chance = np.random.default_rng(SEED)
    views = [history.publish()]
    done = Event()
    failures: list[str] = []

    def read() -> None:
        while not done.is_set():
            view = views[-1]
            assert view.graph is not None
            query = chance_of_reader.random(3).astype(np.float32)
            lids, distances, nodes = view.graph.search(
                view.cells, query, 10, 30, None, view.limit, np.inf, False, 0.0, 0.0
            )
            expected = np.square(view.cells[nodes] - query).sum(axis=1)
            if np.any(lids >= view.limit) or not np.allclose(distances, expected, rtol=1e-5):
                failures.append(f"{lids} {distances} {expected}")

    chance_of_reader = np.random.default_rng(SEED + 1)
    reader = Thread(target=read)
    reader.start()
    try:
        for _ in range(150):
            history.append([dense(kind, chance.random(3)) for _ in range(int(chance.integers(1, 40)))])
            live = np.flatnonzero(history.live)
            for lid in chance.choice(live, 40).tolist():
                history.column.set(lid, dense(kind, chance.random(3)))
            history.bury(chance.choice(live, 5, replace=False).tolist() if len(live) > 100 else [])
            views.append(history.publish())
    finally:
        done.set()
        reader.join()
    assert not failures
    assert history.column.graph is not None and history.column.graph.numbering > 0, "elements were never renumbered"


def dense(kind: TensorType, vector: np.ndarray) -> Tensor:
    builder = TensorBuilder(kind)
    builder.subspace((), vector.tolist())
    return builder.build()


def test_the_memory_of_a_column_is_also_that_of_its_graph() -> None:
    kind = TensorType.parse("tensor<float>(x[3])")
    values = [Tensor(kind, ((),), np.array([[number, 1, 2]], np.float32)) for number in range(2000)]
    columns = TensorColumn(kind), TensorColumn(kind, graph=GraphSettings(max_links=16))
    for column in columns:
        column.append(values)
        column.settle(NO_LIDS)
    plain, linked = (column.size_bytes() for column in columns)
    assert columns[1].graph is not None
    assert columns[1].graph.nodes == 2000
    assert linked - plain >= 2000 * 2 * 16 * 4, "a node has room for 2 * 16 links on the lowest level"


def test_what_is_saved_while_another_thread_builds() -> None:
    """Each time it is a whole graph of some of the documents, from which building can go on."""
    kind, chance = TensorType.parse("tensor<float>(x[3])"), np.random.default_rng(SEED)
    column = TensorColumn(kind, graph=GraphSettings("", 4, 20))
    column.append([dense(kind, chance.random(3)) for _ in range(600)])
    assert column.graph is not None
    column.graph.rebuild()
    unbuilt, live = column.snapshot().unbuilt, np.ones(600, np.bool_)
    assert unbuilt is not None

    def build() -> None:
        while not unbuilt.build(live, 5):
            pass

    builder = Thread(target=build)
    builder.start()
    nodes = [0]
    while nodes[-1] < 600:
        loaded = TensorColumn(kind, graph=column.graph.settings)
        loaded.load(column.freeze()())
        assert loaded.graph is not None and not loaded.graph.is_built
        nodes.append(loaded.graph.nodes)
    builder.join()
    assert nodes == sorted(nodes)
    assert loaded.finish_graph(live) and loaded.snapshot().graph is not None
