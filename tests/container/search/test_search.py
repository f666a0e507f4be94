"""The search handler: its scripts, and what a script cannot show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.application.query_profiles.field_types import native_types
from paperwasp.application.query_profiles.reading import declared_at
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.container.search.handler import SearchConfig, SearchHandler
from paperwasp.container.search.parameters import PARAMETERS
from paperwasp.container.search.rendering import SearchResult, render_json
from paperwasp.container.timeouts import timeout_ms
from paperwasp.http.messages import Request, Response
from paperwasp.search.query import Query, SearchResponse
from tests.container.search.search_scripts import SCRIPTS, FakeClusters, config, content_of, hit, profiles_of, run


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("search_*.txt")), ids=lambda p: p.stem)
def test_script(path: Path) -> None:
    run(path)


def handle(request: Request, search_config: SearchConfig | None = None) -> Response:
    return asyncio.run(SearchHandler(FakeClusters(), search_config or config()).handle(request))


def test_no_application_is_an_answer() -> None:
    response = asyncio.run(SearchHandler(FakeClusters()).handle(Request("GET", "/search/", "query=a")))
    assert response.status == 400
    assert b"There is nothing to search" in response.body


def test_a_new_configuration_takes_effect_at_once() -> None:
    handler = SearchHandler(FakeClusters(), SearchConfig())
    handler.configure(config())
    assert asyncio.run(handler.handle(Request("GET", "/search/", "query=two"))).status == 200


def test_a_cluster_that_does_not_answer_is_not_awaited_for_ever() -> None:
    class Silent:
        def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
            reply(None)

        async def ask(self, address: str, message: object) -> object:
            await asyncio.Event().wait()
            raise AssertionError

    request = Request("GET", "/search/", "query=a&sources=media&timeout=1ms")
    response = asyncio.run(SearchHandler(Silent(), config()).handle(request))
    assert response.status == 504
    assert orjson.loads(response.body)["root"]["errors"][0]["code"] == 12


def test_several_clusters_are_merged_by_relevance_within_the_window() -> None:
    response = handle(Request("GET", "/search/", "query=two&hits=1&offset=1"))
    assert [hit["id"] for hit in orjson.loads(response.body)["root"]["children"]] == ["id:ns:things::7"]


def test_hits_that_a_cluster_has_rendered_are_put_between_those_that_it_has_not() -> None:
    rest = (("media", hit(1)), ("media", hit(2)))
    page = (b'{"id":"first"}', None, b'{"id":"third"}', None)
    rendered = orjson.loads(render_json(SearchResult(rest, page, total_count=4)))
    assert [each["id"] for each in rendered["root"]["children"]] == [
        "first",
        rest[0][1].document_id,
        "third",
        "id:ns:music::2",
    ]
    assert render_json(SearchResult(page=page[::2])).endswith(b'"children":[{"id":"first"},{"id":"third"}]}}')
    assert SearchResult(rest, page).hit_count == 4 and SearchResult(rest).hit_count == 2


def test_timing_is_what_the_clusters_took_to_write_hits_and_the_rest() -> None:
    class Measured(FakeClusters):
        async def ask(self, address: str, message: object) -> object:
            answer = await super().ask(address, message)
            assert isinstance(answer, SearchResponse)
            return replace(answer, summary_ns=3_000_000 if address == "content/other" else 2_000_000)

    readings = iter(range(0, 100_000_000, 10_000_000))
    handler = SearchHandler(Measured(), config(), Environment(monotonic_ns=lambda: next(readings)))
    request = Request("GET", "/search/", "query=two&presentation.timing=true&nocache=true&timeout=20s")
    timing = orjson.loads(asyncio.run(handler.handle(request)).body)["timing"]
    assert list(timing) == ["querytime", "summaryfetchtime", "searchtime"]
    assert timing["summaryfetchtime"] == 0.003  # of the slower one: they write side by side
    assert timing["searchtime"] >= 0.01
    assert timing["querytime"] == round(timing["searchtime"] - 0.003, 6)


def test_parameter_names_are_unique_but_for_case() -> None:
    names = [name.lower() for names, *_ in PARAMETERS for name in names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        *(("0.5", 500), ("5s", 5000), ("70 ms", 70), ("1ks", 1e6), ("250µs", 0.25), ("60 s", 60_000), (".5", 500)),
        *(("2 parsecs", 2000), ("2e3ms", 2000), ("1_0", 1000)),  # seconds, where there is no such unit
    ],
)
def test_timeouts(text: str, expected_ms: float) -> None:
    """ParameterParser.java: the number ends where a digit or a point does not."""
    assert timeout_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "s", "five", "-1", "+1", "1.2.3", "1000001", "nan"])
def test_broken_timeouts(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        timeout_ms(text)


NAMES = st.sampled_from([name for names, *_ in PARAMETERS for name in names] + ["input.query(x)", "x", "ranking.", ""])
VALUES = st.one_of(
    st.text(),
    st.sampled_from(
        ["true", "0", "-1", "5", "1e3", "[1,2]", "select * from sources * where userQuery()", "two", "all"]
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(NAMES, values),
    max_leaves=6,
)


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(NAMES, st.one_of(VALUES, JSON), max_size=4),
    st.sampled_from(["application/json", "", "application/x-www-form-urlencoded", "text/plain"]),
    st.text(),
    st.sampled_from(["", "*/*", "application/cbor", "application/json;q=x, application/cbor;q=0.1", ";;,"]),
)
def test_any_request_has_an_answer(content: dict[str, object], type_: str, query: str, accept: str) -> None:
    logging.disable(logging.CRITICAL)
    body = orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS, default=str) if _encodable(content) else b"{"
    response = handle(Request("POST", "/search/", query, {"content-type": type_, "accept": accept}, body))
    logging.disable(logging.NOTSET)
    assert response.status in (200, 400)
    root = content_of(response)["root"]  # type: ignore[index]
    assert root["id"] == "toplevel"
    assert (response.status == 200) == ("errors" not in root)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(["default", "plain", "variants", "strict", "strict/a", "circle", "elderly", "", "none"]),
    st.dictionaries(
        NAMES | st.sampled_from(["device", "bucket", "user", "user.age", "M", "own.text", "since"]),
        VALUES | st.sampled_from(["ref:plain", "ref:circle", "ref:elderly", "phone", "test"]),
        max_size=5,
    ),
)
def test_any_request_under_a_query_profile_has_an_answer(profile: str, given_: dict[str, str]) -> None:
    body = orjson.dumps(given_ | {"queryProfile": profile} if _encodable(given_) else {})
    request = Request("POST", "/search/", "", {"content-type": "application/json"}, body)
    response = handle(request, config(profiles_of(SCRIPTS / "search_query_profiles")))
    assert response.status in (200, 400)


def _encodable(content: object) -> bool:
    try:
        orjson.dumps(content)
    except (TypeError, ValueError):
        return False
    return True


def test_what_is_asked_is_not_shared_between_requests() -> None:
    seen: list[Query] = []

    class Clusters:
        def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
            reply(None)

        async def ask(self, address: str, message: object) -> object:
            assert isinstance(message, Query)
            seen.append(message)
            return SearchResponse(0, 0, ())

    handler = SearchHandler(Clusters(), config())
    for query in ("query=a&input.query(x)=1", "query=a&input.query(y)=2"):
        asyncio.run(handler.handle(Request("GET", "/search/", query + "&sources=media")))
    assert [query.rank.inputs for query in seen] == [{"x": 1.0}, {"y": 2.0}]


def test_every_parameter_of_a_group_is_declared_in_the_built_in_types() -> None:
    """Else a strict type that inherits `native` would refuse what is executed."""
    types = native_types()
    names = [names[0] for names, *_ in PARAMETERS if names[0].partition(".")[0] in types]
    problems = [declared_at(types[group], rest).problem for group, _, rest in (name.partition(".") for name in names)]
    assert [problem for problem in problems if problem] == []
