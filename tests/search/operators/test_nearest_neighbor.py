"""How nearestNeighbor finds documents: which way is chosen, by which settings, and among which documents it looks.

Document n of 100 has the vector (n, 0); the query's is (0, 0), so the distance is n. Lids rise with n.
Authority: nearest_neighbor_blueprint.cpp (`set_global_filter`, `perform_top_k`), NearestNeighborItem.java. Messages
about wrong items have the words of Vespa's ValidateNearestNeighborSearcher.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace as changed
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import IllegalQuery, InvalidInput
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.bind import space_of
from paperwasp.search.operators import Operator
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.nearest_neighbor import (
    EXACT,
    EXACT_FALLBACK,
    TOP_K,
    TOP_K_WITH_FILTER,
    NearestNeighborItem,
    NearestNeighborMatch,
    choose,
)
from paperwasp.search.operators.operator import NeighborTuning
from paperwasp.search.query import Query, SearchResponse
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, start
from tests.search.graphs import Asked, ComparingGraph, give_graph
from tests.search.operators.test_attribute_search import found, mixed, space_with, tensor, thing
from tests.search.queries import query_of

SCHEMA = """
schema s {
  document s {
    field n type int { indexing: attribute | summary }
    field title type string { indexing: index
      index: enable-bm25
      stemming: none }
    field v type tensor<float>(x[2]) { indexing: attribute | index }
  }
  rank-profile near { inputs { query(q) tensor<float>(x[2]) }
    first-phase { expression: closeness(field,v) }
    match-features: itemRawScore(one) rawScore(v) }
  rank-profile tuned inherits near {
    approximate-threshold: 0.5
    filter-first-threshold: 0.7
    filter-first-exploration: 0.25
    post-filter-threshold: 0.9
    exploration-slack: 0.125
    target-hits-max-adjustment-factor: 1.5
  }
}
"""
DOCUMENTS = 100
NEAREST = "({targetHits: 5}nearestNeighbor(v, q))"


def asking(where: str, profile: str, properties: dict[str, str]) -> Query:
    return query_of(
        parse_yql(f"select * from s where {where}").tree,
        ("s",),
        profile,
        hits=DOCUMENTS,
        inputs={"q": parse_tensor("tensor<float>(x[2]):[0,0]")},
        rank_properties=properties,
        trace_level=1,
        explain_level=1,
    )


@dataclass
class Corpus:
    node: TestNode
    env: Environment = SYSTEM

    def ask(
        self, where: str, profile: str = "near", graph: bool = True, **properties: str
    ) -> tuple[SearchResponse, ComparingGraph]:
        view = self.node.node.reader.view()
        searched = give_graph(view, "s", "v")
        if not graph:
            view.columns["s", "v"].graph = None  # type: ignore[attr-defined]
        names = {name.replace("__", "."): value for name, value in properties.items()}
        return search(view, asking(where, profile, names), ServedSchemas(), self.env), searched

    def numbers(self, where: str, profile: str = "near", graph: bool = True, **properties: str) -> list[int]:
        answer, _ = self.ask(where, profile, graph, **properties)
        assert answer.total_count == len(answer.hits)
        return sorted(int(str(hit.document_id).rpartition(":")[2]) for hit in answer.hits)

    def asked(self, where: str, profile: str = "near", **properties: str) -> Asked:
        """What a graph is asked last: by the query itself, after the plan was explained."""
        return self.ask(where, profile, True, **properties)[1].asked[-1]

    def plan(self, where: str, profile: str = "near", **properties: str) -> dict[str, Any]:
        """What the trace says of the first nearestNeighbor."""
        answer, _ = self.ask(where, profile, True, **properties)
        assert answer.trace is not None
        traces: Any = answer.trace
        [of_type] = traces
        [plan] = [each["optimized"] for each in of_type["traces"] if each.get("tag") == "query_execution_plan"]
        waiting: list[dict[str, Any]] = [plan]
        while waiting[0]["operator"] != "nearestNeighbor":
            waiting += waiting.pop(0).get("children", [])
        return waiting[0]


def filled(directory: Path) -> TestNode:
    node = start(directory, None)
    schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
    node.node.configure(1, schemas, {}, 0)
    for number in range(DOCUMENTS):
        title = f"{'odd' if number % 2 else 'even'} all {'rare' if number >= 95 else ''}"
        values = {"n": number, "title": title, "v": [number, 0]}
        fields = read_fields(schemas["s"].document, values)
        node.apply(Put(DocumentId.parse(f"id:n:s::{number}"), fields))
    return node


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    with closing(filled(tmp_path_factory.mktemp("node"))) as node:
        yield Corpus(node)


# ------------------------------------------------------------------------------------------------ which way


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        (100, (TOP_K, 5, None, False)),
        (99, (TOP_K_WITH_FILTER, 5, 0.99, False)),
        (30, (TOP_K_WITH_FILTER, 5, 0.3, False)),
        (29, (TOP_K_WITH_FILTER, 5, 0.29, True)),
        (2, (TOP_K_WITH_FILTER, 5, 0.02, True)),
        (1, (EXACT_FALLBACK, 5, 0.01, False)),
        (0, (EXACT_FALLBACK, 5, 0.0, False)),
    ],
)
def test_ways_by_default(allowed: int, expected: tuple[object, ...]) -> None:
    found = choose(5, NeighborTuning(), allowed, DOCUMENTS)
    assert (found.algorithm, found.target_hits, found.hit_ratio, found.filter_first) == expected


@pytest.mark.parametrize(
    ("ratio", "factor", "target"),
    [(50, 20.0, 200), (51, 20.0, 196), (25, 3.0, 300), (99, 20.0, 101), (20, 20.0, 100), (4, 20.0, 2000)],
)
def test_more_is_looked_for_where_filters_come_after(ratio: int, factor: float, target: int) -> None:
    tuning = NeighborTuning(0.0, post_filter_threshold=0.2, target_hits_max_adjustment_factor=factor)
    found = choose(100, tuning, ratio, 100)
    if ratio <= 20:
        assert (found.algorithm, found.target_hits) == (TOP_K_WITH_FILTER, 100)
    else:
        assert (found.algorithm, found.target_hits) == (TOP_K, target)


@pytest.mark.parametrize("below", [1, 2, 29, 30, 99, 100])
def test_every_way_finds_the_nearest(corpus: Corpus, below: int) -> None:
    expected = list(range(min(5, below)))
    assert corpus.numbers(f"n < {below} and {NEAREST}") == expected
    assert corpus.numbers(f"n < {below} and {NEAREST}", graph=False) == expected
    late = corpus.numbers(f"n < {below} and {NEAREST}", vespa__matching__global_filter__upper_limit="0")
    assert late[: len(expected)] == expected  # and perhaps more


def test_what_the_graph_is_asked(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few hits are wanted, `GRAPH_EXPLORED_LEAST` are kept in sight: Vespa explores for these alone."""
    assert corpus.asked(NEAREST) == Asked(5, 100, None, float("inf"), False, 0.3, 0.0, 0)
    assert corpus.asked(f"n < 50 and {NEAREST}") == Asked(5, 100, 50, float("inf"), False, 0.3, 0.0, 0)
    assert corpus.asked(f"n < 10 and {NEAREST}") == Asked(5, 100, 10, float("inf"), True, 0.3, 0.0, 0)
    monkeypatch.setattr(limits, "GRAPH_EXPLORED_LEAST", 6)
    assert corpus.asked(NEAREST).explore == 6
    more = "({targetHits: 5, hnsw.exploreAdditionalHits: 7, distanceThreshold: 2.0}nearestNeighbor(v, q))"
    assert corpus.asked(more) == Asked(5, 12, None, 4.0, False, 0.3, 0.0, 0)
    assert corpus.numbers(more) == [0, 1, 2]
    total = "({totalTargetHits: 5, minTargetHits: 1, hnsw.totalExploreAdditionalHits: 3}nearestNeighbor(v, q))"
    assert corpus.asked(total).count == 5
    assert corpus.asked(total).explore == 8
    both = "({targetHits: 4, totalTargetHits: 5, minTargetHits: 1}nearestNeighbor(v, q))"
    assert corpus.asked(both).count == 4


