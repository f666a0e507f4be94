"""The first phase scored by several threads: the same answer, byte for byte, as by one, and the same errors.

PAPERWASP_SPLIT_CASES says how many random profiles (default: a dozen), PAPERWASP_SEED which.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paperwasp.base.records import replace
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.core.budget import budget
from paperwasp.core.clock import end_work_at, work_ends_at
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.phases import scored_blocks, scoring
from paperwasp.search.phases.ranked_hits import NO_SCORES
from paperwasp.search.phases.scoring import scores_in_time
from paperwasp.search.query import Query, SearchResponse
from paperwasp.search.query_resources import Helpers
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of
from tests.search.random_profiles import INPUTS, document, features, profile, query, schema_with

CASES = int(os.environ.get("PAPERWASP_SPLIT_CASES", "12"))
QUERIES = 6
"""Of each profile."""
COUNT = 60
PRODUCT_BYTES = 3 << 20
"""Of which the product of one document takes more than a quarter."""
SCHEMA = """
schema d { document d {
    field n type int { indexing: attribute }
    field name type string { indexing: attribute }
    field tags type tensor<float>(tag{}) { indexing: attribute } }
    rank-profile number { first-phase { expression: attribute(n) % 7 }
        match-features: firstPhase attribute(n) }
    rank-profile one inherits number { num-threads-per-search: 1 }
    rank-profile few inherits number {
        num-threads-per-search: 3
        min-hits-per-thread: 30 }
    rank-profile parts inherits number { num-search-partitions: 20 }
    rank-profile tags { inputs { query(q) tensor<float>(tag{}) }
        first-phase { expression: sum(join(query(q), attribute(tags), f(a, b)(a * b + a))) }
        match-features { attribute(tags) } }
    rank-profile product { inputs { query(q) tensor<float>(tag{}) }
        first-phase { expression {
            reduce(map(attribute(tags) * tensor<float>(x[30000])(x), f(a)(a * a + 1)), max) + attribute(n)
        } } }
}
"""


class Pool:
    """Has what is offered done on another thread, before the thread of the query goes on."""

    size = 4

    def __init__(self) -> None:
        self.offered = 0

    def offer(self, work: Callable[[], None]) -> bool:
        self.offered += 1
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return True

    def is_wanted(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is worth another thread."""
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 1)
    monkeypatch.setattr(scored_blocks, "LEAST_BLOCK_LIDS", 1)
    monkeypatch.setattr(scoring, "LEAST_BLOCK_LIDS", 1)
    monkeypatch.setattr(scoring, "BLOCK_LIDS", 5)


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    pool = WorkerPool("test", threads=4)
    yield pool
    pool.shutdown()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with started(tmp_path_factory.mktemp("node"), dict(parse_schemas({"schemas/d.sd": SCHEMA}).schemas)) as node:
        puts = []
        document = next(iter(parse_schemas({"schemas/d.sd": SCHEMA}).schemas.values())).document
        for number in range(COUNT):
            tags = {f"t{(number * each) % 50}": each + 0.1 for each in range(1, 6)}
            fields = {"n": number, "name": f"name{number}", "tags": {"cells": tags}}
            puts.append(Put(DocumentId("n", "d", str(number)), read_fields(document, fields)))
        node.apply(*puts)
        yield node


def shown(answer: SearchResponse) -> Any:
    """All of an answer, so that equal texts are the same bytes."""
    hits = [(hit.document_id, hit.relevance.hex(), _texts(hit.match_features or {})) for hit in answer.hits]
    return answer.total_count, answer.coverage, sorted(answer.degraded), hits


def _texts(features: Any) -> dict[str, str]:
    return {name: value.hex() if isinstance(value, float) else str(value) for name, value in features.items()}


def answer_of(node: TestNode, request: Query, served: ServedSchemas) -> Any:
    try:
        return shown(search(node.node.reader.view(), request, served))
    except InvalidQuery as error:
        return error.message


def asked(profile_name: str, **more: Any) -> Query:
    return query_of(TrueItem(), ("d",), profile_name, **{"hits": 12, **more})


