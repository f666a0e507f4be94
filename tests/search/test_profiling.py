"""Profiles of where the time of a query goes: trees and lists of tasks by a clock that a test winds on, and what a
query that asks for them is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from paperwasp.base.env import Environment
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.schema import parse_schemas
from paperwasp.search.observe import Profiler
from paperwasp.search.operators.boolean import AndItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Profiling
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

SONG = """schema song {
  document song {
    field title type string {
      indexing: index
      index: enable-bm25
    }
    field plays type int { indexing: attribute }
    field place type tensor<float>(x[2]) { indexing: attribute }
  }
  rank-profile both {
    inputs { query(here) tensor<float>(x[2]) }
    first-phase { expression: attribute(plays) * 2 + reduce(attribute(place) + query(here), max) }
    second-phase {
      expression: firstPhase + fieldMatch(title)
      rerank-count: 2
    }
  }
  rank-profile words { first-phase { expression: bm25(title) } }
}"""


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns


def worked(depth: int) -> dict[str, Any]:
    """a twice: 1 ms by itself, 2 ms in b; c once, 4 ms, of which b is 3."""
    clock = Clock()
    profiler = Profiler(Environment(monotonic_ns=clock.monotonic_ns), depth)
    for _ in range(2):
        with profiler.task("a", 10):
            clock.now_ns += 1_000_000
            with profiler.task("b", 10):
                clock.now_ns += 2_000_000
    with profiler.task("c"):
        clock.now_ns += 1_000_000
        with profiler.task("b"):
            clock.now_ns += 3_000_000
    return profiler.report()


def test_a_tree() -> None:
    assert worked(2) == {
        "profiler": "tree",
        "depth": 2,
        "total_time_ms": 10.0,
        "roots": [
            {
                "name": "a",
                "count": 20,
                "total_time_ms": 6.0,
                "self_time_ms": 2.0,
                "children": [{"name": "b", "count": 20, "total_time_ms": 4.0}],
            },
            {
                "name": "c",
                "count": 1,
                "total_time_ms": 4.0,
                "self_time_ms": 1.0,
                "children": [{"name": "b", "count": 1, "total_time_ms": 3.0}],
            },
        ],
    }


def test_a_tree_of_one_level() -> None:
    roots = worked(1)["roots"]
    assert roots == [
        {"name": "a", "count": 20, "total_time_ms": 6.0},
        {"name": "c", "count": 1, "total_time_ms": 4.0},
    ]


def test_a_list() -> None:
    assert worked(-2) == {
        "profiler": "flat",
        "topn": 2,
        "total_time_ms": 10.0,
        "roots": [
            {"name": "b", "count": 21, "self_time_ms": 7.0},
            {"name": "a", "count": 20, "self_time_ms": 2.0},
        ],
    }


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with started(tmp_path_factory.mktemp("songs"), parse_schemas({"schemas/song.sd": SONG}).schemas) as node:
        place = parse_tensor("tensor<float>(x[2]):[1, 2]")
        fields = [{"title": "blue", "plays": number, "place": place} for number in range(5)]
        node.apply(*[Put(DocumentId("n", "song", str(n)), each) for n, each in enumerate(fields)])
        yield node


def reports(node: TestNode, tree: Item, profile: str, profiling: Profiling, trace_level: int = 1) -> dict[str, Any]:
    request = query_of(tree, rank_profile=profile, trace_level=trace_level, profiling=profiling)
    trace = search(node.node.reader.view(), request, ServedSchemas()).trace
    if trace is None:
        return {}
    [told] = orjson.loads(orjson.dumps(trace))
    threads = [each["threads"] for each in told["traces"] if each.get("tag") == "query_execution"]
    return {report["tag"]: report for [thread] in threads for report in thread["traces"]}


def names(task: dict[str, Any]) -> dict[str, Any]:
    """A task as its name and count, over those below it."""
    below: list[dict[str, Any]] = task.get("children", [])
    return {f"{task['name']} {task['count']}": [names(each) for each in sorted(below, key=lambda each: each["name"])]}


def test_features_are_told_by_phase(node: TestNode) -> None:
    found = reports(node, TrueItem(), "both", Profiling(first_phase=10, second_phase=10))
    assert list(found) == ["first_phase_profiling", "second_phase_profiling"]
    first = next(task for task in found["first_phase_profiling"]["roots"] if task["name"] != "top_k")
    below: list[dict[str, list[object]]] = [{"attribute(place) 5": []}, {"query(here) 5": []}]
    tensors = {"reduce(max) 5": [{"join(add) 5": below}]}
    assert names(first) == {"rank expression 5": [{"attribute(plays) 5": []}, tensors]}
    [second] = found["second_phase_profiling"]["roots"]
    assert names(second) == {"rank expression 2": [{"fieldMatch(title) 2": []}, {"firstPhase 2": []}]}
    assert second["self_time_ms"] <= second["total_time_ms"] == found["second_phase_profiling"]["total_time_ms"]


def test_a_flat_profile_has_the_longest(node: TestNode) -> None:
    [report] = reports(node, TrueItem(), "both", Profiling(first_phase=-2)).values()
    times = [task["self_time_ms"] for task in report["roots"]]
    assert len(times) == 2
    assert times == sorted(times, reverse=True)


def test_operators_are_told_by_their_places(node: TestNode) -> None:
    tree = AndItem((WordItem("title", "blue"), RangeItem("plays", 1, 3)))
    [report] = reports(node, tree, "both", Profiling(matching=5)).values()
    [root] = report["roots"]
    assert names(root) == {"/and 1": [{"/0/contains(title) 1": []}, {"/1/contains(plays) 1": []}]}


def test_hits_that_are_found_without_scoring_all(node: TestNode) -> None:
    [report] = reports(node, WordItem("title", "blue"), "words", Profiling(first_phase=1)).values()
    assert [task["name"] for task in report["roots"]] == ["top_k"]


def test_profiles_change_no_score(node: TestNode) -> None:
    def scores(**asked: object) -> list[float]:
        request = query_of(TrueItem(), rank_profile="both", inputs={"here": here}, **asked)  # type: ignore[arg-type]
        return [hit.relevance for hit in search(node.node.reader.view(), request, ServedSchemas()).hits]

    here: Tensor = parse_tensor("tensor<float>(x[2]):[1, 5]")
    assert scores() == scores(trace_level=1, explain_level=1, profiling=Profiling(3, 3, 3))


def test_nothing_is_told_without_a_trace_or_a_depth(node: TestNode) -> None:
    assert not reports(node, TrueItem(), "both", Profiling(3, 3, 3), trace_level=0)
    assert not reports(node, TrueItem(), "both", Profiling())