def test_the_graph_is_left_alone(corpus: Corpus) -> None:
    exact = "({targetHits: 5, approximate: false}nearestNeighbor(v, q))"
    assert corpus.ask(exact)[1].asked == []
    assert corpus.plan(exact)["algorithm"] == EXACT
    assert corpus.plan(f"n < 1 and {NEAREST}")["algorithm"] == EXACT_FALLBACK


def test_settings_of_rank_profile_query_and_annotation(corpus: Corpus) -> None:
    """An annotation goes before a query's property, which goes before the rank profile."""
    for below, algorithm in ((49, EXACT_FALLBACK), (50, TOP_K_WITH_FILTER), (90, TOP_K_WITH_FILTER), (91, TOP_K)):
        assert corpus.plan(f"n < {below} and {NEAREST}", "tuned")["algorithm"] == algorithm
    assert corpus.asked(f"n < 69 and {NEAREST}", "tuned") == Asked(5, 100, 69, float("inf"), True, 0.25, 0.125, 0)
    assert corpus.asked(f"n < 71 and {NEAREST}", "tuned") == Asked(5, 100, 71, float("inf"), False, 0.25, 0.125, 0)
    lower = {"vespa__matching__global_filter__lower_limit": "0.8"}
    assert corpus.plan(f"n < 79 and {NEAREST}", "tuned", **lower)["algorithm"] == EXACT_FALLBACK
    own = "({targetHits: 5, hnsw.approximateThreshold: 0.1, hnsw.filterFirstThreshold: 0.0}nearestNeighbor(v, q))"
    assert corpus.plan(f"n < 79 and {own}", "tuned", **lower)["algorithm"] == TOP_K_WITH_FILTER
    assert not corpus.asked(f"n < 11 and {own}", "tuned", **lower).filter_first
    others = {
        "vespa__matching__nns__filter_first_upper_limit": "0.1",
        "vespa__matching__nns__filter_first_exploration": "0.5",
        "vespa__matching__nns__exploration_slack": "0.75",
    }
    assert corpus.asked(f"n < 69 and {NEAREST}", "tuned", **others) == Asked(
        5, 100, 69, float("inf"), False, 0.5, 0.75, 0
    )


