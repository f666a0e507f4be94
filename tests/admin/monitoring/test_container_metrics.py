"""What a container counts of its answers, and that no client can make it count in ever more ways.

Authority: Vespa's ResponseMetricAggregator.java, DocumentApiMetrics.java and reference of container metrics.
"""

from __future__ import annotations

from typing import Any

import pytest

from paperwasp.base.env import Environment
from paperwasp.container.metrics import ContainerMetrics, kind_of
from paperwasp.container.search.rendering import SearchError, SearchResult, respond
from paperwasp.container.search.xml import ShownTypes, respond_xml
from paperwasp.http.messages import Request, Response
from tests.exchanges import answered
from tests.http.batched import Client, KeptAnswers

_ONE = "/document/v1/ns/music/docid/1"


def _metrics() -> ContainerMetrics:
    """Counts since ten seconds ago."""
    times = iter((0,))
    return ContainerMetrics(Environment(time_ns=lambda: next(times, 10 * 10**9)))


def _of(metrics: ContainerMetrics, name: str) -> dict[tuple[tuple[str, str], ...], dict[str, Any]]:
    """Dimensions → values."""
    return {tuple(each["dimensions"].items()): each["values"] for each in metrics.all() if each["name"] == name}


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("GET", "/search/", "query"),
        ("POST", "/search/", "query"),
        ("GET", "/search", "query"),
        ("GET", "/searching", "other"),
        ("POST", _ONE, "put"),
        ("PUT", _ONE, "update"),
        ("DELETE", _ONE, "remove"),
        ("GET", _ONE, "get"),
        ("HEAD", _ONE, "get"),
        ("PUT", "/document/v1/ns/music/number/7/a/b", "update"),
        ("GET", "/document/v1/", "visit"),
        ("GET", "/document/v1/ns/music/docid", "visit"),
        ("GET", "/document/v1/ns/music/docid/", "visit"),
        ("DELETE", "/document/v1/ns/music/docid/", "remove_all"),
        ("PUT", "/document/v1/ns/music/docid", "update_all"),
        ("POST", "/document/v1/ns/music/docid", "copy"),
        ("BREW", "/document/v1/", "other"),
        ("POST", "/model-evaluation/v1/m/eval", "evaluation"),
        ("GET", "/state/v1/health", "monitoring"),
        ("GET", "/status.html", "monitoring"),
        ("GET", "/", "other"),
        ("GET", "", "other"),
    ],
)
def test_kinds_of_requests(method: str, path: str, kind: str) -> None:
    request = Request(method, path)
    assert kind_of(request) == kind
    metrics = _metrics()
    metrics.observe(answered(), request, Response(200), 1)
    assert [*metrics.by_kind()] == [kind]


def test_requests_of_a_batch_are_counted_as_each_of_them_is() -> None:
    requests = [Request("PUT", _ONE + name, "", {}, b"{}" + bytes(len(name))) for name in ("a", "bc", "d")]
    batch, bodies = KeptAnswers(Client()).batch(requests), [b"first", b"third"]
    together, each = _metrics(), _metrics()
    together.observe_batch(batch, [0, 2], bodies, 2_000_000)
    for number, body in zip((0, 2), bodies, strict=True):
        answer = Response(200, body)
        each.observe(batch.exchanged(number, len(body)), batch.request(number), answer, 2_000_000)
    assert [*together.all()] == [*each.all()]
    assert [*together.by_kind()] == ["update"]


