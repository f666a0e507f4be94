"""What a search may have many of has a bound, and large requests are read beside the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson
import pytest

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.container.search import handler as search
from paperwasp.container.search.handler import SearchHandler
from paperwasp.container.search.parameters import PARAMETERS
from paperwasp.container.search.prepare import prepare_and_bind, prepare_query
from paperwasp.container.search.rendering import respond
from paperwasp.container.search.request import plain_format
from paperwasp.container.search.sorting import read_sorting
from paperwasp.core.clock import check_time
from paperwasp.document.tensor import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import IllegalQuery
from paperwasp.http.messages import Request
from paperwasp.search.query import SearchResponse
from tests.container.search.search_scripts import ANSWERS, FakeClusters, config, hit

YQL = "select * from sources * where true"


STILL = Environment(monotonic_ns=lambda: 0)
"""Time stands still: no request times out, however busy the machine is."""


def root_of(body: dict[str, Any], environment: Environment | None = None) -> Any:
    request = Request("POST", "/search/", "", body=json.dumps(body).encode())
    handler = SearchHandler(FakeClusters(), config(), environment or Environment())
    return orjson.loads(asyncio.run(handler.handle(request)).body)["root"]


def deep_list(depth: int) -> Any:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({f"p{n}": n for n in range(limits.QUERY_PARAMETERS + 1)}, "More than 10000 parameters"),
        ({"yql": f"{YQL} order by {', '.join(['year'] * 101)}"}, "'order by' has 101 keys; at most 100"),
        ({"yql": YQL, "collapsefield": ",".join(["year"] * 101)}, "collapse by 101 fields: at most 100"),
        ({"timeout": "20s", "query": "a " * (limits.QUERY_ITEMS + 1)}, "exceeds allowed item count"),
        ({"yql": YQL, "input": {"query(q)": deep_list(300)}}, "The JSON of 'input.query(q)' cannot be read: Recursion"),
        ({"select": {"where": {"and": deep_list(300)}}}, "The JSON of 'select.where' cannot be read: Recursion"),
        ({"timeout": "20s", "query": '"a b" ' * (limits.QUERY_ITEMS + 1)}, "exceeds allowed item count"),
    ],
)
def test_too_many(body: dict[str, Any], message: str) -> None:
    (error,) = root_of(body)["errors"]
    assert message in error["message"]


def test_a_number_that_is_larger_than_any_field_holds() -> None:
    body = b'{"select": {"where": {"range": ["n", {">": 1%s}]}}}' % (b"0" * 400)
    response = asyncio.run(SearchHandler(FakeClusters(), config()).handle(Request("POST", "/search/", "", body=body)))
    assert response.status == 400 and b"The JSON of 'select.where' cannot be read" in response.body


def planning_threads(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads that plan queries from now on, as they do."""
    threads: list[threading.Thread] = []

    def noted(plan: Callable[..., Any]) -> Callable[..., Any]:
        def planning(*given: Any) -> Any:
            threads.append(threading.current_thread())
            return plan(*given)

        return planning

    monkeypatch.setattr(search, "prepare_and_bind", noted(prepare_and_bind))
    monkeypatch.setattr(search, "prepare_query", noted(prepare_query))
    return threads


def test_large_requests_are_read_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = planning_threads(monkeypatch)
    for size in (1, limits.QUERY_INLINE_BYTES):
        root_of({"query": "two", "sources": "media", "unknown": "x" * size}, STILL)
    assert [thread is threading.main_thread() for thread in threads] == [True, False]


def test_requests_with_semantic_rules_are_planned_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few words may keep rules busy for a second."""
    threads = planning_threads(monkeypatch)
    monkeypatch.setattr(search, "rule_base_of", lambda *_: "some")
    assert "errors" not in root_of({"query": "two", "sources": "media"}, STILL)
    assert threads != [threading.main_thread()]


@pytest.mark.parametrize("cells", [limits.INLINE_TENSOR_CELLS, limits.INLINE_TENSOR_CELLS + 1])
def test_answers_with_large_tensors_are_written_on_another_thread(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    threads = []

    def noted(*given: Any) -> Any:
        threads.append(threading.current_thread())
        return respond(*given)

    tensor = Tensor(TensorType.parse(f"tensor<float>(x[{cells}])"), ((),), np.zeros((1, cells), np.float32))
    shown = hit(1)._replace(match_features={"t": tensor, "n": 1.0})
    monkeypatch.setattr(search, "respond", noted)
    monkeypatch.setitem(ANSWERS, "two", lambda address, message: SearchResponse(1, 10, (shown,)))
    found = root_of({"query": "two", "sources": "media"}, STILL)["children"][0]["fields"]["matchfeatures"]["t"]
    assert len(found["values"]) == cells
    assert [thread is threading.main_thread() for thread in threads] == [cells == limits.INLINE_TENSOR_CELLS]


def test_a_sort_specification_is_bounded() -> None:
    long = '+missing(a,as,"' + "x" * limits.SORT_CHARACTERS + '")'
    with pytest.raises(IllegalQuery, match=f"at most {limits.SORT_CHARACTERS}"):
        read_sorting(long)
    with pytest.raises(IllegalQuery, match="Illegal locale"):
        read_sorting(f"+uca(a,{'x' * 65})")


def test_large_requests_whose_turn_comes_too_late_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for each other: one after the other they would be read long after nobody waits for them."""
    ticks = iter(range(0, 10**15, 10**9))
    handler = SearchHandler(FakeClusters(), config(), Environment(monotonic_ns=lambda: next(ticks)))
    monkeypatch.setattr(search, "prepare_and_bind", lambda *_: pytest.fail("it is read"))
    body = {"query": "two", "sources": "media", "timeout": "500ms", "unknown": "x" * limits.QUERY_INLINE_BYTES}
    response = asyncio.run(handler.handle(Request("POST", "/search/", "", body=orjson.dumps(body))))
    assert response.status == 504 and b"one at a time" in response.body


