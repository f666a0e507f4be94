"""Answers that are kept: for the same request, until something is written, and no longer."""

from __future__ import annotations

import asyncio
import random
from threading import Event, Thread

import orjson
import pytest

from paperwasp import limits
from paperwasp.container.search.answer_cache import AnswerCache, key_of
from paperwasp.container.search.handler import SearchHandler
from paperwasp.container.search.rendering import SearchError, SearchResult, status_of
from paperwasp.container.search.shapes import form_of
from paperwasp.http.messages import Request, Response
from tests.chance import SEED
from tests.container.search.search_nodes import put, remove, running, update
from tests.container.search.search_scripts import FakeClusters, config


def asked(clusters: FakeClusters, *queries: str) -> int:
    """How many times the clusters were asked for what answers these requests of one handler."""
    handler = SearchHandler(clusters, config())
    for query in queries:
        response = asyncio.run(handler.handle(Request("GET", "/search/", query)))
        assert response.status == 200
    return len(clusters.asked)


def clusters(stamp: int = 7) -> FakeClusters:
    fake = FakeClusters()
    fake.stamp = stamp
    return fake


PLAIN = "query=two&sources=media"


@pytest.mark.parametrize(
    ("queries", "times"),
    [
        ((PLAIN, PLAIN), 1),
        ((PLAIN, "sources=media&query=two"), 1),
        ((PLAIN, f"{PLAIN}&hits=3"), 2),
        ((f"{PLAIN}&hits=3&count=1", f"{PLAIN}&count=1&hits=3"), 2),  # the last of two names is in force
        ((f"{PLAIN}&count=1&hits=3", f"{PLAIN}&hits=3&count=1&Hits=3"), 2),
        ((f"{PLAIN}&hits=3&hits=1", f"{PLAIN}&hits=1&hits=3"), 2),
        ((PLAIN, f"{PLAIN}&nocache=true"), 2),
        ((PLAIN, f"{PLAIN}&nocache=false"), 1),
        ((f"{PLAIN}&noCache=true", PLAIN, PLAIN), 2),
        ((f"{PLAIN}&nocachewrite=true", PLAIN, PLAIN), 2),
        ((PLAIN, f"{PLAIN}&nocachewrite=true"), 1),
        ((f"{PLAIN}&tracelevel=1", f"{PLAIN}&tracelevel=1"), 2),
        ((f"{PLAIN}&presentation.timing=true",) * 2, 2),
        ((f"{PLAIN}&rankfeatures=true",) * 2, 2),
        ((f"{PLAIN}&ranking=timely",) * 2, 2),
        ((f"{PLAIN}&ranking=typed",) * 2, 1),
        (("query=partial&sources=media",) * 2, 2),
        (("query=limited&sources=media",) * 2, 2),
        ((f"{PLAIN}&streaming.selection=true",) * 2, 2),
        (("query=two",) * 2, 2),  # two clusters, once each
        ((f"{PLAIN}&format=cbor", PLAIN), 2),
    ],
)
def test_what_is_kept(queries: tuple[str, ...], times: int) -> None:
    assert asked(clusters(), *queries) == times


def test_what_nobody_knows_the_view_of_is_not_kept() -> None:
    assert asked(clusters(0), PLAIN, PLAIN) == 2


def test_errors_are_not_kept() -> None:
    fake = clusters()
    handler = SearchHandler(fake, config())
    for _ in range(2):
        asyncio.run(handler.handle(Request("GET", "/search/", "query=halfbroken")))
    assert len(fake.asked) == 4


def test_another_view_and_another_application_end_it() -> None:
    fake = clusters()
    handler = SearchHandler(fake, config())
    for stamp, application in ((7, None), (8, None), (8, config())):
        fake.stamp = stamp
        if application is not None:
            handler.configure(application)
        for _ in range(2):
            asyncio.run(handler.handle(Request("GET", "/search/", PLAIN)))
    assert len(fake.asked) == 3


def test_the_least_recently_used_make_room() -> None:
    cache = AnswerCache(3000)
    keys = [key_of([("query", str(number))], form_of(["query"]), "json") for number in range(4)]
    for key in keys[:3]:
        cache.put(key, Response(200, b"x" * 300), None, {"media": 1})
    assert cache.get(keys[0], None) is not None
    cache.put(keys[3], Response(200, b"x" * 300), None, {"media": 1})
    assert [cache.get(key, None) is not None for key in keys] == [True, False, True, True]
    assert cache.size_bytes <= 3000
    cache.put(keys[3], Response(200, b"x" * (limits.SEARCH_CACHE_ANSWER_BYTES + 1)), None, {"media": 1})
    assert len(cache) == 3
    cache.clear()
    assert cache.size_bytes == 0


def test_answers_from_older_views_make_room_at_once() -> None:
    """Nobody can be given them, and beside a steady feed they would fill the memory with what is never read."""
    cache = AnswerCache()
    keys = [key_of([("query", str(number))], form_of(["query"]), "json") for number in range(5)]
    answer = Response(200, b"x" * 300)
    cache.put(keys[0], answer, None, {"media": 1})
    cache.put(keys[1], answer, None, {"books": 4})
    cache.put(keys[2], answer, None, {"books": 4, "media": 1})
    assert len(cache) == 3
    one_bytes = cache.size_bytes // 3
    cache.put(keys[3], answer, None, {"media": 2})
    assert [cache.get(key, None) is not None for key in keys] == [False, True, False, True, False]
    cache.put(keys[4], answer, None, {"media": 2, "books": 4})
    cache.put(keys[4], answer, None, {"media": 2, "books": 5})
    assert [cache.get(key, None) is not None for key in keys] == [False, False, False, True, True]
    assert cache.size_bytes == 2 * one_bytes
    cache.drop(keys[3])
    cache.put(keys[0], answer, None, {"media": 3})
    assert [cache.get(key, None) is not None for key in keys] == [True, False, False, False, False]


