"""Compiled plans answer as the general steps do, byte for byte: random texts, filters and pages over random documents.

The peer asks the same content node, and is told of each text that there is no plan for it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.search.known_requests import _WINDOWS
from paperwasp.container.search.prepared_cache import CachedQuery
from paperwasp.core import _core
from paperwasp.http.messages import Request, Response
from paperwasp.search.bind import cache_of
from paperwasp.search.plan.snapshots import KEPT_CHARACTERS, KEY_BYTES
from tests.container.search.search_nodes import CLUSTER_OF, put, remove, update
from tests.container.search.text_peers import Peers, at_once, document, peers, query, statement, text, with_input

QUERIES = int(os.environ.get("PAPERWASP_COMPILED_QUERIES", "600"))


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    """A node with random documents, some of them removed, replaced or changed in place, and some not in the rows."""
    assert CLUSTER_OF["music"] == "media"
    with peers() as found:
        found.feed(document)
        yield found


@pytest.mark.parametrize("seed", range(4))
def test_random_words_of_statements_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        shared.compare(**statement(choice))
    assert shared.answered - before > QUERIES // 30, "plans have answered too few queries to say anything"


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        shared.compare(**query(choice))
    assert shared.answered - before > QUERIES // 40, "plans have answered too few texts to say anything"


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_that_the_statement_names_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(50 + seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        shared.compare(**with_input(choice, query(choice)))
    assert shared.answered - before > QUERIES // 40, "plans have answered too few texts to say anything"


@pytest.mark.parametrize("order", ["{0} and {1}", "{1} and {0}"])
def test_a_parameter_that_is_a_text_and_a_filter_has_the_same_answers_either_way(shared: Peers, order: str) -> None:
    """Vespa: yql.html, parameter substitution. Of such a request more than the text depends on the parameter."""
    text_, filter_ = "({defaultIndex: 'body', grammar: 'any'}userInput(@words))", "title contains @words"
    yql = f"select * from music where {order.format(text_, filter_)}"
    for words in ("cats", "blue", "of", "cats"):
        shared.compare(yql=yql, words=words, ranking="body")


@pytest.mark.parametrize("seed", range(2))
def test_expressions_and_attributes_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 6):
        asked = choice.choice((query, statement))(choice)
        if choice.random() < 0.8:
            asked["ranking"] = choice.choice(("expressed", "expressed", "greatest"))
        if choice.random() < 0.5:
            asked["yql"] = f"select year, name from {str(asked['yql']).split(' from ')[1]}"
        shared.compare(**asked)
    assert shared.answered - before > QUERIES // 40, "plans have answered too few queries to say anything"


ASKED: Final = [
    {"yql": "select * from music where userQuery()", "query": text(choice, 4), "type": "any", "ranking": "body"}
    | {"default-index": "body", "nocache": "true"}
    for choice in [random.Random(11)]
    for _ in range(60)
]


@pytest.mark.parametrize("waiting", [2, limits.QUERY_QUEUE_LENGTH])
def test_many_texts_at_once_run_on_threads_of_the_core(
    shared: Peers, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond the queue's length run where they are."""
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", waiting)
    wanted = [shared.compare(**each) for each in ASKED]
    before = shared.answered
    assert [answer.body for answer in at_once(shared, ASKED)] == wanted
    assert shared.answered > before
    assert shared.service._runs.uses_threads


def test_what_takes_long_never_runs_on_the_loop(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts as long: those beyond the queue's length are found the general way."""
    wanted = [shared.compare(**each) for each in ASKED]
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", 0)
    shared.service.resize(3)
    before = shared.answered
    with monkeypatch.context() as patch:
        patch.setattr(_core.PlanRun, "run", None)  # of a thread of Python
        assert [answer.body for answer in at_once(shared, ASKED[:20])] == wanted[:20]
    assert shared.answered > before
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", 1)
    assert [answer.body for answer in at_once(shared, ASKED)] == wanted


@pytest.mark.parametrize("ends", ["close", "resize"])
def test_what_waits_is_answered_when_the_threads_end(ends: str) -> None:
    with peers() as found:
        found.compiled.apply(*(put(number, body=f"one w{number}") for number in range(100)))
        found.fill_rows()
        asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body"} | {
            "default-index": "body"
        }
        found.compiled.answer(query="warm up", **asked)
        requests = [Request("GET", "/search/", urlencode(asked | {"query": f"one w{n}"})) for n in range(40)]

        async def ask_all() -> list[Response]:
            tasks = [asyncio.ensure_future(found.compiled.handler.handle(request)) for request in requests]
            await _nothing_else_first()
            assert found.service._runs.uses_threads
            found.service._runs.close() if ends == "close" else found.service.resize(5)
            return await asyncio.gather(*tasks)

        answers = found.compiled._loop.run_until_complete(asyncio.wait_for(ask_all(), 30))
        assert [total(answer.body) for answer in answers] == [100] * 40


async def _nothing_else_first() -> None:
    """Lets tasks that were made begin."""
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn


