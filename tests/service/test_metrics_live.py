"""The metrics of a running service after a script of requests, over HTTP/1.1 and HTTP/2: every count is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from tests.service.music import write_package
from tests.service.running import RunningService, running_service

Values = dict[tuple[str, ...], float]
_PUTS, _REMOVES, _QUERIES = 7, 2, 5


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    directory = tmp_path_factory.mktemp("service")
    with running_service(directory / "data", str(write_package(directory / "music"))) as service:
        for http2 in (False, True):
            with httpx.Client(http1=not http2, http2=http2, base_url=service.url, timeout=30) as client:
                _load(client)
        yield service


def _load(client: httpx.Client) -> None:
    """The script: puts, of which one is refused; an update; a get of each, one of them of nothing; queries; a visit."""
    for number in range(_PUTS):
        path = f"/document/v1/ns/music/docid/{number}"
        assert client.post(path, json={"fields": {"title": f"Blue {number}", "year": 1957}}).status_code == 200
        assert client.get(path).status_code == 200
    assert client.post("/document/v1/ns/music/docid/9", json={"fields": {"no": 1}}).status_code == 400
    assert client.put("/document/v1/ns/music/docid/1", json={"fields": {"year": {"assign": 1}}}).status_code == 200
    assert client.get("/document/v1/ns/music/docid/none").status_code == 404
    for number in range(_QUERIES):
        yql = f'select * from music where title contains "blue" limit {number + 1}'
        assert client.get("/search/", params={"yql": yql}).status_code == 200
    assert client.get("/search/", params={"yql": "nonsense"}).status_code == 400
    assert client.get("/document/v1/ns/music/docid/").status_code == 200
    for number in range(_REMOVES):
        assert client.delete(f"/document/v1/ns/music/docid/{number}").status_code == 200


def _scraped(url: str, **labels: str) -> dict[str, float]:
    """Name → sum of the samples that have these labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(httpx.get(url + "/prometheus/v1/values", timeout=30).text):
        for sample in family.samples:
            if labels.items() <= sample.labels.items():
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


@pytest.mark.parametrize("protocol", ["http1", "http2"])
def test_counts_of_answers_are_exact(service: RunningService, protocol: str) -> None:
    def count(name: str, **labels: str) -> float:
        return _scraped(service.url, protocol=protocol, **labels).get(name, 0.0)

    reads = {"httpMethod": "GET", "requestType": "read"}
    assert count("http_status_2xx_count", **reads) == _PUTS + _QUERIES + 1
    assert count("http_status_4xx_count", **reads, statusCode="404") == 1
    assert count("http_status_4xx_count", **reads, statusCode="400") == 1
    assert count("http_status_2xx_count", httpMethod="POST", requestType="write") == _PUTS
    assert count("http_status_4xx_count", httpMethod="POST", requestType="write") == 1
    assert count("http_status_2xx_count", httpMethod="PUT") == 1
    assert count("http_status_2xx_count", httpMethod="DELETE") == _REMOVES
    assert count("http_status_5xx_count") == 0


def test_counts_of_operations_and_queries_are_exact(service: RunningService) -> None:
    found = _scraped(service.url)
    expected = {
        "httpapi_num_puts_count": 2 * (_PUTS + 1),
        "httpapi_num_updates_count": 2,
        "httpapi_num_removes_count": 2 * _REMOVES,
        "httpapi_parse_error_count": 2,
        "httpapi_not_found_count": 2,
        "queries_count": 2 * (_QUERIES + 1),
        "failed_queries_count": 2,
        "error_invalid_query_parameter_count": 2,
        "hits_per_query_sum": 2 * sum(range(1, _QUERIES + 1)),
        "totalhits_per_query_sum": 2 * _QUERIES * _PUTS,
        "content_proton_documentdb_feeding_commit_operations_sum": 2 * (_PUTS + 1 + _REMOVES),
        "content_proton_documentdb_documents_active_last": _PUTS - _REMOVES,
        "content_proton_transactionlog_entries_last": 2 * (_PUTS + 1 + _REMOVES) + 1,
        "vespa_container_status": 1,
        "vespa_searchnode_status": 1,
    }
    assert {name: found.get(name) for name in expected} == expected
    by_kind = {
        "query": 2 * (_QUERIES + 1),
        "put": 2 * (_PUTS + 1),
        "get": 2 * (_PUTS + 1),
        "update": 2,
        "remove": 2 * _REMOVES,
        "visit": 2,
    }
    counts = {kind: _scraped(service.url, kind=kind)["paperwasp_request_duration_seconds_count"] for kind in by_kind}
    assert counts == by_kind


