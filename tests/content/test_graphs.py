"""Graphs over vectors in a node: built behind the writer, kept true by what is fed, saved with checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest

from paperwasp.content.checkpoints import checkpoint
from paperwasp.document.operations import Operation
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.document.types import TensorFieldType
from paperwasp.schema.model import AttributeSettings, Field, Hnsw, IndexSettings, Schema
from paperwasp.storage.attributes import growable
from paperwasp.storage.attributes.array_file import write_arrays
from paperwasp.storage.attributes.tensor import TensorColumn, TensorView
from paperwasp.storage.attributes.vector_graph import _checked_rows
from tests.chance import SEED
from tests.content.document_checks import build_graphs
from tests.content.nodes import TestNode, put, remove, schema, start, update
from tests.storage.attributes.graph_checks import check_graph

KIND = TensorType.parse("tensor<float>(x[4])")
PARTS = TensorType.parse("tensor<float>(part{},x[4])")
Vector = Sequence[float]


def music(hnsw: Hnsw | None, metric: str = "", paged: bool = False) -> dict[str, Schema]:
    index = None if hnsw is None else IndexSettings(hnsw=hnsw)
    attribute = AttributeSettings(distance_metric=metric, paged=paged)
    one = Field("one", TensorFieldType(str(KIND), KIND), index=index, attribute=attribute)
    many = Field("many", TensorFieldType(str(PARTS), PARTS), index=index, attribute=attribute)
    return {"music": schema("music", one, many)}


def dense(vector: Vector) -> Tensor:
    builder = TensorBuilder(KIND)
    builder.subspace((), list(vector))
    return builder.build()


def mixed(vectors: Sequence[Vector]) -> Tensor:
    builder = TensorBuilder(PARTS)
    for number, vector in enumerate(vectors):
        builder.subspace((str(number),), list(vector))
    return builder.build()


def random_vector(chance: Random) -> list[float]:
    return [chance.randrange(-8, 9) / 2 for _ in range(4)]


def feed(node: TestNode, chance: Random, names: range) -> None:
    """Puts of two fields, and every third time an update in place or a remove."""
    operations: list[Operation] = []
    for name in names:
        vectors = [random_vector(chance) for _ in range(chance.randrange(4))]
        operations.append(put(name, one=dense(random_vector(chance)), many=mixed(vectors)))
        if chance.random() < 0.2:
            operations.append(update(chance.choice(names), one=dense(random_vector(chance))))
        if chance.random() < 0.1:
            operations.append(remove(chance.choice(names)))
    assert all(answer in (True, False) for answer in node.apply(*operations))


def column_of(node: TestNode, name: str = "one") -> TensorView:
    found = node.node.reader.view().columns["music", name]
    assert isinstance(found, TensorView)
    return found


def check(node: TestNode, chance: Random, metric: str = "") -> None:
    """Both graphs are there, and find what is near to some vector."""
    view = node.node.reader.view()
    live = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), count=view.limit, bitorder="little"))
    assert len(live) == view.live_count
    for name in ("one", "many"):
        check_graph(column_of(node, name), live.tolist(), metric, dense(random_vector(chance)))


@pytest.mark.parametrize("cells", ["copied", "mapped", "paged"])
def test_restarts_and_crashes_keep_graphs(tmp_path: Path, cells: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is replayed is linked as what was fed; what is loaded is not built again."""
    chance, paged = Random(SEED), cells == "paged"
    if cells == "mapped":
        monkeypatch.setattr(growable, "_RESERVED_FROM_BYTES", 1)
    node = start(tmp_path, music(Hnsw(4, 20), paged=paged))
    for round_ in range(4):
        feed(node, chance, range(round_ * 40, round_ * 40 + 100))
        check(node, chance)
        if round_ % 2:
            node.node.checkpoint()
        feed(node, chance, range(round_ * 40, round_ * 40 + 30))
        (node.crash if round_ < 3 else node.close)()
        node = start(tmp_path, music(Hnsw(4, 20), paged=paged))
        assert column_of(node).unbuilt is None
        check(node, chance)
    node.node.compact()
    assert column_of(node).unbuilt is None, "the graph was not taken over with the new rows"
    check(node, chance)
    node.close()


def test_an_index_that_is_new_is_built_behind_the_writer(tmp_path: Path) -> None:
    """Meanwhile there is no graph, and operations are applied."""
    chance = Random(SEED)
    node = start(tmp_path, music(None))
    feed(node, chance, range(300))
    node.node.configure(2, music(Hnsw(4, 20)))
    assert column_of(node).graph is None and column_of(node).unbuilt is not None
    chore = node.node.graph_building()
    chore()
    feed(node, chance, range(200, 400))
    node.node.checkpoint()
    build_graphs(node)
    check(node, chance)
    feed(node, chance, range(300, 500))
    check(node, chance)
    assert chore() > 0, "nothing is left to be built"
    node.close()


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_restart_goes_on_with_a_graph_that_is_being_built(tmp_path: Path, steps: int) -> None:
    """Whatever is fed after what was built was saved, before or after the restart."""
    chance = Random(SEED)
    node = start(tmp_path, music(None))
    feed(node, chance, range(300))
    node.node.configure(2, music(Hnsw(4, 20)))
    build_some(node, "one", steps)
    feed(node, chance, range(200, 250))
    node.node.checkpoint()
    feed(node, chance, range(240, 350))
    node.crash()
    node = start(tmp_path, music(Hnsw(4, 20)))
    unbuilt = column_of(node).unbuilt
    assert unbuilt is not None and 30 * steps <= unbuilt.graph.nodes < 200
    build_some(node, "one", 1)
    assert unbuilt.graph.nodes > 30 * steps, "it begins again"
    feed(node, chance, range(100, 400))
    build_graphs(node)
    check(node, chance)
    node.close()