@pytest.mark.parametrize("round_", range(max(1, CASES // 6)))
def test_random_profiles_give_the_same_by_several_threads(round_: int, tmp_path: Path, workers: WorkerPool) -> None:
    draw = random.Random(f"split/{SEED}/{round_}")
    names, numbers = features(draw, 60)
    schema = schema_with([profile(draw, f"p{number}", names, numbers) for number in range(6)])
    puts = [
        Put(DocumentId("n", "s", str(number)), read_fields(schema.document, document(draw))) for number in range(COUNT)
    ]
    pool = Pool()
    with started(tmp_path, {"s": schema}) as node:
        node.apply(*puts)
        served = [ServedSchemas(), ServedSchemas(Helpers(pool)), ServedSchemas(Helpers(workers))]
        for number in range(6):
            for _ in range(QUERIES):
                where, hits = query(draw), draw.choice((3, 12, 100))
                request = query_of(
                    parse_yql(f"select * from s where {where}").tree,
                    ("s",),
                    f"p{number}",
                    hits=hits,
                    inputs={key: parse_tensor(text) for key, text in INPUTS.items()},
                    rank_properties={"dotProduct.v": "{a:1,b:2}"},
                    now_seconds=10**9,
                )
                found = [answer_of(node, request, each) for each in served]
                message = f"PAPERWASP_SEED={SEED}, round {round_}, p{number}, {where}, {hits} hits"
                assert found[1] == found[0], message
                assert found[2] == found[0], message
    assert pool.offered > QUERIES


@pytest.mark.parametrize("hits", [5, 59, 60, 100])
@pytest.mark.parametrize("profile_name", ["number", "parts", "tags"])
def test_the_same_hits_whoever_helps(node: TestNode, workers: WorkerPool, profile_name: str, hits: int) -> None:
    """Many hits have the same score: the lower lid is first, though its block may be scored last."""
    request = asked(profile_name, hits=hits, inputs={"q": parse_tensor("tensor<float>(tag{}):{t1:1.3,t7:0.7,t40:3}")})
    one, pool = answer_of(node, request, ServedSchemas()), Pool()
    assert one[0] == COUNT
    assert answer_of(node, request, ServedSchemas(Helpers(pool))) == one
    assert pool.offered == 3
    for _ in range(10):
        assert answer_of(node, request, ServedSchemas(Helpers(workers))) == one


@pytest.mark.parametrize(
    ("profile_name", "properties", "most", "offered"),
    [
        ("number", {}, 0, 3),
        ("number", {}, 2, 1),
        ("number", {}, 1, 0),
        ("one", {}, 0, 0),
        ("few", {}, 0, 1),
        ("few", {"vespa.matching.minhitsperthread": "0"}, 0, 2),
        ("one", {"vespa.matching.numthreadspersearch": "3"}, 0, 2),
        ("number", {"vespa.matching.numthreadspersearch": "20"}, 0, 3),
        ("number", {"vespa.matching.numthreadspersearch": "0"}, 0, 0),
        ("number", {"vespa.matching.minhitsperthread": "60"}, 0, 0),
        ("number", {"vespa.matching.minhitsperthread": "59"}, 0, 1),
        ("number", {"vespa.matching.minhitsperthread": "x"}, 0, 3),
    ],
)
def test_how_many_threads_a_query_has(
    node: TestNode, profile_name: str, properties: dict[str, str], most: int, offered: int
) -> None:
    """Vespa: matcher.cpp (`computeNumThreadsPerSearch`). `most`: `persearch` of services.xml."""
    pool = Pool()
    helpers = Helpers(pool)
    helpers.configure(most)
    answer_of(node, asked(profile_name, rank_properties=properties), ServedSchemas(helpers))
    assert pool.offered == offered


def test_partitions_are_scored_apart(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def scored(block: Any, program: Any) -> Any:
        sizes.append(len(block.lids))
        return scores_in_time(block, program)

    monkeypatch.setattr(scored_blocks, "scores_in_time", scored)
    answer_of(node, asked("parts"), ServedSchemas(Helpers(Pool())))
    assert sum(sizes) == COUNT
    assert max(sizes[1:]) == 3  # of 55 that the first block leaves


def test_little_is_scored_by_one_thread(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scored_blocks, "THREAD_NS", 10**12)
    pool = Pool()
    assert answer_of(node, asked("number"), ServedSchemas(Helpers(pool)))[0] == COUNT
    assert pool.offered == 0


def test_a_trace_is_of_one_thread(node: TestNode) -> None:
    pool = Pool()
    answer_of(node, asked("number", trace_level=1), ServedSchemas(Helpers(pool)))
    assert pool.offered == 0


def test_who_helps_has_the_time_and_a_share_of_the_memory() -> None:
    found: list[tuple[bool, int, int, int]] = []

    def work(helps: bool) -> None:
        found.append((helps, work_ends_at(), budget.most_bytes, budget.taken_bytes))

    class Same(Pool):
        def offer(self, work: Callable[[], None]) -> bool:
            def both() -> None:
                work()
                found.append((True, work_ends_at(), budget.most_bytes, budget.taken_bytes))

            return super().offer(both)

    ends_at = time.monotonic_ns() + 10**12
    end_work_at(ends_at)
    budget.most_bytes, budget.taken_bytes = 1000, 400
    try:
        Helpers(Same()).work(3, work)
        left = budget.most_bytes, budget.taken_bytes
    finally:
        end_work_at(0)
        budget.begin(0)
    assert found == [(True, ends_at, 200, 0), (True, 0, 0, 0)] * 2 + [(False, ends_at, 600, 400)]
    assert left == (1000, 400)


def test_what_needs_more_than_a_share_is_scored_with_all(node: TestNode) -> None:
    """The tensor of one document takes more than a quarter of the memory of the query, and less than all of it."""
    request = replace(asked("product"), memory_bytes=PRODUCT_BYTES)
    one, pool = answer_of(node, request, ServedSchemas()), Pool()
    assert one[0] == COUNT
    assert answer_of(node, request, ServedSchemas(Helpers(pool))) == one
    assert pool.offered == 3
    less = replace(request, memory_bytes=PRODUCT_BYTES // 4)
    assert isinstance(answer_of(node, less, ServedSchemas()), str)
    assert answer_of(node, less, ServedSchemas(Helpers(pool))) == answer_of(node, less, ServedSchemas())


def test_time_that_is_over_leaves_what_was_scored(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that helps scores two blocks, and then the time is over for both."""
    calls: list[int] = []

    def scored(bound: Any, lids: Any, floor: float, note: Any, *, is_first: bool) -> Any:
        calls.append(len(lids))
        return in_time(bound, lids, floor, note, is_first=is_first) if len(calls) <= 3 else NO_SCORES

    in_time = scored_blocks._scored_in_time
    monkeypatch.setattr(scored_blocks, "_scored_in_time", scored)
    total, coverage, degraded, hits = answer_of(node, asked("number", hits=100), ServedSchemas(Helpers(Pool())))
    covered = sum(calls[:3])
    assert 0 < covered < COUNT
    assert (total, coverage, degraded, len(hits)) == (covered, covered / COUNT, ["timeout"], covered)
    assert len(calls) == 4


def test_who_is_wanted_elsewhere_helps_no_more(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wanted(Pool):
        def is_wanted(self) -> bool:
            return True

    by: list[int] = []

    def scored(block: Any, program: Any) -> Any:
        by.append(threading.get_ident())
        return scores_in_time(block, program)

    one = answer_of(node, asked("number"), ServedSchemas())
    monkeypatch.setattr(scored_blocks, "scores_in_time", scored)
    assert answer_of(node, asked("number"), ServedSchemas(Helpers(Wanted()))) == one
    own = threading.get_ident()
    assert [who == own for who in by[:5]] == [True, False, False, False, True]
    assert all(who == own for who in by[4:])


def test_errors_are_those_of_one_thread(node: TestNode) -> None:
    """A query that no thread can answer fails as it does alone."""
    request = asked("tags", inputs={"q": parse_tensor("tensor<float>(x[2]):[1,2]")})
    alone = answer_of(node, request, ServedSchemas())
    assert isinstance(alone, str)
    assert answer_of(node, request, ServedSchemas(Helpers(Pool()))) == alone