def test_all_that_vespa_shows_by_default_is_there(service: RunningService) -> None:
    """But for what is not measured here: see docs/reference/metrics.md."""
    values = httpx.get(service.url + "/metrics/v1/values?consumer=default", timeout=30).json()["services"]
    names = {name for each in values for packet in each["metrics"] for name in packet["values"]}
    for name in (
        "http.status.2xx.rate",
        "mem.heap.free.average",
        "query_latency.95percentile",
        "content.proton.resource_usage.disk.average",
        "content.proton.documentdb.documents.total.max",
        "content.proton.documentdb.disk_usage.last",
        "cluster-controller.up.count.last",
    ):
        assert name in names


def test_connections_and_bytes(service: RunningService) -> None:
    port = service.url.rpartition(":")[2]
    before = _scraped(service.url, serverPort=port)
    body = b'{"fields":{"title":"%b"}}' % (b"long " * 2000)
    with httpx.Client(base_url=service.url, timeout=30) as client:
        assert client.post("/document/v1/ns/music/docid/long", content=body).status_code == 200
        after = _scraped(service.url, serverPort=port)
        assert after["serverNumOpenConnections_last"] == before["serverNumOpenConnections_last"] + 1
        client.delete("/document/v1/ns/music/docid/long")
    assert after["serverNumConnections_count"] == before["serverNumConnections_count"] + 2
    assert len(body) < after["serverBytesReceived_count"] - before["serverBytesReceived_count"] < len(body) + 2000
    assert after["serverBytesSent_count"] > before["serverBytesSent_count"]


def test_the_config_server_has_the_same_interfaces(service: RunningService) -> None:
    deployed = _scraped(service.config_url)
    assert deployed["configserver_activeApplications_last"] == 1
    assert deployed["configserver_requests_count"] >= 0
    assert deployed["vespa_configserver_status"] == 1
    (node,) = httpx.get(service.config_url + "/metrics/v2/values").json()["nodes"]
    assert [each["name"] for each in node["services"]] == ["vespa.configserver"]
    assert httpx.get(service.config_url + "/state/v1/metrics?format=prometheus").text.startswith("# HELP configserver")


@pytest.mark.parametrize("path", ["/prometheus/v1/values", "/state/v1/metrics/histograms"])
def test_openmetrics_takes_the_histograms(service: RunningService, path: str) -> None:
    """The stricter form has the same histograms, where what Vespa's form alone has (its times) is left out."""
    text = httpx.get(service.url + path, timeout=30).text
    lines = [line for line in text.splitlines() if "paperwasp_request_duration_seconds" in line]
    (family,) = openmetrics_families("\n".join([*lines, "# EOF", ""]))  # type: ignore[no-untyped-call]
    buckets: dict[str, list[float]] = {}
    for sample in family.samples:
        if sample.name.endswith("_bucket"):
            buckets.setdefault(sample.labels["kind"], []).append(sample.value)
    assert {"query", "put", "monitoring"} <= buckets.keys()
    assert all(counts == sorted(counts) for counts in buckets.values())


def test_every_metric_is_explained(service: RunningService) -> None:
    for url in (service.url, service.config_url):
        text = httpx.get(url + "/prometheus/v1/values", timeout=30).text
        helps = [line.split(" ", 3)[2:] for line in text.splitlines() if line.startswith("# HELP")]
        assert len(helps) > 50 and [each for each in helps if not each[1:] or not each[1].strip()] == []


def _names(values: Mapping[str, Any]) -> set[str]:
    return {each["name"] for each in values["metrics"]["values"]}


def test_state_has_every_metric_that_the_others_have(service: RunningService) -> None:
    state = _names(httpx.get(service.url + "/state/v1/metrics", timeout=30).json())
    (node,) = httpx.get(service.url + "/metrics/v2/values", timeout=30).json()["nodes"]
    shown = {
        name.rpartition(".")[0] for each in node["services"] for packet in each["metrics"] for name in packet["values"]
    }
    assert shown == state