def build_some(node: TestNode, name: str, steps: int) -> None:
    """Builds the graph of some of the rows, about 40 at a time."""
    for _ in range(steps):
        view, unbuilt = node.node.reader.view(), column_of(node, name).unbuilt
        assert unbuilt is not None
        unbuilt.build(np.unpackbits(view.live.view(np.uint8), bitorder="little").view(np.bool_), 40)


def test_elements_with_other_numbers_are_no_graph_to_go_on_with(tmp_path: Path) -> None:
    node = start(tmp_path, music(None))
    feed(node, Random(SEED), range(100))
    node.node.configure(2, music(Hnsw(4, 20)))
    build_some(node, "one", 1)
    column = node.node._current.state.columns["music", "one"]
    assert isinstance(column, TensorColumn)
    assert "graph_rows" in column.freeze()()
    column._compact()
    assert not any(name.startswith("graph_") for name in column.freeze()())
    node.close()


@pytest.mark.parametrize("rows", [[1 << 24 | 2], [5 << 24 | 1], [2**64 - 1], [1] * 9])
def test_damaged_rows_of_an_unfinished_graph_are_refused(rows: list[int]) -> None:
    with pytest.raises(ValueError, match="rows that are not there"):
        _checked_rows(np.array(rows, np.uint64), 8, 2)


@pytest.mark.parametrize("change", [music(Hnsw(5, 20)), music(Hnsw(4, 30)), music(Hnsw(4, 20), "angular")])
def test_other_settings_make_another_graph(tmp_path: Path, change: dict[str, Schema]) -> None:
    chance = Random(SEED)
    node = start(tmp_path, music(Hnsw(4, 20)))
    feed(node, chance, range(100))
    before = column_of(node)
    node.node.configure(2, change)
    assert before.graph is not None and column_of(node).graph is None
    node.crash()
    node = start(tmp_path, change)
    assert column_of(node).graph is None
    build_graphs(node)
    attribute = change["music"].fields["one"].attribute
    check(node, chance, attribute.distance_metric if attribute else "")
    node.node.checkpoint()
    node.crash()
    node = start(tmp_path, change)
    assert column_of(node).unbuilt is None
    node.close()


def test_how_many_threads_insert_makes_no_other_graph(tmp_path: Path) -> None:
    chance = Random(SEED)
    node = start(tmp_path, music(Hnsw(4, 20)))
    feed(node, chance, range(100))
    node.node.configure(2, music(Hnsw(4, 20, multi_threaded_indexing=False)))
    assert column_of(node).unbuilt is None
    check(node, chance)
    node.close()


def test_a_checkpoint_without_graphs_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As older ones are. Their cells stand in the order of rows, with lengths in place of rows."""
    chance = Random(SEED)
    node = start(tmp_path, music(Hnsw(4, 20)))
    feed(node, chance, range(100))
    shown = {name: node.get(name) for name in range(100)}

    def write_older(path: Path, arrays: dict[str, np.ndarray]) -> None:
        older = {name: values for name, values in arrays.items() if not name.startswith("graph_")}
        if "cells" in older:
            rows = older.pop("rows")
            places = [(row >> 24) + i for row in rows.tolist() for i in range(row & 0xFFFFFF)]
            older = {"lengths": (rows & 0xFFFFFF).astype(np.uint32), **older}
            older |= {name: older[name][places] for name in ("labels", "cells")}
        write_arrays(path, older)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_arrays", write_older)
        node.node.checkpoint()
    node.crash()
    node = start(tmp_path, music(Hnsw(4, 20)))
    assert column_of(node).unbuilt is not None
    assert {name: node.get(name) for name in range(100)} == shown
    build_graphs(node)
    check(node, chance)
    node.close()


def test_odd_vectors_concern_their_documents_alone(tmp_path: Path) -> None:
    """Those without a finite length are compared one by one, and the others are found as before."""
    chance = Random(SEED)
    odd: list[Vector] = [
        [np.nan, 0, 0, 0],
        [np.inf, 1, 1, 1],
        [-np.inf, np.inf, 0, 0],
        [3e38, 3e38, 3e38, 3e38],
        [0, 0, 0, 0],
    ]
    for metric in ("", "angular", "dotproduct"):
        node = start(tmp_path / (metric or "euclidean"), music(Hnsw(4, 20), metric))
        feed(node, chance, range(50))
        assert node.apply(*(put(100 + at, one=dense(vector)) for at, vector in enumerate(odd))) == [False] * len(odd)
        check(node, chance, metric)
        assert node.apply(update(100, one=dense([1, 1, 1, 1])), remove(101), put(102, one=dense([2, 1, 1, 1])))
        check(node, chance, metric)
        node.node.checkpoint()
        node.crash()
        node = start(tmp_path / (metric or "euclidean"), music(Hnsw(4, 20), metric))
        check(node, chance, metric)
        column = node.node._current.state.columns["music", "one"]
        assert isinstance(column, TensorColumn) and column.graph is not None
        assert column.graph.nodes == node.node.reader.view().live_count - 1, "all but the one of 3e38"
        node.close()