@pytest.mark.parametrize(
    "tuning",
    [
        "hnsw.postFilterThreshold: 0.0, hnsw.targetHitsMaxAdjustmentFactor: -3.0",
        "hnsw.approximateThreshold: -1.0, hnsw.filterFirstThreshold: 9.0, hnsw.filterFirstExploration: -1.0",
        "hnsw.explorationSlack: -1.0",
        "hnsw.explorationSlack: 1e300, hnsw.exploreAdditionalHits: 2147483647",
    ],
)
@pytest.mark.parametrize("where", ["true", "n < 40"])
def test_annotations_of_any_size(corpus: Corpus, tuning: str, where: str) -> None:
    """Vespa checks none of them."""
    found = corpus.numbers(f"{where} and ({{targetHits: 5, {tuning}}}nearestNeighbor(v, q))")
    assert found == list(range(len(found)))
    assert found


def test_adjusted_target_hits(corpus: Corpus) -> None:
    late = {"vespa__matching__global_filter__upper_limit": "0.4"}
    assert corpus.asked(f"n < 50 and {NEAREST}", **late).count == 10
    assert corpus.asked(f"n < 50 and {NEAREST}", **late).accepted is None
    factor = late | {"vespa__matching__nns__target_hits_max_adjustment_factor": "1.5"}
    assert corpus.asked(f"n < 50 and {NEAREST}", **factor).count == 7
    assert corpus.numbers(f"n >= 6 and {NEAREST}", "near", True, **factor) == []  # 5 * 1/0.94 hits are looked for
    assert corpus.numbers(f"n >= 6 and {NEAREST}") == [6, 7, 8, 9, 10]


def test_the_time_budget_of_a_search(corpus: Corpus) -> None:
    """Each search ends so many milliseconds after it began, by the clock of the node."""
    moments = count(5_000_000_000, 1_000_000_000)
    timed = replace(corpus, env=Environment(monotonic_ns=lambda: next(moments)))
    two = f"{NEAREST} and ({{targetHits: 3}}nearestNeighbor(v, q))"
    first, second = timed.ask(two, vespa__matching__anntimebudget="25")[1].asked[-2:]
    assert first.end_ns % 1_000_000_000 == second.end_ns % 1_000_000_000 == 25_000_000
    assert 5_025_000_000 <= first.end_ns < second.end_ns
    assert {asked.end_ns for asked in corpus.ask(two)[1].asked} == {0}


@pytest.mark.parametrize(("began_ns", "hits"), [(0, 1), (1 << 61, 5)])
def test_a_search_whose_budget_is_spent_finds_what_it_has_met(tmp_path: Path, began_ns: int, hits: int) -> None:
    """In a graph of the kernel, which has the machine's clock: by that the budget is spent when the walk has met the
    one node it begins at, or will be in many years."""
    with closing(filled(tmp_path)) as node:
        answer = search(
            node.node.reader.view(),
            asking(NEAREST, "near", {"vespa.matching.anntimebudget": "25"}),
            ServedSchemas(),
            Environment(monotonic_ns=lambda: began_ns),
        )
        assert answer.total_count == hits
        assert answer.coverage == search(node.node.reader.view(), asking(NEAREST, "near", {}), ServedSchemas()).coverage


