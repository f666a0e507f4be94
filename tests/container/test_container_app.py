"""The container's face without sockets: which interface a path is for, state before and after, metrics, errors."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import Any

import cbor2
import orjson
import pytest

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.application.services_model import Container
from paperwasp.base.records import replace
from paperwasp.container.app import ContainerApp, error_response
from paperwasp.container.state import Running
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.messages import Request, Response
from paperwasp.http.pretty_json import pretty_json
from tests.exchanges import answered, whole

DOCUMENT = "/document/v1/ns/music/docid/1"
BOTH = Container("default", search=True, document_api=True)


def running(container: Container) -> Running:
    return Running(7, ApplicationModel((container,), (), MappingProxyType({}), (), "abc"), container, "shop")


def ask(app: ContainerApp, path: str, method: str = "GET") -> tuple[int, Any]:
    response = whole(asyncio.run(app.handle(Request(method, path))))
    is_json = response.content_type.startswith("application/json")
    return response.status, orjson.loads(response.body) if is_json else response.body.decode()


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("/ApplicationStatus", 503, 200),
        ("/", 503, 200),
        ("/status.html", 404, 200),
        ("/state/v1/health", 200, 200),
        ("/state/v1/version", 200, 200),
        ("/search/", 503, 400),
        (DOCUMENT, 503, 404),
        ("/nothing/here", 404, 404),
    ],
)
def test_answers_before_and_after_an_application(path: str, before: int, after: int) -> None:
    app = ContainerApp(EmbeddedMessenger())
    assert ask(app, path)[0] == before
    app.configure(running(BOTH))
    assert ask(app, path)[0] == after
    app.configure(None)
    assert ask(app, path)[0] == before


def test_health_says_whether_there_is_an_application() -> None:
    app = ContainerApp(EmbeddedMessenger())
    assert ask(app, "/state/v1/health")[1]["status"] == {"code": "initializing"}
    app.configure(running(BOTH))
    assert ask(app, "/state/v1/health")[1]["status"] == {"code": "up"}
    assert ask(app, "/state/v1/config")[1]["config"]["generation"] == 7
    assert ask(app, "/ApplicationStatus")[1]["application"]["meta"] == {
        "name": "shop",
        "generation": 7,
        "checksum": "abc",
    }


def test_only_what_the_application_asks_for_is_bound() -> None:
    app = ContainerApp(EmbeddedMessenger())
    app.configure(running(Container("default", search=True)))
    assert ask(app, DOCUMENT)[0] == 404
    assert "DocumentV1ApiHandler" not in str(ask(app, "/")[1])
    app.configure(running(Container("default", document_api=True)))
    assert ask(app, "/search/")[0] == 404
    handlers = ask(app, "/")[1]["handlers"]
    documents = next(handler for handler in handlers if handler["class"].endswith("DocumentV1ApiHandler"))
    assert documents["serverBindings"] == ["http://*/document/v1/*", "http://*/document/v1/*/"]


def test_metrics_count_answers_and_times() -> None:
    app = ContainerApp(EmbeddedMessenger())
    for status in (200, 200, 404, 503):
        app.metrics.observe(answered(), Request("POST", DOCUMENT), Response(status), 2_000_000)
    app.metrics.observe(answered(), Request("POST", "/search/"), Response(200), 4_000_000)
    values = ask(app, "/state/v1/metrics")[1]["metrics"]["values"]
    statuses = [each for each in values if each["name"].startswith("http.status")]
    counts = {(v["name"], v["dimensions"]["requestType"]): v["values"]["count"] for v in statuses}
    assert counts == {
        ("http.status.2xx", "write"): 2,
        ("http.status.2xx", "read"): 1,
        ("http.status.4xx", "write"): 1,
        ("http.status.5xx", "write"): 1,
    }
    latencies = {v["name"]: v["values"] for v in values if not v["dimensions"]}
    assert latencies["jdisc.http.latency"] == latencies["http.request.latency"]
    assert latencies["http.request.latency"]["average"] == pytest.approx(2.4)
    assert latencies["http.request.latency"]["max"] == 4.0


def test_errors_before_a_handler_have_the_shape_of_its_interface() -> None:
    error = TooLarge("too much")
    document = error_response(Request("POST", DOCUMENT), error)
    assert (document.status, orjson.loads(document.body)) == (413, {"pathId": DOCUMENT, "message": "too much"})
    search = error_response(Request("POST", "/search/"), error)
    assert search.status == 413
    assert orjson.loads(search.body)["root"]["errors"][0]["message"] == "too much"
    assert orjson.loads(error_response(Request("GET", "/x"), error).body) == {"message": "too much"}


def test_the_size_of_a_body_is_limited_as_the_container_says() -> None:
    app = ContainerApp(EmbeddedMessenger())
    assert app.body_limit_bytes(DOCUMENT) == limits.HTTP_DOCUMENT_BODY_BYTES == 100 * 2**20
    assert app.body_limit_bytes("/search/") == limits.HTTP_QUERY_BODY_BYTES
    app.configure(running(BOTH))
    assert app.body_limit_bytes(DOCUMENT) == limits.HTTP_DOCUMENT_BODY_BYTES
    app.configure(running(replace(BOTH, max_document_size_bytes=2**20)))
    assert app.body_limit_bytes(DOCUMENT) == 2**20
    assert app.body_limit_bytes("/search/") == limits.HTTP_QUERY_BODY_BYTES


@pytest.mark.parametrize("path", [DOCUMENT, "/search/", "/nothing", "/state/v1/health"])
def test_errors_and_answers_are_cbor_for_who_prefers_it(path: str) -> None:
    app = ContainerApp(EmbeddedMessenger())
    plain = asyncio.run(app.handle(Request("GET", path)))
    answer = asyncio.run(app.handle(Request("GET", path, headers={"accept": "application/cbor"})))
    assert isinstance(plain, Response) and isinstance(answer, Response)
    assert answer.status == plain.status
    if path != "/search/":  # where there is no application, nobody reads what the client accepts
        assert answer.content_type == "application/cbor"
        assert cbor2.loads(answer.body).keys() == orjson.loads(plain.body).keys()
    refused = error_response(Request("POST", path, headers={"accept": "application/cbor"}), TooLarge("too much"))
    assert (refused.status, refused.content_type) == (413, "application/cbor")
    assert "too much" in str(cbor2.loads(refused.body))


def test_a_body_that_is_not_cbor_is_refused() -> None:
    app = ContainerApp(EmbeddedMessenger())
    with pytest.raises(InvalidInput, match="is not CBOR"):
        asyncio.run(app.handle(Request("POST", DOCUMENT, headers={"content-type": "application/cbor"}, body=b"{}")))


def test_other_methods_are_told_what_there_is() -> None:
    status, content = ask(ContainerApp(EmbeddedMessenger()), "/status.html", "POST")
    assert (status, content) == (405, {"error": "Method 'POST' is not allowed at '/status.html'"})


def test_state_pages_are_printed_as_vespa_prints_them() -> None:
    """Jackson's default pretty printer: scripts wait for the very text `"code" : "up"`."""
    app = ContainerApp(EmbeddedMessenger())
    app.configure(running(BOTH))
    answer = asyncio.run(app.handle(Request("GET", "/state/v1/health")))
    assert isinstance(answer, Response)
    text = answer.body.decode()
    assert '\n  "status" : {\n    "code" : "up"\n  },\n  "metrics" : {\n    "snapshot" : {\n      "from" : ' in text
    assert '\n    "values" : [ {\n      "name" : "requestsPerSecond",\n      "values" : {\n        "count" : 0,' in text
    metrics = orjson.loads(text)["metrics"]
    assert metrics["snapshot"]["from"] <= metrics["snapshot"]["to"]
    assert [metric["name"] for metric in metrics["values"]] == ["requestsPerSecond", "latencySeconds"]
    assert metrics["values"][1]["values"]["min"] == 0.0


def test_pretty_json() -> None:
    value = {"a": [], "b": {}, "c": [1, {"d": None}], "é": 'x"', "f": [[True]]}
    expected = [
        "{", '  "a" : [ ],', '  "b" : { },', '  "c" : [ 1, {', '    "d" : null', "  } ],", '  "é" : "x\\"",',
        '  "f" : [ [ true ] ]', "}",
    ]  # fmt: skip
    assert pretty_json(value).splitlines() == expected
    assert orjson.loads(pretty_json(value)) == value
