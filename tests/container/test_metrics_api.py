"""The metrics of an application as JSON and as text: names, services, dimensions, and what is told while a node fails.

Authority: Vespa's pages on metrics/v2 and prometheus/v1, and its `MetricsV2Handler` and `PrometheusUtil`.
"""

from __future__ import annotations

import asyncio
import socket
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from paperwasp.application.model import ApplicationModel
from paperwasp.application.services_model import Container
from paperwasp.base.env import Environment
from paperwasp.base.measurements import gauge
from paperwasp.base.version import VESPA_VERSION
from paperwasp.container.app import ContainerApp, error_response
from paperwasp.container.content_metrics import ContentMetrics
from paperwasp.container.state import Running
from paperwasp.coordination.messages.documents import StatusResponse
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import Request, Response
from tests.exchanges import answered, whole

_ANSWERED = {
    "httpMethod": "GET",
    "protocol": "http1",
    "requestType": "read",
    "scheme": "http",
    "statusCode": "200",
}
_START_NS = 1_763_633_000_123_000_000


def _app() -> ContainerApp:
    """A container that answered two requests with 200 in 2 and 4 ms, ten seconds after its start."""
    times = iter((_START_NS,))
    environment = Environment(time_ns=lambda: next(times, _START_NS + 10 * 10**9))
    app = ContainerApp(EmbeddedMessenger(), environment=environment)
    for elapsed_ns in (2_000_000, 4_000_000):
        app.metrics.observe(answered(), Request("GET", "/search/"), Response(200), elapsed_ns)
    return app


def _ask(app: ContainerApp, path: str, method: str = "GET", query: str = "") -> Response:
    return whole(asyncio.run(app.handle(Request(method, path, query))))


def _nodes(app: ContainerApp) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = orjson.loads(_ask(app, "/metrics/v2/values").body)["nodes"]
    return nodes