def test_statuses_and_their_dimensions() -> None:
    metrics = _metrics()
    metrics.observe(answered("http2", "https"), Request("POST", _ONE), Response(200), 1)
    metrics.observe(answered("http2", "https"), Request("POST", _ONE), Response(507), 1)
    metrics.observe(answered(), Request("POST", "/search/"), Response(200), 1)
    metrics.observe(answered(), Request("GET", "/status.html"), Response(404), 1)
    dimensions = {"httpMethod": "POST", "protocol": "http2", "requestType": "write", "scheme": "https"}
    search = {"httpMethod": "POST", "protocol": "http1", "requestType": "read", "scheme": "http"}
    status = {"httpMethod": "GET", "protocol": "http1", "requestType": "monitoring", "scheme": "http"}
    once = {"count": 1, "rate": 0.1}
    assert _of(metrics, "http.status.2xx") == {
        tuple({**search, "statusCode": "200"}.items()): once,
        tuple({**dimensions, "statusCode": "200"}.items()): once,
    }
    assert _of(metrics, "http.status.4xx") == {tuple({**status, "statusCode": "404"}.items()): once}
    assert _of(metrics, "http.status.5xx") == {tuple({**dimensions, "statusCode": "507"}.items()): once}
    assert _of(metrics, "http.status.3xx") == {}


def test_what_is_watched_is_there_from_the_start_on() -> None:
    for name in ("http.status.2xx", "http.status.4xx", "http.status.5xx"):
        assert _of(_metrics(), name) == {(): {"count": 0, "rate": 0.0}}


def test_operations_on_documents() -> None:
    metrics = _metrics()
    for status, times in ((200, 3), (400, 1), (412, 2), (507, 1), (500, 1)):
        for _ in range(times):
            metrics.observe(answered(), Request("POST", _ONE, body=b"12345"), Response(status), 2_000_000)
    metrics.observe(answered(), Request("GET", _ONE), Response(404), 1)

    def count(name: str) -> int:
        (values,) = _of(metrics, name).values()
        counted: int = values["count"]
        return counted

    assert (count("httpapi_num_puts"), count("httpapi_succeeded"), count("httpapi_failed")) == (8, 3, 6)
    failures = ("parse_error", "condition_not_met", "not_found", "failed_insufficient_storage", "failed_unknown")
    assert [count(f"httpapi_{name}") for name in failures] == [1, 2, 1, 1, 1]
    feed = {dict(names)["status"]: values["count"] for names, values in _of(metrics, "feed.operations").items()}
    assert feed == {"OK": 3, "REQUEST_ERROR": 3, "SERVER_ERROR": 2}
    latencies = {dict(names)["status"]: values["average"] for names, values in _of(metrics, "feed.latency").items()}
    assert latencies == pytest.approx(dict.fromkeys(feed, 0.002))
    (size,) = _of(metrics, "jdisc.http.request.content_size").values()
    assert size == {"average": 40 / 9, "sum": 40, "count": 9}


@pytest.mark.parametrize("form", ["json", "cbor", "xml", "page", "callback"])
def test_queries_tell_what_they_found(form: str) -> None:
    metrics = _metrics()
    for result in (
        SearchResult(total_count=7, page=[b"{}", b"{}"]),
        SearchResult(total_count=0),
        SearchResult(errors=[SearchError(12, "late")]),
        SearchResult(errors=[SearchError(999, "odd")]),
    ):
        if form in ("xml", "page"):
            result = SearchResult(total_count=result.total_count, errors=result.errors)
            response = respond_xml(result, form, ShownTypes())
        else:
            response = respond(result, "json" if form == "callback" else form, "f" if form == "callback" else "")
        metrics.observe(answered(), Request("GET", "/search/"), response, 1_000_000)
    (found,) = _of(metrics, "totalhits_per_query").values()
    assert (found["sum"], found["max"], found["count"]) == (7, 7, 4)
    (shown,) = _of(metrics, "hits_per_query").values()
    assert shown["sum"] == (0 if form in ("xml", "page") else 2)
    names = ("queries", "failed_queries", "empty_results", "error.timeout", "error.unspecified", "degraded_queries")
    counts = [next(iter(_of(metrics, name).values()))["count"] for name in names]
    assert counts == [4, 2, 3, 1, 1, 0]


def test_clients_cannot_add_ways_of_counting() -> None:
    metrics = _metrics()
    for number in range(1000):
        metrics.observe(answered(), Request(f"BREW{number}", f"/pot/{number}"), Response(405), 1)
    (values,) = _of(metrics, "http.status.4xx").values()
    assert values["count"] == 1000
    assert len(metrics.all()) < 20