def test_whoever_has_written_finds_it() -> None:
    """A writer that asks after each of its writes, beside another one: never an answer from before its write."""
    seed = SEED
    rng = random.Random(seed)
    stop = Event()
    with running() as service:

        def feed() -> None:
            number = 0
            while not stop.is_set():
                service.apply(put(f"other{number % 50}", title="c", year=number))
                number += 1

        thread = Thread(target=feed)
        thread.start()
        try:
            expected: dict[str, int] = {}
            for _ in range(300):
                name = f"own{rng.randrange(5)}"
                kind = rng.random()
                if kind < 0.3 and name in expected:
                    service.apply(remove(name))
                    del expected[name]
                elif kind < 0.6 and name in expected:
                    expected[name] = rng.randrange(100)
                    service.apply(update(name, year=expected[name]))
                else:
                    expected[name] = rng.randrange(100)
                    service.apply(put(name, title="a", year=expected[name]))
                for _ in range(2):
                    asked = {"default-index": "title", "sources": "media", "hits": 20, "timeout": "60s"}
                    root = service.ask(query="a", **asked)
                    found = {hit["id"].rpartition(":")[2]: hit["fields"]["year"] for hit in root.get("children", [])}
                    assert found == expected, f"seed {seed}"
        finally:
            stop.set()
            thread.join()


def test_kept_answers_are_given_while_nothing_is_written() -> None:
    with running() as service:
        service.apply(put(1, title="a"), put(1, "thing", title="a"))
        said = {"query": "a", "default-index": "title"}
        first = service.answer(**said)
        assert orjson.loads(first.body)["root"]["fields"]["totalCount"] == 2
        assert service.answer(**said) is first
        service.apply(put(2, "thing", title="a"))
        assert service.ask(**said)["fields"]["totalCount"] == 3


def test_benchmark_headers() -> None:
    """BenchmarkingHeaders.java. A kept answer has none of these numbers, so that the query is run."""
    fake = clusters()
    handler = SearchHandler(fake, config())

    def headers_of(query: str, **headers: str) -> dict[str, str]:
        request = Request("GET", "/search/", query, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = asyncio.run(handler.handle(request))
        return {name.removeprefix("X-Yahoo-Vespa-"): value for name, value in answer.headers.items()}

    query = f"{PLAIN}&hits=5&offset=1"
    for _ in range(2):
        found = headers_of(query, x_yahoo_vespa_benchmarkdata="true")
        assert all(0 <= int(found.pop(name)) < 60_000 for name in ("SearchTime", "FillTime"))
        counts = {"NumHits": "2", "NumFastHits": "2", "TotalHitCount": "2", "QueryHits": "5", "QueryOffset": "1"}
        assert found == {**counts, "NumErrors": "0", "AttributeFetchTime": "0"}
    assert len(fake.asked) == 2
    found = headers_of(query, x_yahoo_vespa_benchmarkdata="1", x_yahoo_vespa_benchmarkdata_coverage="1")
    coverage = {"DocsSearched": "10", "NodesSearched": "1", "FullCoverage": "1"}
    assert {name: found[name] for name in coverage} == coverage
    assert headers_of(query) == {} == headers_of(query, x_yahoo_vespa_benchmarkdata_coverage="1")


def test_who_measures_has_no_soft_timeout_unless_it_is_asked_for() -> None:
    """handleBody of SearchHandler.java."""

    def is_soft(query: str, measured: bool) -> bool:
        fake = clusters()
        headers = {"x-yahoo-vespa-benchmarkdata": ""} if measured else {}
        asyncio.run(SearchHandler(fake, config()).handle(Request("GET", "/search/", query, headers)))
        return fake.asked[0][1].deadline.is_soft

    assert is_soft(PLAIN, measured=False)
    assert not is_soft(PLAIN, measured=True)
    assert is_soft(f"{PLAIN}&ranking.softTimeout.enable=true", measured=True)


@pytest.mark.parametrize(
    ("codes", "hits", "measured", "status"),
    [
        *(((5, 12), 0, False, 504), ((5,), 0, False, 500), ((12, 4), 0, False, 504), ((8, 10), 0, False, 503)),
        *(((12,), 1, False, 200), ((12,), 1, True, 504), ((5, 17), 1, False, 400), ((5,), 1, True, 500)),
        *(((3, 18), 1, False, 500), ((3, 18), 0, False, 400), ((429,), 1, False, 429), ((), 0, True, 200)),
    ],
)
def test_the_status_is_of_the_first_error_that_has_one(
    codes: tuple[int, ...], hits: int, measured: bool, status: int
) -> None:
    """VespaHeaders.java: 5 (unspecified) and 8 (in a reply) have none, and are 500 where nothing else is wrong."""
    result = SearchResult(errors=[SearchError(code, "") for code in codes], page=[b"{}"] * hits)
    assert status_of(result, is_eager=measured) == status