@pytest.mark.parametrize("budget", ["-1", "x", "1.5", "٣", "99999999999"])
def test_a_time_budget_that_is_no_number_of_milliseconds(corpus: Corpus, budget: str) -> None:
    with pytest.raises(InvalidInput, match="a number of milliseconds"):
        corpus.ask(NEAREST, vespa__matching__anntimebudget=budget)


# ------------------------------------------------------------------------------------------------ among which


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (f"title contains 'odd' and {NEAREST}", [1, 3, 5, 7, 9]),
        (f"title contains 'odd' or {NEAREST}", sorted({*range(1, 100, 2), *range(5)})),
        (f"title contains 'rare' or {NEAREST}", [*range(5), *range(95, 100)]),
        (f"rank(title contains 'odd', {NEAREST})", [*range(1, 100, 2)]),
        (f"rank({NEAREST}, title contains 'odd')", [0, 1, 2, 3, 4]),
        (f"{NEAREST} and !(title contains 'odd')", [0, 2, 4, 6, 8]),
        (f"n < 50 and !({NEAREST})", [*range(5, 50)]),
        (f"n >= 10 and (title contains 'rare' or {NEAREST})", [*range(10, 15), *range(95, 100)]),
        # Among all documents that have one of the words, though the weakAnd then finds less of them.
        (f"({{targetHits: 1}}weakAnd(title contains 'odd', title contains 'rare')) and {NEAREST}", [1, 3, 5, 7, 9]),
        # Each finds its own among all: the graph knows nothing of the other.
        ("({targetHits: 5}nearestNeighbor(v, q)) and ({targetHits: 3}nearestNeighbor(v, q))", [0, 1, 2]),
        (f"n > 3 and {NEAREST} and ({{targetHits: 3}}nearestNeighbor(v, q))", [4, 5, 6]),
    ],
)
def test_where_the_rest_of_the_query_leaves_documents(corpus: Corpus, where: str, expected: list[int]) -> None:
    assert corpus.numbers(where) == expected


def raw_scores(corpus: Corpus, where: str, graph: bool) -> dict[int, object]:
    answer, _ = corpus.ask(where, graph=graph)
    found: dict[int, object] = {}
    for hit in answer.hits:
        assert hit.match_features is not None
        if score := hit.match_features["rawScore(v)"]:
            found[int(str(hit.document_id).rpartition(":")[2])] = score
    return found


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("where", ["rank(title contains 'odd', {0})", "n < 99 and rank(title contains 'odd', {0})"])
def test_what_only_ranks_looks_among_the_matches(corpus: Corpus, graph: bool, where: str) -> None:
    """Vespa: the filter is what the query as a whole matches (`RankBlueprint::createFilterSearch`: its first part)."""
    assert raw_scores(corpus, where.format(NEAREST), graph) == {n: 1 / (1 + n) for n in (1, 3, 5, 7, 9)}


def test_exact_search_finds_what_is_nearer_than_what_came_before(corpus: Corpus) -> None:
    """The query at 100, the far end: each of the first five, and each that comes after them, is nearer."""
    view = corpus.node.node.reader.view()
    view.columns["s", "v"].graph = None  # type: ignore[attr-defined]
    tree = parse_yql(f"select * from s where {NEAREST}").tree
    inputs = {"q": parse_tensor("tensor<float>(x[2]):[100,0]")}
    request = query_of(tree, ("s",), "near", hits=3, inputs=inputs)
    answer = search(view, request, ServedSchemas())
    assert answer.total_count == DOCUMENTS
    assert [hit.document_id for hit in answer.hits] == [f"id:n:s::{n}" for n in (99, 98, 97)]