@pytest.mark.parametrize(
    "body",
    [
        {"yql": "select * from sources * where year in (@years)", "years": "1," * 2_000_000},
        {"yql": "select * from sources * where wand(tags, @tags)", "tags": "{" + "a: 1, " * 700_000 + "}"},
        {"yql": f"select * from sources * where year in ({'1,' * 400_000} 1)"},
        {"query": "(" * 900_000},
    ],
    ids=["in", "wand", "yql", "simple"],
)
def test_a_large_request_is_read_no_longer_than_its_time(body: dict[str, Any]) -> None:
    """It would be read for seconds."""
    (error,) = root_of({**body, "timeout": "50ms"})["errors"]
    assert error["code"] == 12
    assert error["message"].startswith("the time was over before the query was read"), (
        "on a busy machine not even begun"
    )
    check_time()


def test_the_time_of_a_large_request_may_be_said_in_yql() -> None:
    values = ", ".join(map(str, range(20_000)))
    yql = f"select * from sources * where year in ({values}) timeout 20000"
    assert "errors" not in root_of({"yql": yql, "timeout": "1ms", "sources": "media"})


HALF = "\ud83d"
"""A lone surrogate: JSON can write it, and no text has it."""


@pytest.mark.parametrize("name", sorted({names[0] for names, *_ in PARAMETERS} | {"input.query(q)", "anything", "a.b"}))
def test_half_a_character_in_a_parameter_is_refused(name: str) -> None:
    (error,) = root_of({name: HALF})["errors"]
    assert (error["code"], "broken" in error["message"]) == (3, True)


@pytest.mark.parametrize(
    "body",
    [
        {HALF: "1"},
        {"input": {"query(q)": {"cells": [{"address": {"x": HALF}, "value": 1}]}}},
        {"input": {"query(q)": {HALF: 1}}},
        {"select": {"where": {"contains": ["title", HALF]}}},
        {"select.where": json.dumps({"contains": ["title", HALF]})},
        {"yql": YQL, "presentation": {"summary": HALF}},
    ],
)
def test_half_a_character_anywhere_in_a_body_is_refused(body: dict[str, Any]) -> None:
    assert root_of(body)["errors"][0]["code"] in (3, 4)


@pytest.mark.parametrize(
    "body",
    [
        {"yql": "select * from sources * where title contains '\\ud83d'"},
        {"yql": "select * from sources * where title contains '\\ud83d' order by '\\ud83d'"},
        {"yql": f"{YQL} | all(group('\\ud83d'))"},
        {"yql": YQL, "sorting": '+missing(year,as,"\\ud83d")'},
        {"yql": YQL, "input.query(q)": '{"\\ud83d": 1}'},
        {"yql": YQL, "input.query(q)": '{"cells": [{"address": {"x": "\\ud83d"}, "value": 1}]}'},
        {"yql": "select * from sources * where weightedSet(year, @t)", "t": '{"\\ud83d": 1}'},
        {"yql": 'select * from sources * where predicate(year, {"\\ud83d": "\\ud83d"}, 0)'},
    ],
)
def test_an_escape_of_half_a_character_in_a_language_is_no_defect(body: dict[str, Any]) -> None:
    assert all(error["code"] in (3, 4) for error in root_of(body).get("errors", ()))


@pytest.mark.parametrize(
    ("query", "form", "expected"),
    [
        ("", "", ""),
        ("format=xml", "", "xml"),
        ("a=b&format=xml&c=d", "", "xml"),
        ("format=json&format=xml", "", "xml"),
        ("format=xml&format=json", "", "json"),
        ("format=x%6Dl", "", "xml"),
        ("format=nothing", "", ""),
        ("format=%zz", "", ""),
        ("noformat=xml&presentation.format=xml&formats=xml", "", ""),
        ("", "format=xml&a=b", "xml"),
        ("", "a=b&format=xml", "xml"),
        ("format=json", "format=xml", "json"),
        ("a=format=xml", "b=\xffformat=xml", ""),
    ],
)
def test_the_format_of_an_answer_to_broken_parameters_is_the_last_that_is_said(
    query: str, form: str, expected: str
) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"} if form else {}
    assert plain_format(Request("POST", "/search/", query, headers, form.encode())) == expected
    if form:
        assert plain_format(Request("POST", "/search/", query, {}, form.encode())) == (expected if query else "")