def test_values_of_a_container() -> None:
    (node,) = _nodes(_app())
    assert (node["hostname"], node["role"]) == (socket.gethostname(), f"hosts/{socket.gethostname()}")
    (service,) = node["services"]
    assert (service["name"], service["timestamp"]) == ("vespa.container", _START_NS // 10**9 + 10)
    assert service["status"] == {"code": "up", "description": "Data collected successfully"}
    by_dimensions = {tuple(sorted(packet["dimensions"].items())): packet["values"] for packet in service["metrics"]}
    answers = {**_ANSWERED, "vespaVersion": VESPA_VERSION}
    assert by_dimensions[tuple(sorted(answers.items()))] == {"http.status.2xx.count": 2, "http.status.2xx.rate": 0.2}
    latencies = by_dimensions[(("vespaVersion", VESPA_VERSION),)]
    for name in ("http.request.latency", "jdisc.http.latency", "query_latency"):
        shown = {
            kind: latencies[f"{name}.{kind}"] for kind in ("average", "sum", "count", "last", "max", "min", "rate")
        }
        assert shown == {"average": 3, "sum": 6, "count": 2, "last": 4, "max": 4, "min": 2, "rate": 0.2}
        assert 2 < latencies[f"{name}.95percentile"] <= latencies[f"{name}.99percentile"] <= 4
    assert (latencies["queries.count"], latencies["failed_queries.count"]) == (2, 0)


def test_text_for_prometheus() -> None:
    response = _ask(_app(), "/prometheus/v1/values")
    assert (response.status, response.content_type) == (200, "text/plain; version=0.0.4")
    labels = {**_ANSWERED, "vespaVersion": VESPA_VERSION, "vespa_service": "vespa_container"}
    shown = ",".join(f'{name}="{text}"' for name, text in sorted(labels.items()))
    sample = f"http_status_2xx_rate{{{shown}}} 0.2 1763633010000"
    lines = response.body.decode().splitlines()
    assert lines[lines.index(sample) - 2 : lines.index(sample)] == [
        "# HELP http_status_2xx_rate Answers with a status of 200 to 299; a second, in the last minutes",
        "# TYPE http_status_2xx_rate untyped",
    ]
    assert "vespa_container_status 1.0 1763633010000" in lines
    comments = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(comments) == len(set(comments))


def test_prometheus_client_reads_its_own_text() -> None:
    families = {
        family.name: family
        for family in text_string_to_metric_families(_ask(_app(), "/prometheus/v1/values").body.decode())
    }
    assert families["http_request_latency_sum"].samples[0].value == 6
    histogram = families["paperwasp_request_duration_seconds"]
    assert histogram.type == "histogram"
    # Others are of the whole process: what tests before this one have embedded.
    queries = (sample for sample in histogram.samples if sample.labels.get("kind") == "query")
    counts = {sample.labels["le"]: sample.value for sample in queries if sample.name.endswith("_bucket")}
    assert {le: counts[le] for le in ("0.001", "0.0025", "0.005", "50.0", "+Inf")} == {
        "0.001": 0,
        "0.0025": 1,
        "0.005": 2,
        "50.0": 2,
        "+Inf": 2,
    }
    assert families["process_resident_memory_bytes"].samples[0].value > 0


def test_histograms_alone_and_the_text_of_state() -> None:
    app = _app()
    histograms = _ask(app, "/state/v1/metrics/histograms").body.decode()
    assert 'paperwasp_request_duration_seconds_count{kind="query"} 2.0' in histograms
    text = _ask(app, "/state/v1/metrics", query="format=prometheus").body.decode()
    labels = ",".join(f'{name}="{value}"' for name, value in sorted(_ANSWERED.items()))
    assert f"http_status_2xx_count{{{labels}}} 2.0 1763633010000" in text.splitlines()
    with pytest.raises(InvalidInput, match="Illegal value 'xml' of 'format'"):
        _ask(app, "/state/v1/metrics", query="format=xml")


def test_state_shows_the_same_values() -> None:
    shown = orjson.loads(_ask(_app(), "/state/v1/metrics").body)
    assert shown["metrics"]["snapshot"] == {"from": 1763633000.123, "to": 1763633010.123}
    (statuses,) = [metric for metric in shown["metrics"]["values"] if metric["name"] == "http.status.2xx"]
    assert statuses == {"name": "http.status.2xx", "values": {"count": 2, "rate": 0.2}, "dimensions": _ANSWERED}


def test_the_default_consumer_has_a_part() -> None:
    app = _app()
    services = orjson.loads(_ask(app, "/metrics/v1/values", query="consumer=default").body)["services"]
    names = {name for packet in services[0]["metrics"] for name in packet["values"]}
    assert {"http.status.2xx.rate", "queries.rate", "query_latency.99percentile"} < names
    assert not {"http.status.2xx.count", "query_latency.last"} & names
    everything = orjson.loads(_ask(app, "/metrics/v1/values", query="consumer=vespa").body)["services"]
    (node,) = _nodes(app)
    assert [_shape(service) for service in everything] == [_shape(service) for service in node["services"]]


def _shape(service: dict[str, Any]) -> dict[str, Any]:
    """A service without its values, some of which change while they are read."""
    return {**service, "metrics": [{**each, "values": sorted(each["values"])} for each in service["metrics"]]}


def test_metrics_of_a_content_cluster_are_of_its_services() -> None:
    class _Content:
        async def values(self, cluster_ids: object) -> list[dict[str, Any]]:
            names = ("content.proton.resource_usage.disk", "cluster-controller.up.count")
            return [{"name": name, "values": {"last": 0.5}, "dimensions": {"clusterid": "c"}} for name in names]

        async def faults(self, cluster_ids: object) -> list[str]:
            return ["content cluster 'c': no room"]

    app = _app()
    container = Container("default", search=True)
    model = ApplicationModel((container,), (), MappingProxyType({}), (), "abc")
    app.configure(Running(7, model, container, "shop"))
    assert "/metrics/v2/*" in _ask(app, "/").body.decode()
    app.state.content_metrics = _Content()  # type: ignore[assignment]
    services = {service["name"]: service for service in _nodes(app)[0]["services"]}
    assert services.keys() == {"vespa.container", "vespa.searchnode", "vespa.container-clustercontroller"}
    (disk,) = services["vespa.searchnode"]["metrics"]
    assert disk["values"] == {"content.proton.resource_usage.disk.last": 0.5}
    assert disk["dimensions"] == {"clusterid": "c", "vespaVersion": VESPA_VERSION}
    assert services["vespa.container"]["status"] == {"code": "down", "description": "content cluster 'c': no room"}
    text = _ask(app, "/prometheus/v1/values/").body.decode()
    assert 'vespa_service="vespa_container_clustercontroller"} 0.5 ' in text


def test_what_a_content_cluster_says_of_itself_are_metrics() -> None:
    class _Cluster(EmbeddedMessenger):
        def request(self, address: str, message: object) -> asyncio.Future[Any]:
            assert address == "content/c"
            answer = asyncio.get_running_loop().create_future()
            sizes = {"attributes": 4096, "store": 7}
            metrics = [gauge("content.proton.documentdb.documents.active", 3, documenttype="music")]
            answer.set_result(StatusResponse(3, 1, sizes, metrics))
            return answer

    shown = asyncio.run(ContentMetrics(_Cluster(), "content/{}".format).values(["c"]))
    values = {"average": 3, "sum": 3, "count": 1, "last": 3, "max": 3, "min": 3}
    dimensions = {"clusterid": "c", "documenttype": "music"}
    name = "content.proton.documentdb.documents.active"
    assert shown == [{"name": name, "values": values, "dimensions": dimensions}]


@pytest.mark.parametrize("root", ["/metrics/v1", "/metrics/v2", "/prometheus/v1"])
def test_what_there_is_below_a_root(root: str) -> None:
    app = _app()
    for path in (root, root + "/"):
        shown = {"resources": [{"url": f"http://localhost{root}/values"}]}
        assert orjson.loads(_ask(app, path).body) == shown
    with pytest.raises(NotFound, match="No content at given path"):
        _ask(app, root + "/other")
    assert error_response(Request("GET", root), NotFound("No content")).status == 404
    assert _ask(app, root + "/values", "POST").status == 405
