"""Which steps of a query kernels do, as its trace names them, and where short queries are answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.client.query import steps_of
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema import parse_schemas
from paperwasp.search import search as search_module
from paperwasp.search.operators.boolean import OrItem, TrueItem
from paperwasp.search.operators.equiv import WordAlternativesItem
from paperwasp.search.operators.item import CHARACTERS_OF_LOOKUP, Item
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from paperwasp.search.operators.patterns import FuzzyItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.phases.scoring import FIRST_BLOCK_LIDS, blocks_of, first_block
from paperwasp.search.query import Query, SearchResponse, SortKey, Streaming
from paperwasp.search.ready_profile import RankCost
from paperwasp.search.search import is_plain
from paperwasp.search.served import ServedSchemas
from paperwasp.server.roles.content_service import ContentService
from tests.content.nodes import TestNode, started
from tests.content.row_checks import fill_rows
from tests.search.queries import query_of
from tests.search.test_content_search import EXAMPLES, PROFILES, ask, node_with, paper

WORDS = OrItem((WordItem("body", "graph"), WordItem("body", "search")))


def steps(node: TestNode, tree: Item, profile: str, **parameters: object) -> Mapping[str, str]:
    (found,) = steps_of(ask(node, tree, profile, trace_level=1, **parameters).trace)
    return found


def test_steps_are_named() -> None:
    with node_with(*EXAMPLES) as node:
        pruned = steps(node, WORDS, "body")
        assert (pruned["match"], pruned["rank"]) == ("kernel best", "kernel best")
        assert steps(node, WORDS, "weighted")["rank"] == "kernel best, then the rank program"
        assert pruned["hits"] == "general (documents)"
        ranked = steps(node, WORDS, "year")
        assert (ranked["match"], ranked["rank"]) == ("general (bitmaps)", "general (rank program in blocks)")
        sorted_ = steps(node, TrueItem(), "body", order_by=(SortKey("year"),))
        assert (sorted_["match"], sorted_["order"]) == ("general (bitmaps)", "kernel sorting")


def test_hits_from_rows_are_named() -> None:
    shown: dict[str, object] = {"source": "papers", "summary_fields": ("body", "year")}
    with node_with(*EXAMPLES) as node:
        fill_rows(node.node)
        assert steps(node, WORDS, "body", **shown)["hits"] == "kernel page"
        node.apply(paper("later", body="a graph", year=1))
        left = steps(node, WORDS, "body", **shown)["hits"]
        assert left.startswith("kernel page, 1 of ") and left.endswith(" general (documents)")


def test_hits_of_each_type_are_named(tmp_path: Path) -> None:
    schemas = {name: f"schema {name} {{ document {name} {{ }} }}" for name in ("one", "two", "mail")}
    parsed = parse_schemas({f"schemas/{name}.sd": text for name, text in schemas.items()}).schemas
    with started(tmp_path, parsed) as node:
        node.node.configure(2, parsed, {"mail": "streaming"})
        query = query_of(TrueItem(), streaming=Streaming(group="g"), trace_level=1)
        found = steps_of(search_module.search(node.node.reader.view(), query, ServedSchemas()).trace)
    assert [each["hits"] for each in found] == ["general (documents)"] * 3


def test_writing_hits_of_several_types_is_measured_for_each(tmp_path: Path) -> None:
    schemas = {name: f"schema {name} {{ document {name} {{ }} }}" for name in ("one", "two")}
    parsed = parse_schemas({f"schemas/{name}.sd": text for name, text in schemas.items()}).schemas
    served = ServedSchemas()
    with started(tmp_path, parsed) as node:
        node.apply(*(Put(DocumentId.parse(f"id:n:{name}::{number}"), {}) for name in schemas for number in range(8)))
        search_module.search(node.node.reader.view(), query_of(TrueItem()), served)
    costs = [served.ready_profile(parsed[name], "default").cost.write_ns for name in schemas]
    assert costs[0] == costs[1] != RankCost().write_ns


def test_what_queries_of_many_words_cost_says_nothing_of_others() -> None:
    """One of three thousand words, be they one term, must not make each plain query of its profile a long one."""
    words = [f"w{number}" for number in range(limits.INLINE_QUERY_ITEMS + 1)]
    many = OrItem(tuple(WordItem("body", word) for word in words))
    forms = WordAlternativesItem("body", tuple((word, 1.0) for word in words))
    with node_with(*EXAMPLES) as node:
        view = node.node.reader.view()
        served = ServedSchemas()
        plan = served.ready_profile(view.schemas["paper"], "sum")
        for tree, expected in ((many, plan.large_cost), (forms, plan.large_cost), (WORDS, plan.cost)):
            bound = search_module.BoundSearch(view, query_of(tree, rank_profile="sum"), served)
            costs = {each.setting.space.schema.name: each.cost for each in bound._indexed}
            assert costs["paper"] is expected


def test_tensors_for_the_global_phase_count_for_each_hit_that_it_ranks() -> None:
    """Short work alone runs on the thread that plain queries have where all others are at work."""
    query = query_of(WORDS, rank_profile="sum")
    outer = "reduce(tensor(x[1000000])(x + attribute(year)), sum)"
    with node_with(*EXAMPLES) as node:
        view, served = node.node.reader.view(), ServedSchemas()

        def expected_ns(hits: int) -> float:
            rank = replace(query.rank, expressions=RankExpressions(global_phase=outer), global_hits=hits)
            return search_module.BoundSearch(view, replace(query, rank=rank), served).expected_ns()

        one_hit = expected_ns(1) - expected_ns(0)
        assert one_hit > 1_000_000 and expected_ns(2) == expected_ns(0) + 2 * one_hit


@pytest.mark.parametrize(
    ("query", "inline"),
    [
        (query_of(WORDS, rank_profile="sum"), True),
        (query_of(FuzzyItem("cat", "cs"), rank_profile="sum"), False),
        (query_of(WORDS, rank_profile="sum", hits=limits.INLINE_QUERY_HITS + 1), False),
        (query_of(WORDS, rank_profile="sum", trace_level=1), False),
        (query_of(OrItem((WORDS,) * limits.INLINE_QUERY_ITEMS), rank_profile="sum"), False),
    ],
)
def test_short_queries_are_answered_on_the_asking_thread(
    query: Query, inline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    answer = search_module.BoundSearch.answer

    def noted(bound: search_module.BoundSearch) -> SearchResponse:
        threads.append(threading.current_thread().name)
        return answer(bound)

    monkeypatch.setattr(search_module.BoundSearch, "answer", noted)
    replied = threading.Event()
    answers: list[object] = []

    def reply(answer: object) -> None:
        answers.append(answer)
        replied.set()

    pool = WorkerPool("worker")
    try:
        with node_with(*EXAMPLES) as node:
            service = ContentService(node.node, pool, PROFILES)
            service.handle(query, reply)
            assert replied.wait(20)
            service.close()
            replied.clear()
            service.handle(query, reply)
            assert replied.wait(20)
    finally:
        pool.shutdown()
    assert all(isinstance(answer, SearchResponse) for answer in answers), answers
    assert threads[0].startswith("worker") != inline
    assert threads[1].startswith("worker"), "a service that is closed answers nothing on the asking thread"


@pytest.mark.parametrize(
    ("query", "short_ns", "lane"),
    [
        (query_of(WORDS, rank_profile="sum"), limits.SHORT_QUERY_NS, "short"),
        (query_of(WORDS, rank_profile="sum"), 0, "all"),
        (query_of(FuzzyItem("cat", "cs"), rank_profile="sum"), limits.SHORT_QUERY_NS, "all"),
    ],
)
def test_what_is_expected_to_take_little_time_does_not_wait_for_the_rest(
    query: Query, short_ns: int, lane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries that are too long for the asking thread; those whose planning may take long are not known to be short."""
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", 0)
    monkeypatch.setattr(limits, "SHORT_QUERY_NS", short_ns)
    taken: list[str] = []
    pool = WorkerPool("worker")
    answer = pool.answer

    def noted(lane: str) -> Callable[..., None]:
        def run(*given: Any) -> None:
            taken.append(lane)
            answer(*given)

        return run

    monkeypatch.setattr(pool, "answer", noted("all"))
    monkeypatch.setattr(pool, "answer_short", noted("short"))
    replied = threading.Event()
    try:
        with node_with(*EXAMPLES) as node:
            ContentService(node.node, pool, PROFILES).handle(query, lambda _: replied.set())
            assert replied.wait(20)
    finally:
        pool.shutdown()
    assert taken == [lane]


