"""What the service is: addresses, interfaces, formats, health, versions; and that it sends nothing by itself."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from cbor2 import loads

from paperwasp.cli.serve import serve
from tests import web
from tests.conformance.conftest import Served
from tests.conformance.deploying import SMALL, application_url, ok, tenant_url
from tests.service.in_process import ZIP
from tests.service.music import package
from tests.service.running import running_service

PORTS = ("url", "config_url")


def test_the_default_ports() -> None:
    parameters = inspect.signature(serve).parameters
    assert [parameters[name].default for name in ("port", "config_port")] == [8080, 19071]
    assert parameters["host"].default == "127.0.0.1"  # nobody from outside reaches either, unless that is asked for


def test_documents_of_schemas_are_stored_and_ranked(served: Served) -> None:
    root = served.root("select * from music where userQuery()", query="blue")
    assert [each["fields"]["sddocname"] for each in root["children"]] == ["music", "music"]
    scores = [each["relevance"] for each in root["children"]]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0


def test_the_interfaces(served: Served) -> None:
    """Each is at its address, and at that of no other."""
    paths = {
        "/application/v2/tenant/": "config_url",
        "/document/v1/albums/music/docid/1": "url",
        "/search/?yql=select+*+from+music+where+true": "url",
        "/model-evaluation/v1/": "url",
    }
    for path, port in paths.items():
        found = {name: web.get(getattr(served, name) + path).status_code for name in PORTS}
        assert found == {name: 200 if name == port else 404 for name in PORTS}


@pytest.mark.parametrize(
    ("port", "path"),
    [
        ("config_url", "/application/v2/tenant/"),
        ("url", "/document/v1/albums/music/docid/1?fieldSet=year"),
        ("url", "/search/?yql=select+year+from+music+where+year+=+1957&timeout=20s"),
        ("url", "/model-evaluation/v1/"),
        ("url", "/state/v1/version"),
        ("config_url", "/state/v1/version"),
    ],
)
def test_answers_are_json_and_on_demand_cbor(served: Served, port: str, path: str) -> None:
    url = getattr(served, port) + path
    expected = web.get(url)
    assert (expected.status_code, expected.headers["content-type"].partition(";")[0]) == (200, "application/json")
    for accept in ("application/cbor", "application/cbor, application/json;q=0.5"):
        answer = web.get(url, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/cbor")
        assert loads(answer.content) == expected.json()
    for accept in ("application/json", "*/*", "application/json, application/cbor;q=0.5"):
        answer = web.get(url, headers={"Accept": accept})
        assert answer.json() == expected.json()


def test_health(served: Served) -> None:
    for port in PORTS:
        answer = web.get(getattr(served, port) + "/state/v1/health")
        assert (answer.status_code, answer.json()["status"]["code"]) == (200, "up")
        assert isinstance(answer.json()["time"], int)


def metrics(url: str) -> dict[str, list[dict[str, Any]]]:
    """Return the values of each metric of `/state/v1/metrics`, by name."""
    answer = web.get(f"{url}/state/v1/metrics")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "application/json")
    found: dict[str, list[dict[str, Any]]] = {}
    for each in answer.json()["metrics"]["values"]:
        found.setdefault(each["name"], []).append(each)
    return found


def test_metrics_as_json(served: Served) -> None:
    """Each answer is counted, by its hundreds, on either port."""
    for url, good in ((served.url, "/state/v1/version"), (served.config_url, "/application/v2/tenant/")):
        assert web.get(url + good).status_code == 200
        assert web.get(url + "/nothing/there").status_code == 404
        before = metrics(url)
        for _ in range(3):
            web.get(url + good)
            web.get(url + "/nothing/there")
        after = metrics(url)
        for name, least in (("http.status.2xx", 3), ("http.status.4xx", 3)):
            counts = [sum(each["values"]["count"] for each in of[name]) for of in (before, after)]
            assert counts[1] - counts[0] >= least


def test_failures_are_counted(served: Served) -> None:
    def failures() -> int:
        return sum(each["values"]["count"] for each in metrics(served.url).get("http.status.5xx", []))

    before = failures()
    assert served.search(timeout="0ms").status_code == 504
    assert failures() == before + 1


def test_the_latency_of_requests_is_a_metric(served: Served) -> None:
    web.get(served.url + "/state/v1/version")
    values = metrics(served.url)["http.request.latency"][0]["values"]
    assert values["count"] > 0 and 0 < values["average"] <= values["max"]


def test_metrics_as_text(served: Served) -> None:
    web.get(served.url + "/state/v1/version")
    web.get(served.url + "/nothing/there")
    answer = web.get(served.url + "/prometheus/v1/values")
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, "text/plain")
    names = {line.partition("{")[0].partition(" ")[0] for line in answer.text.splitlines() if not line.startswith("#")}
    for name in ("http_status_2xx", "http_status_4xx", "http_request_latency"):
        assert any(each.startswith(name) for each in names), sorted(names)


def test_versions_in_paths(served: Served) -> None:
    assert web.get(served.config_url + "/application/v2/tenant/").status_code == 200
    for port, path in (
        ("config_url", "/application/v1/tenant/"),
        ("config_url", "/application/v3/tenant/"),
        ("url", "/document/v2/albums/music/docid/1"),
        ("url", "/model-evaluation/v2/"),
    ):
        assert web.get(getattr(served, port) + path).status_code == 404
    assert served.search().status_code == 200  # without a version in its path


def test_the_version_is_that_of_the_active_application(served: Served) -> None:
    current = ok(web.get(served.url + "/state/v1/version"))["version"]
    assert ok(web.get(application_url(served)))["versions"][0]["serviceVersion"] == current
    assert ok(web.get(served.config_url + "/state/v1/version"))["version"] == current


def test_nothing_is_sent_that_was_not_asked_for(served: Served) -> None:
    """There are no events: no interface takes an address to call, and no package a subscription."""
    for path in ("/events", "/subscriptions", "/webhooks", "/events/v1/", "/notifications"):
        for port in PORTS:
            assert web.get(getattr(served, port) + path).status_code == 404
    session = web.post(f"{tenant_url(served)}/session", params={"from": application_url(served)})
    assert session.status_code == 200
    assert not any("callback" in name or "notif" in name for name in session.json())


def test_it_runs_in_4_gigabytes(tmp_path: Path) -> None:
    """The process may have no more memory than that, all that is mapped counted; it needs much less."""
    most = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))"
    with running_service(tmp_path / "data", first=most) as service:
        deployed = web.post(
            service.config_url + "/application/v2/tenant/default/prepareandactivate",
            content=package(SMALL),
            headers=ZIP,
        )
        assert ok(deployed)["activated"] is True
        for number in range(50):
            url = f"{service.url}/document/v1/ns/note/docid/{number}"
            assert web.post(url, json={"fields": {"text": "one of fifty", "stars": number}}).status_code == 200
        query = {"yql": "select * from note where text contains 'fifty'", "timeout": "20s"}
        assert ok(web.get(f"{service.url}/search/", params=query))["root"]["fields"] == {"totalCount": 50}
