"""What services.xml says a content cluster gives a query at most: hits, and time.

Authority: the page services/content.html (`query-timeout`, `max-hits-per-partition`), ClusterSearcher.java and
InvokerFactory.java in Vespa.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any

import orjson
import pytest

from paperwasp.base.records import replace
from paperwasp.container.search.config import QueryLimits, SearchConfig
from paperwasp.container.search.handler import SearchHandler
from paperwasp.http.messages import Request
from paperwasp.search.query import Query, SearchResponse
from tests.container.search.search_nodes import Running, put, running
from tests.container.search.search_scripts import config


@pytest.mark.parametrize(
    ("tuning", "expected"),
    [
        ({}, (sys.maxsize, inf)),
        ({"search/query-timeout": "1.5"}, (sys.maxsize, 1500.0)),
        ({"engine/proton/query-timeout": "3", "search/query-timeout": "2"}, (sys.maxsize, 2000.0)),
        ({"engine/proton/query-timeout": "3"}, (sys.maxsize, 3000.0)),
        ({"tuning/dispatch/max-hits-per-partition": "7"}, (7, inf)),
        ({"engine/proton/tuning/dispatch/max-hits-per-partition": "5"}, (5, inf)),
        ({"tuning/resource-limits/disk": "0.5"}, (sys.maxsize, inf)),
    ],
)
def test_tuning(tuning: Mapping[str, str], expected: tuple[int, float]) -> None:
    assert tuple(QueryLimits.of(tuning)) == expected


@pytest.mark.parametrize(("query", "seconds"), [("timeout=1ks", 600), ("timeout=9", 9), ("yql=", 600)])
def test_no_query_has_more_than_ten_minutes(query: str, seconds: int) -> None:
    seen: list[Query] = []

    class Clusters:
        def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
            reply(None)

        async def ask(self, address: str, message: object) -> object:
            assert isinstance(message, Query)
            seen.append(message)
            return SearchResponse(0, 0, ())

    if query == "yql=":
        query += "select * from music where true timeout 700000"
    handler = SearchHandler(Clusters(), config())
    before = time.monotonic_ns()
    asyncio.run(handler.handle(Request("GET", "/search/", f"{query.replace(' ', '%20')}&query=a&sources=media")))
    left = seen[0].deadline.at_ns - before
    assert seconds * 1e9 <= left < (seconds + 60) * 1e9


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """Cluster `media` (ten of `music`, five of `book`) gives three hits and a second, `other` (four of `thing`) all."""
    with running() as started:
        for kind, count in (("music", 10), ("book", 5), ("thing", 4)):
            for number in range(count):
                started.apply(put(number, kind, title="a", price=float(number), name=f"{kind}{number}"))
        config: SearchConfig = started.handler._config
        limited = replace(config.clusters[0], limits=QueryLimits(3, 1000.0))
        started.handler.configure(replace(config, clusters=(limited, config.clusters[1])))
        yield started


def _names(service: Running, **parameters: object) -> tuple[list[str], int]:
    root = service.ask(yql="select * from sources * where title contains 'a'", sorting="+price +name", **parameters)
    assert "errors" not in root, root
    return [hit["fields"]["name"] for hit in root.get("children", [])], root["fields"]["totalCount"]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"restrict": "music"}, ["music0", "music1", "music2"]),
        ({"restrict": "music", "hits": 2}, ["music0", "music1"]),
        ({"restrict": "music", "offset": 8}, ["music8", "music9"]),
        ({"restrict": "music", "offset": 4}, ["music4", "music5", "music6"]),
        ({"restrict": "music", "hits": 0}, []),
        ({"restrict": "thing"}, ["thing0", "thing1", "thing2", "thing3"]),
    ],
)
def test_hits_of_a_cluster(service: Running, asked: dict[str, Any], expected: list[str]) -> None:
    total = 4 if asked["restrict"] == "thing" else 10
    assert _names(service, **asked) == (expected, total)


def test_hits_of_several_clusters(service: Running) -> None:
    """Each cluster gives its share, and the page is made of these."""
    first = ["book0", "music0", "thing0", "book1", "thing1", "thing2", "thing3"]
    assert _names(service) == (first, 19)
    assert _names(service, offset=2, hits=3) == (["thing0", "book1", "thing1"], 19)


@pytest.mark.parametrize(("timeout", "media", "other"), [("5s", "1000ms", "5000ms"), ("200ms", "200ms", "200ms")])
def test_time_of_a_cluster(service: Running, timeout: str, media: str, other: str) -> None:
    answer = service.answer(yql="select * from sources * where true", timeout=timeout, tracelevel=2, trace__query=False)
    trace = orjson.dumps(orjson.loads(answer.body)["trace"]).decode()
    assert f"media: timeout={media} " in trace
    assert f"other: timeout={other} " in trace


def test_a_cluster_without_time_is_out_of_it(service: Running) -> None:
    config: SearchConfig = service.handler._config
    hurried = replace(config.clusters[0], limits=QueryLimits(timeout_ms=0.0))
    service.handler.configure(replace(config, clusters=(hurried, config.clusters[1])))
    try:
        root = service.ask(yql="select * from music where title contains 'a'", ranking__softtimeout__enable=False)
        assert [(error["code"], error["message"]) for error in root["errors"]] == [(12, "no time was left to search")]
    finally:
        service.handler.configure(config)
