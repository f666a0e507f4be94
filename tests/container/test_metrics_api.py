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

from paperwasp.application.model import ApplicationModel
from paperwasp.application.services_model import Container
from paperwasp.cluster.messenger import EmbeddedMessenger
from paperwasp.container.app import ContainerApp, error_response
from paperwasp.container.content_metrics import ContentMetrics
from paperwasp.container.state import Running
from paperwasp.content.messages import StatusResponse
from paperwasp.env import Environment
from paperwasp.errors import NotFound
from paperwasp.http.messages import Request, Response
from paperwasp.http.prometheus import Sample, prometheus_text
from paperwasp.version import VESPA_VERSION
from tests.responses import whole

_START_NS = 1_763_633_000_123_000_000


def _app() -> ContainerApp:
    """A container that answered two requests with 200 in 2 and 4 ms, ten seconds after its start."""
    times = iter((_START_NS,))
    environment = Environment(time_ns=lambda: next(times, _START_NS + 10 * 10**9))
    app = ContainerApp(EmbeddedMessenger(), environment=environment)
    for elapsed_ns in (2_000_000, 4_000_000):
        app.metrics.observe(Request("GET", "/search/"), 200, elapsed_ns)
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
    answers = {"httpMethod": "GET", "requestType": "read", "statusCode": "200", "vespaVersion": VESPA_VERSION}
    assert by_dimensions[tuple(sorted(answers.items()))] == {"http.status.2xx.count": 2, "http.status.2xx.rate": 0.2}
    latencies = by_dimensions[(("vespaVersion", VESPA_VERSION),)]
    for name in ("http.request.latency", "jdisc.http.latency"):
        assert latencies[f"{name}.average"] == 3.0
        assert latencies[f"{name}.max"] == 4.0
    assert len(by_dimensions) == 2


def test_text_for_prometheus() -> None:
    response = _ask(_app(), "/prometheus/v1/values")
    assert (response.status, response.content_type) == (200, "text/plain; version=0.0.4")
    labels = f'httpMethod="GET",requestType="read",statusCode="200",vespaVersion="{VESPA_VERSION}"'
    sample = f'http_status_2xx_rate{{{labels},vespa_service="vespa_container"}} 0.2 1763633010000'
    lines = response.body.decode().splitlines()
    assert lines[lines.index(sample) - 2 : lines.index(sample)] == [
        "# HELP http_status_2xx_rate",
        "# TYPE http_status_2xx_rate untyped",
    ]
    comments = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(comments) == len(set(comments)) == 2 + 2 * 7


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
    app._state.content_metrics = _Content()  # type: ignore[assignment]
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
            answer.set_result(StatusResponse(3, 1, sizes, {"content.proton.resource_usage.disk": 0.5}))
            return answer

    shown = asyncio.run(ContentMetrics(_Cluster(), "content/{}".format).values(["c"]))
    assert all(metric["dimensions"] == {"clusterid": "c"} for metric in shown)
    assert {metric["name"]: metric["values"] for metric in shown} == {
        "content.proton.documentdb.documents.active": {"last": 3.0, "average": 3.0},
        "content.proton.documentdb.attribute.memory_usage.allocated_bytes": {"last": 4096.0, "average": 4096.0},
        "content.proton.resource_usage.disk": {"last": 0.5, "average": 0.5},
    }


@pytest.mark.parametrize("root", ["/metrics/v2", "/prometheus/v1"])
def test_what_there_is_below_a_root(root: str) -> None:
    app = _app()
    for path in (root, root + "/"):
        shown = {"resources": [{"url": f"http://localhost{root}/values"}]}
        assert orjson.loads(_ask(app, path).body) == shown
    with pytest.raises(NotFound, match="No content at given path"):
        _ask(app, root + "/other")
    assert error_response(Request("GET", root), NotFound("No content")).status == 404
    assert _ask(app, root + "/values", "POST").status == 405
    assert _ask(app, root + "/values", query="consumer=vespa").body == _ask(app, root + "/values").body


def test_names_and_labels_of_samples() -> None:
    samples = [Sample("a.b-c", {"x.y": 'a"\\\n'}, 1, 5), Sample("d", {}, 2.5, 6), Sample("a.b-c", {}, 3, 7)]
    assert prometheus_text(samples) == (
        '# HELP a_b_c\n# TYPE a_b_c untyped\na_b_c{x_y="a\\"\\\\\\n"} 1.0 5\na_b_c{} 3.0 7\n'
        "# HELP d\n# TYPE d untyped\nd{} 2.5 6\n"
    )
