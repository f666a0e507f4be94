"""The metrics of an application for who collects them: `/metrics/v2/values` as JSON, `/prometheus/v1/values` as text.

Both show what `/state/v1/metrics` shows, as Vespa's metrics proxy does: one value a name (`http.status.2xx.rate`),
sorted by the service that it is of. All runs in one process here, so there is one node, and no port of a proxy.

Vespa: https://docs.vespa.ai/en/reference/api/metrics-v2.html, https://docs.vespa.ai/en/reference/api/prometheus-v1.html
Differs: there are no sets of metrics: whatever `consumer` says, all metrics are shown.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from paperwasp.errors import NotFound
from paperwasp.http.messages import Request, Response, json_response, text_response
from paperwasp.http.pretty_json import pretty_response
from paperwasp.http.prometheus import PROMETHEUS, Sample, prometheus_text
from paperwasp.version import VESPA_VERSION

if TYPE_CHECKING:
    from paperwasp.container.state import StateApi
    from paperwasp.env import Environment
    from paperwasp.http.routing import Router

_CONTAINER: Final = "vespa.container"
_SERVICES: Final = {"content.": "vespa.searchnode", "cluster-controller.": "vespa.container-clustercontroller"}
"""What the name of a metric begins with → the service of Vespa that has it; all others are the container's."""

_Values = dict[str, float]
_Packets = dict[str, dict[tuple[tuple[str, str], ...], _Values]]
"""Service → dimensions → the values that have these."""


class MetricsApi:
    """Handlers of the two interfaces. They wait for the content clusters, as `/state/v1/metrics` does."""

    def __init__(self, state: StateApi, environment: Environment) -> None:
        self._state = state
        self._environment = environment

    def bind(self, router: Router) -> None:
        for root, values in (("/metrics/v2", self.values), ("/prometheus/v1", self.text)):
            for end in ("", "/"):
                router.add("GET", root + end, self.resources)
                router.add("GET", f"{root}/values{end}", values)
            router.add("GET", root + "/{rest...}", self.unknown)

    async def resources(self, request: Request, names: Mapping[str, str]) -> Response:
        url = request.url.removesuffix("/")
        return pretty_response(200, {"resources": [{"url": f"{url}/values"}]})

    async def values(self, request: Request, names: Mapping[str, str]) -> Response:
        packets = _packets(await self._state.values())
        services = [_service(name, by_dimensions, self._now()) for name, by_dimensions in packets.items()]
        status = await self._state.status()
        if status["code"] == "down":
            for service in services:
                service["status"] = {"code": "down", "description": status["message"]}
        host = socket.gethostname()
        return json_response(200, {"nodes": [{"hostname": host, "role": f"hosts/{host}", "services": services}]})

    async def text(self, request: Request, names: Mapping[str, str]) -> Response:
        packets = _packets(await self._state.values())
        return text_response(200, prometheus_text(_samples(packets, self._now() * 1000)), PROMETHEUS)

    async def unknown(self, request: Request, names: Mapping[str, str]) -> Response:
        raise NotFound("No content at given path")

    def _now(self) -> int:
        """Seconds since 1970."""
        return self._environment.time_ns() // 10**9


def _packets(metrics: list[dict[str, Any]]) -> _Packets:
    packets: _Packets = {_CONTAINER: {}}
    for metric in metrics:
        name: str = metric["name"]
        service = next((there for prefix, there in _SERVICES.items() if name.startswith(prefix)), _CONTAINER)
        dimensions = (*metric["dimensions"].items(), ("vespaVersion", VESPA_VERSION))
        values = packets.setdefault(service, {}).setdefault(dimensions, {})
        values.update((f"{name}.{kind}", value) for kind, value in metric["values"].items())
    return packets


def _service(name: str, by_dimensions: Mapping[tuple[tuple[str, str], ...], _Values], now: int) -> dict[str, Any]:
    metrics = [{"values": values, "dimensions": dict(dimensions)} for dimensions, values in by_dimensions.items()]
    status = {"code": "up", "description": "Data collected successfully"}
    return {"name": name, "timestamp": now, "status": status, "metrics": metrics}


def _samples(packets: _Packets, now_ms: int) -> Iterator[Sample]:
    for service, by_dimensions in packets.items():
        for dimensions, values in by_dimensions.items():
            labels = {**dict(dimensions), "vespa_service": service.replace(".", "_").replace("-", "_")}
            for name, value in values.items():
                yield Sample(name, labels, value, now_ms)
