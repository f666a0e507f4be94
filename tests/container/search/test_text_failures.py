"""Queries by compiled plans when something fails, takes too long, is closed or would take much: answers are the general
ones, and each request has one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.search.known_requests import TextShape, cut_request
from paperwasp.http.messages import Request, Response
from paperwasp.search.plan.runs import ReadyRun
from paperwasp.search.text_query import TextAnswer
from paperwasp.server.roles.plan_runs import _Pool
from tests.container.search.search_nodes import put
from tests.container.search.text_peers import Peers, at_once, filled_peers, peers, text

ALL: Final = "select * from music where userQuery()"
FIXED: Final = {"yql": ALL, "type": "any", "ranking": "body", "default-index": "body", "nocache": "true"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    with filled_peers(200, seed=3) as found:
        yield found


def every_third(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which fails at every third time."""
    calls = 0

    def failing(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise ValueError("made to fail")
        return call(*given)

    return failing


@pytest.mark.parametrize(("owner", "name"), [(ReadyRun, "answer"), (TextShape, "response_of")])
def test_an_answer_that_fails_takes_no_other_with_it(
    shared: Peers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: type, name: str
) -> None:
    choice = random.Random(5)
    asked = [FIXED | {"query": text(choice, 4)} for _ in range(40)]
    wanted = [shared.compare(**each) for each in asked]
    before = shared.answered
    monkeypatch.setattr(owner, name, every_third(getattr(owner, name)))
    answers = at_once(shared, asked)
    assert [(answer.status, answer.body) for answer in answers] == [(200, body) for body in wanted]
    assert shared.answered > before
    assert any(record.exc_info for record in caplog.records)


def test_a_reply_that_fails_takes_no_other_with_it(shared: Peers) -> None:
    given: list[TextAnswer | None] = []

    def reply(answer: TextAnswer | None) -> None:
        given.append(answer)
        raise ValueError("made to fail")

    class Run:
        def answer(self) -> None:
            return None

    shared.service._runs._give(Run(), reply)  # type: ignore[arg-type]
    assert given == [None]


def test_what_never_comes_is_answered_when_its_time_is_over(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what comes after that is taken by nobody."""
    shared.compare(**FIXED, query="the of")
    lost: list[Callable[[object], None]] = []
    monkeypatch.setattr(shared.service._runs, "start", lambda filled, reply: lost.append(reply))
    answer = shared.compiled.answer(**FIXED, query="the a", timeout="20ms")
    assert len(lost) == 1
    assert (answer.status, orjson.loads(answer.body)["root"]["errors"][0]["code"]) == (504, 12)
    lost.pop()(None)


def test_no_plan_runs_while_the_node_is_closed(shared: Peers) -> None:
    shared.compare(**FIXED, query="the of")
    before = shared.answered
    with shared.service._inline_lock:
        shared.compare(**FIXED, query="of the a")
    assert shared.answered == before
    shared.compare(**FIXED, query="of the a")
    assert shared.answered > before


@pytest.mark.parametrize(("values", "is_planned"), [(3, True), (limits.INLINE_QUERY_ITEMS + 1, False)])
def test_what_takes_long_to_plan_is_planned_elsewhere(shared: Peers, values: int, is_planned: bool) -> None:
    listed = ", ".join(map(str, range(values)))
    before = shared.answered
    for query in ("the of", "a"):
        shared.compare(**FIXED | {"yql": f"{ALL} and year in ({listed})", "query": query})
    assert (shared.answered > before) is is_planned


def test_a_plan_is_for_the_schema_that_it_was_made_for(shared: Peers) -> None:
    shared.compare(**FIXED, query="the of")
    known = shared.service._plans._compiled_plans
    before = dict(known)
    for number, compiled in before.items():
        known[number] = compiled and compiled._replace(schema=None)  # type: ignore[arg-type]
    answered = shared.answered
    shared.compare(**FIXED, query="the a")
    assert shared.answered == answered
    known.update(before)
    shared.compare(**FIXED, query="the a")
    assert shared.answered > answered


def test_words_of_a_view_make_room_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "VIEW_WORDS", 8)
    with peers() as found:
        documents = (put(number, title=f"t{number}", body=f"w{number} w{number % 7}") for number in range(60))
        found.compiled.apply(*documents)
        found.fill_rows()
        for number in range(60):
            for index, ranking in (("body", "body"), ("default", "both"), ("title", "matching")):
                words = f"w{number} t{number} w{number % 7} {'x' * 40 * number}"
                found.compare(**FIXED | {"query": words, "default-index": index, "ranking": ranking})
        assert found.answered > 100


def test_a_request_with_long_header_fields_is_not_kept() -> None:
    for name in ("accept", "content-type"):
        short, long = ({name: "a" * length} for length in (1024, 1025))
        assert cut_request(Request("GET", "/search/", "query=a", short)) is not None
        assert cut_request(Request("GET", "/search/", "query=a", long)) is None


def test_a_lookup_counts_once(shared: Peers) -> None:
    asked = {name: value for name, value in FIXED.items() if name != "nocache"}
    cache = shared.compiled.handler.cache

    def lookups(query: str) -> int:
        before = cache.lookups
        answer: Response = shared.compiled.answer(**asked, query=query)
        assert answer.status == 200
        return cache.lookups - before

    assert [lookups(query) for query in ("the", "of", "a", "a the", "(a) the", "a the")] == [1] * 6


@pytest.mark.parametrize("inline_ns", [0, limits.INLINE_QUERY_NS])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_come_to_all_that_waits(
    shared: Peers, monkeypatch: pytest.MonkeyPatch, threads: int, inline_ns: int
) -> None:
    """Whether it takes long or not, and although the loop runs nothing of it."""
    asked = [FIXED | {"query": text(random.Random(number), 4)} for number in range(40)]
    wanted = [shared.compare(**each) for each in asked]
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", inline_ns)
    monkeypatch.setattr(_Pool, "_help", lambda pool: None)
    shared.service.resize(threads)
    for _ in range(5):
        before = shared.answered
        assert [answer.body for answer in at_once(shared, asked)] == wanted
        assert shared.answered == before + len(asked)
    shared.service.resize(limits.QUERY_THREADS)


def test_what_the_queues_have_no_room_for_is_refused(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of plans alone: one that takes long and finds no place goes to the queue of all queries, which is as bounded."""
    asked = FIXED | {"query": "the of a"}
    shared.compare(**asked)
    answered, pool = shared.answered, shared.service._pool
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", -1)
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", 0)
    monkeypatch.setattr(pool, "_queue_length", 0)
    refused = shared.compiled.answer(**asked)
    assert (refused.status, shared.answered) == (429, answered)
    assert "queries are waiting already" in orjson.loads(refused.body)["root"]["errors"][0]["message"]
    monkeypatch.undo()
    shared.compare(**asked)
    assert shared.answered > answered