def test_words_that_are_fed_later_are_found() -> None:
    with peers() as found:
        found.compiled.apply(put(1, body="one two"), put(2, body="two"))
        found.fill_rows()
        asked = {
            "yql": "select * from music where userQuery()",
            "type": "any",
            "ranking": "body",
            "default-index": "body",
        }
        for _ in range(2):
            assert total(found.compare(query="three", **asked)) == 0
        found.compiled.apply(put(3, body="three two"))
        found.fill_rows()
        assert total(found.compare(query="three", **asked)) == 1
        assert total(found.compare(query="two", **asked)) == 3
        found.compiled.apply(remove(1), update(2, year=5))
        assert total(found.compare(query="two one", **asked)) == 2
        assert found.answered >= 3


def test_documents_that_are_not_in_the_row_store_are_shown_by_plans() -> None:
    """Where more are left than a query may write on the event loop, it goes the general way."""
    with peers() as found:
        found.compiled.apply(*(put(number, body=f"one w{number}", year=number) for number in range(40)))
        found.fill_rows()
        found.compiled.apply(*(update(number, year=7) for number in range(0, 40, 9)), remove(3))
        found.compiled.apply(*(put(number, body="one", year=number) for number in range(40, 200)))
        for show in ("*", "title, year", "documentid, body"):
            asked = {"yql": f"select {show} from music where userQuery()", "type": "any", "ranking": "body"}
            before = found.answered
            shown = {
                str(hits): found.compare(query="one w9", hits=hits, **{"default-index": "body"}, **asked)
                for hits in (9, 60)
            }
            assert found.answered > before + 1
            assert [len(orjson.loads(body)["root"]["children"]) for body in shown.values()] == [9, 60]
        before = found.answered
        found.compare(query="one w9", hits=190, **{"default-index": "body"}, **asked)
        assert found.answered == before + 1, "only what is asked before"


def test_a_text_whose_time_is_over_has_the_general_answer(shared: Peers) -> None:
    asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body", "default-index": "body"}
    for timeout in ("0s", "1ms", "20s"):
        shared.compiled.answer(query="the of a", timeout=timeout, nocache="true", **asked)
    root = orjson.loads(shared.compiled.answer(query="the of b", timeout="0s", **asked).body)["root"]
    assert root["errors"][0]["code"] == 12


def test_a_text_in_another_language_has_a_plan_of_its_own() -> None:
    """Its words have other stems. Vespa: the language of a query is detected in its text."""
    with peers() as found:
        found.compiled.apply(*(put(number, body="der Hund und die Katzen laufen nicht mehr") for number in range(9)))
        found.fill_rows()
        asked = {
            "yql": "select * from music where userQuery()",
            "type": "any",
            "ranking": "body",
            "default-index": "body",
            "nocache": "true",
        }
        found.compare(query="cats laufen", **asked)
        before = found.answered
        for text in ("der hund und die katze laufen", "der Hünd und die Katze läuft nicht"):
            found.compare(query=text, **asked)
        assert found.answered == before + 4, "and what is asked before each"
        found.compare(query="Kätze laufen", **asked)
        assert found.answered == before + 6


def test_bitmaps_of_filters_make_room_for_each_other(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    view = shared.compiled.nodes["media"].reader.view()
    bitmap_bytes = (view.limit + 63) // 64 * 8 + KEY_BYTES
    monkeypatch.setattr(limits, "VIEW_FILTER_BYTES", 5 * bitmap_bytes)
    asked = {"query": "the", "type": "any", "ranking": "body", "default-index": "body"}
    cache = cache_of(view, "music")
    before = shared.answered
    for year in range(20):
        shared.compare(yql=f"select * from music where userQuery() and year < {year}", **asked)
        assert len(cache.filters) <= 5
    kept = set(cache.filters)
    shared.compare(yql=f"select * from music where userQuery() and name contains '{'n' * KEPT_CHARACTERS}'", **asked)
    assert set(cache.filters) == kept
    assert shared.answered > before


def test_windows_and_languages_are_kept_within_bounds(shared: Peers) -> None:
    asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body", "default-index": "body"}
    before = shared.answered
    for number in range(2 * _WINDOWS):
        shared.compare(query=f"the w{number}", timeout=f"{20 + number}s", **asked)
    kept = shared.compiled.handler.prepared._entries.values()
    counts = [len(each.texts._windows) for each in kept if isinstance(each, CachedQuery) and each.texts is not None]
    assert 0 < max(counts) <= _WINDOWS
    for number in range(300):
        language = f"{chr(97 + number % 26)}{chr(97 + number // 26)}"
        shared.compiled.answer(query="the of", language=language, **asked)
    assert shared.answered > before


def test_a_closed_cluster_runs_texts_where_they_are_asked() -> None:
    with peers() as found:
        found.compiled.apply(put(1, body="one two"))
        found.fill_rows()
        found.service._runs.close()
        asked = {
            "yql": "select * from music where userQuery()",
            "type": "any",
            "ranking": "body",
            "default-index": "body",
        }
        answers = at_once(found, [asked | {"query": f"one x{number}"} for number in range(20)])
        assert [total(answer.body) for answer in answers] == [1] * 20


def total(body: bytes) -> int:
    count: int = orjson.loads(body)["root"]["fields"]["totalCount"]
    return count