def test_costs_are_learned() -> None:
    cost = RankCost(100.0)
    cost.ranked(10, 3_000)
    assert cost.first_ns == 200.0
    cost.ranked(10, 1_000)
    assert cost.first_ns == pytest.approx(190.0)
    cost.ranked(2, 1_000_000)
    assert cost.first_ns == pytest.approx(190.0), "too few hits to measure"


def test_large_trees_are_not_planned_on_the_asking_thread() -> None:
    tree = OrItem(tuple(WordItem("body", str(number)) for number in range(limits.INLINE_QUERY_ITEMS // 2)))
    assert is_plain(tree, 1) and not is_plain(tree, 2)


def test_words_in_an_item_count_and_so_do_long_ones() -> None:
    words = ("a",) * limits.INLINE_QUERY_ITEMS
    alternatives = tuple((word, 1.0) for word in words)
    assert is_plain(PhraseItem("body", words), 1) and not is_plain(PhraseItem("body", (*words, "more")), 1)
    assert is_plain(WordAlternativesItem("body", alternatives), 1)
    assert not is_plain(WordAlternativesItem("body", (*alternatives, ("more", 1.0))), 1)
    characters = limits.INLINE_QUERY_ITEMS * CHARACTERS_OF_LOOKUP
    for item in (WordItem("body", "a" * characters), PhraseItem("body", ("a" * characters,))):
        assert not is_plain(item, 1)
    assert is_plain(WordItem("body", "a" * (characters - 1)), 1)


def test_searches_of_vectors_are_planned_where_they_are_asked() -> None:
    assert is_plain(NearestNeighborItem("v", "q", 10), 1)


def test_the_first_block_is_as_large_as_is_known_to_take_little_time() -> None:
    cost = RankCost()
    assert cost.known_ns is None
    cost.ranked(1000, 100_000)  # 100 ns each, of which a tenth counts
    assert cost.known_ns == pytest.approx(1810.0)
    assert first_block(200.0) == 15_000
    assert first_block(1810.0) == 1657
    assert first_block(50_000.0) == FIRST_BLOCK_LIDS
    assert list(blocks_of(700, 1, 500)) == [slice(0, 500), slice(500, 700)]