def test_what_a_trace_tells(corpus: Corpus) -> None:
    told = corpus.plan(f"n < 10 and {NEAREST}")
    assert {name: told[name] for name in told if name not in ("estimate", "order", "time_us")} == {
        "operator": "nearestNeighbor",
        "fields": [{"field": "v", "by": "nearestneighbor"}],
        "attribute_tensor": "tensor<float>(x[2])",
        "query_tensor": "tensor<float>(x[2])",
        "target_hits": 5,
        "adjusted_target_hits": 5,
        "explore_additional_hits": 0,
        "wanted_approximate": True,
        "has_index": True,
        "algorithm": "index top k using filter",
        "top_k_hits": 5,
        "filter_first_heuristic_used": True,
        "filter_first_upper_limit": 0.3,
        "filter_first_exploration": 0.3,
        "exploration_slack": 0.0,
        "target_hits_max_adjustment_factor": 20.0,
        "global_filter": {
            "wanted": True,
            "set": True,
            "calculated": True,
            "lower_limit": 0.02,
            "upper_limit": 1.0,
            "hits": 10,
            "hit_ratio": 0.1,
        },
        "hits": 5,
    }
    assert corpus.plan(NEAREST)["global_filter"]["calculated"] is False
    assert corpus.plan(f"rank(title contains 'odd', {NEAREST})")["global_filter"]["hit_ratio"] == 0.5


def test_an_older_view_than_the_graph(corpus: Corpus) -> None:
    """A graph that still finds documents that are not in the view is asked again for the others."""
    view = corpus.node.node.reader.view()
    graph = give_graph(view, "s", "v")
    inputs = {"q": parse_tensor("tensor<float>(x[2]):[0,0]")}
    tree = parse_yql(f"select * from s where {NEAREST}").tree
    space = space_of(view, "s")
    accept = space.accept.copy()
    accept[0] &= ~np.uint64(0b110)

    operator: Operator = plan(tree, changed(space, accept=accept, inputs=inputs, documents=98))
    [match] = operator.matches  # type: ignore[attr-defined]
    assert isinstance(match, NearestNeighborMatch)
    found = operator.bitmap()
    assert [lid for lid in range(64) if int(found[0]) >> lid & 1] == [0, 3, 4, 5, 6]
    assert [each.accepted for each in graph.asked] == [None, 98]


def test_a_distance_threshold_is_a_number(corpus: Corpus) -> None:
    space = changed(space_of(corpus.node.node.reader.view(), "s"), inputs={"q": parse_tensor("tensor(x[2]):[0,0]")})
    with pytest.raises(InvalidInput, match=r"distanceThreshold=NaN,.*} has invalid distanceThreshold NaN"):
        plan(NearestNeighborItem("v", "q", 1, distance_threshold=float("nan")), space)


@pytest.mark.parametrize(
    ("field", "given_input", "message"),
    [
        ("euclidean", None, "requires a tensor rank feature named 'query(q)' but this is not present"),
        (
            "euclidean",
            3.0,
            "requires a tensor rank feature named 'query(q)' but this is not present: it is the number '3.0', since no "
            "rank profile declares its type",
        ),
        (
            "euclidean",
            tensor("tensor(x[3])", 1, 2, 3),
            "field type tensor<float>(x[2]) does not match query type tensor(x[3])",
        ),
        (
            "euclidean",
            tensor("tensor(y[2])", 1, 2),
            "field type tensor<float>(x[2]) does not match query type tensor(y[2])",
        ),
        (
            "many",
            mixed(a=(1, 2)),
            "field type tensor<float>(c{},x[2]) does not match query type tensor<float>(c{},x[2])",
        ),
        (
            "sparse",
            tensor("tensor(x[2])", 1, 2),
            "field type tensor<float>(c{}) is not supported by nearest neighbor searcher",
        ),
        ("int", tensor("tensor(x[2])", 1, 2), "field is not a tensor"),
        ("title", tensor("tensor(x[2])", 1, 2), "field is not an attribute"),
        ("shown", tensor("tensor<float>(x[2])", 1, 2), "field is not an attribute"),
        ("euclidean", tensor("tensor(x[2])", 1, math.nan), "'query(q)' has a cell that is not a finite number"),
        ("angular", tensor("tensor(x[2])", -math.inf, 1), "'query(q)' has a cell that is not a finite number"),
    ],
)
def test_vectors_that_cannot_be_compared(field: str, given_input: object, message: str) -> None:
    inputs = {} if given_input is None else {"q": given_input}
    item = NearestNeighborItem(
        field, "q", 1, explore_additional_hits=7, distance_threshold=2.5, tuning=(("hnsw.explorationSlack", 0.5),)
    )
    with space_with(thing(0), inputs=inputs) as space, pytest.raises(IllegalQuery) as raised:
        found(item, space)
    assert raised.value.message == (
        f"NEAREST_NEIGHBOR {{field={field},queryTensorName=q,hnsw.exploreAdditionalHits=7,distanceThreshold=2.5,"
        f"approximate=true,targetHits=1,hnsw.explorationSlack=0.5}} {message}"
    )
