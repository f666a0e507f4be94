"""Long requests and answers are read and written beside the event loop, short ones on it: counted, not timed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.container.search import handler as search
from paperwasp.container.search.handler import SearchHandler
from paperwasp.container.search.merge import has_many_groups, is_large, merged
from paperwasp.container.search.rendering import SearchError, SearchResult, respond
from paperwasp.container.threads import read_in_turn
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.query import Hit, HitExplanation, SearchResponse
from tests.container.search.search_scripts import ANSWERS, FakeClusters, config, hit
from tests.container.search.test_search_groups import rooted
from tests.search.grouping.results import groups, root
from tests.search.grouping.test_result import one_level

SMALL = Request("PUT", "/", "a=b", body=b"{}")
LARGE = [
    Request("PUT", "/", body=bytes(limits.JSON_PIECE_BYTES + 1)),
    Request("PUT", "/", body=bytes(limits.LARGE_REQUEST_BYTES)),
    Request("GET", "/", "x" * (limits.DOCUMENT_INLINE_QUERY_CHARACTERS + 1)),
]


def test_small_ones_are_read_at_once() -> None:
    async def run() -> None:
        assert await read_in_turn(asyncio.Lock(), SMALL, threading.get_ident) == threading.get_ident()

    asyncio.run(run())


@pytest.mark.parametrize("request_", LARGE, ids=["a body", "a very large body", "a query string"])
def test_large_ones_are_read_on_a_thread_while_the_loop_goes_on(request_: Request) -> None:
    """Each waits until the loop has counted to three; together they are never two at a time."""
    counted = threading.Event()
    inside = threading.Semaphore(1)

    def read() -> int:
        assert inside.acquire(blocking=False), "one at a time"
        assert counted.wait(30), "the loop goes on"
        inside.release()
        return threading.get_ident()

    async def run() -> None:
        lock = asyncio.Lock()
        readings = [asyncio.ensure_future(read_in_turn(lock, request_, read)) for _ in range(3)]
        for _ in range(3):
            await asyncio.wait(readings, timeout=0)
        counted.set()
        assert threading.get_ident() not in await asyncio.gather(*readings)

    asyncio.run(run())


def test_what_is_wrong_is_raised_and_the_turn_passes_on() -> None:
    def fail() -> None:
        raise InvalidInput("wrong")

    async def run() -> None:
        lock = asyncio.Lock()
        with pytest.raises(InvalidInput, match="wrong"):
            await read_in_turn(lock, LARGE[0], fail)
        assert await read_in_turn(lock, LARGE[0], lambda: "right") == "right"

    asyncio.run(run())


def of_hits(hits: Sequence[Hit], **more: Any) -> SearchResult:
    return SearchResult([("media", each) for each in hits], **more)


def grouped(count: int) -> PartialResult:
    return PartialResult(0, (root(), groups(2, [0] * count, [str(n) for n in range(count)], [1] * count)))


@pytest.mark.parametrize("kind", ["match_features", "summary_features", "rank_features"])
def test_features(kind: str) -> None:
    values: Mapping[str, float] = {f"f{n}": 1.0 for n in range(limits.INLINE_FEATURES // 8)}
    shown: dict[str, Any] = {kind: values}
    hits = [hit(number)._replace(**shown) for number in range(9)]
    assert [is_large(of_hits(hits[:count]), is_json=True) for count in (8, 9)] == [False, True]


def test_explanations() -> None:
    hits = [hit(number)._replace(explanation=HitExplanation(note="why")) for number in range(11)]
    assert [is_large(of_hits(hits[:count]), is_json=True) for count in (10, 11)] == [False, True]


@pytest.mark.parametrize(("is_json", "most"), [(True, limits.INLINE_JSON_BYTES), (False, limits.INLINE_XML_BYTES)])
def test_bytes_of_documents(is_json: bool, most: int) -> None:
    """Those of hits and those that a cluster has rendered."""
    fields = b'{"title":"%b"}' % (b"a" * (most // 2 - 12))
    assert len(fields) == most // 2
    hits = [hit(number)._replace(fields=fields) for number in range(2)]
    assert not is_large(of_hits(hits), is_json=is_json)
    assert not is_large(of_hits(hits[:1], page=[None, b"{}"]), is_json=is_json)
    assert is_large(of_hits(hits, page=[b"{}", None, None]), is_json=is_json)


@pytest.mark.parametrize("count", [1, 1000])
def test_groups_are_counted_with_their_values(count: int) -> None:
    """A statement counts as several groups, each group with each of its values."""
    one = "media", rooted(one_level(), grouped(count))
    most = limits.INLINE_GROUPS // (limits.GROUPING_AS_GROUPS + 1 + 2 * count)
    assert not is_large(SearchResult(groups=[one] * most), is_json=True)
    assert is_large(SearchResult(groups=[one] * (most + 2)), is_json=True)


def test_groups_of_clusters() -> None:
    many = limits.INLINE_GROUPS - limits.GROUPING_AS_GROUPS - 1
    few, enough = grouped(1), grouped(many)
    assert not has_many_groups([("media", SearchResponse(1, 1, ())), ("books", SearchError(12, "late"))])
    assert not has_many_groups([("media", SearchResponse(1, 1, (), groupings=(enough,)))])
    assert has_many_groups([("media", SearchResponse(1, 1, (), groupings=(enough,)))] * 2)
    assert has_many_groups([("media", SearchResponse(1, 1, (), groupings=(few,) * 200))])


@pytest.mark.parametrize("count", [1, limits.INLINE_GROUPS])
def test_many_groups_are_put_together_and_written_on_another_thread(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    threads = []

    def noted(work: Any) -> Any:
        def run(*given: Any, **named: Any) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return work(*given, **named)

        return run

    monkeypatch.setattr(search, "merged", noted(merged))
    monkeypatch.setattr(search, "respond", noted(respond))
    monkeypatch.setitem(ANSWERS, "two", lambda *_: SearchResponse(1, 10, (), groupings=(grouped(count),)))
    yql = "select * from media where title contains 'two' limit 0 | all(group(year) max(5000) each(output(count())))"
    request = Request("POST", "/search/", "", body=b'{"yql":"%b"}' % yql.encode())
    response = asyncio.run(SearchHandler(FakeClusters(), config()).handle(request))
    assert response.status == 200 and response.body.count(b"group:") > count, response.body[:500]
    assert threads == [count == 1] * 2
