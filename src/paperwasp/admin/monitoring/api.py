"""The metrics of a process for who collects them: JSON at `/metrics/v1` and `/metrics/v2`, text at `/prometheus/v1`.

All show what `/state/v1/metrics` shows, as Vespa's metrics proxy does: one value a name (`http.status.2xx.rate`),
sorted by the service that it is of. All runs in one process here, so there is one node, and no port of a proxy.

Vespa: https://docs.vespa.ai/en/reference/api/metrics-v1.html, …/metrics-v2.html, …/prometheus-v1.html
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from paperwasp.base.env import Environment
from paperwasp.base.measurements import Latencies, Metric
from paperwasp.base.version import VESPA_VERSION
from paperwasp.errors import NotFound
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.pretty_json import pretty_response
from paperwasp.http.routing import Router

# Which metrics a consumer of `/metrics/v1`, `/metrics/v2` and `/prometheus/v1` is shown.
#
# Vespa: DefaultMetrics.java (metrics); ValuesFetcher.java (metrics-proxy), where an unknown consumer has the default's.
# Differs: without `consumer`, and for all but `default`, everything is shown: in Vespa that is `vespa`.


_DEFAULT_SET: Final = """
http.status.1xx rate
http.status.2xx rate
http.status.3xx rate
http.status.4xx rate
http.status.5xx rate
jdisc.gc.ms max average
mem.heap.free average
feed.latency sum count
jdisc.thread_pool.size max
jdisc.thread_pool.active_threads sum count min max
jdisc.thread_pool.work_queue.capacity max
jdisc.thread_pool.work_queue.size sum count min max
queries rate
query_latency sum count max 95percentile 99percentile average
hits_per_query sum count max average
totalhits_per_query sum count max average
degraded_queries rate
failed_queries rate
content.proton.resource_usage.disk average
content.proton.resource_usage.memory average
content.proton.resource_usage.feeding_blocked max last
content.proton.documentdb.documents.total max last
content.proton.documentdb.documents.ready max last
content.proton.documentdb.documents.active max last
content.proton.documentdb.disk_usage last
content.proton.documentdb.memory_usage.allocated_bytes last
content.proton.documentdb.matching.docs_matched rate
content.proton.transactionlog.disk_usage last
cluster-controller.down.count max last
cluster-controller.up.count max last
cluster-controller.resource_usage.nodes_above_limit max last
"""
"""Of Vespa's default set what is measured here."""
_DEFAULT: Final = frozenset(
    f"{name}.{kind}" for name, *kinds in map(str.split, _DEFAULT_SET.strip().splitlines()) for kind in kinds
)


def names_of(consumer: str) -> frozenset[str] | None:
    """The names, with what each value is at the end, that the consumer is shown; None: all."""
    return _DEFAULT if consumer == "default" else None


PROMETHEUS: Final = "text/plain; version=0.0.4"
"""The media type."""
_SERVICES: Final = {"content.": "vespa.searchnode", "cluster-controller.": "vespa.container-clustercontroller"}
"""Beginning of a metric's name → the service of Vespa that has it; all others are of the process's own."""

_Values = dict[str, float]
_Dimensions = tuple[tuple[str, str], ...]
_Packets = dict[str, dict[_Dimensions, _Values]]
"""Service → dimensions → the values that have these."""


class MetricsSource(Protocol):
    """Who has the metrics."""

    @property
    def service(self) -> str:
        """The service of Vespa whose metrics these are, but for those of `_SERVICES`: `vespa.container`."""

    async def values(self) -> list[Metric]:
        """Every metric."""

    async def state(self) -> Mapping[str, str]:
        """`code`, and a `message` where something is wrong."""

    def histograms(self) -> Mapping[str, Latencies]:
        """The latencies of each kind of request, in milliseconds."""


class MetricsApi:
    """Handlers of the three interfaces. They wait where the source does."""

    def __init__(self, source: MetricsSource, environment: Environment) -> None:
        self._source = source
        self._environment = environment

    def bind(self, router: Router) -> None:
        roots = (("/metrics/v1", self.services), ("/metrics/v2", self.nodes), ("/prometheus/v1", self.text))
        for root, values in roots:
            for end in ("", "/"):
                router.add("GET", root + end, self.resources)
                router.add("GET", f"{root}/values{end}", values)
            router.add("GET", root + "/{rest...}", self.unknown)

    async def resources(self, request: Request, names: Mapping[str, str]) -> Response:
        url = request.url.removesuffix("/")
        return pretty_response(200, {"resources": [{"url": f"{url}/values"}]})

    async def services(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"services": await self._shown(request)})

    async def nodes(self, request: Request, names: Mapping[str, str]) -> Response:
        host = socket.gethostname()
        node = {"hostname": host, "role": f"hosts/{host}", "services": await self._shown(request)}
        return json_response(200, {"nodes": [node]})

    async def _shown(self, request: Request) -> list[dict[str, Any]]:
        packets = self._packets(await self._source.values(), request)
        status = await self._source.state()
        code, description = "up", "Data collected successfully"
        if status["code"] == "down":
            code, description = "down", status["message"]
        return [
            {
                "name": service,
                "timestamp": self._now(),
                "status": {"code": code, "description": description},
                "metrics": [{"values": values, "dimensions": dict(names)} for names, values in by_dimensions.items()],
            }
            for service, by_dimensions in packets.items()
        ]

    async def text(self, request: Request, names: Mapping[str, str]) -> Response:
        packets = self._packets(await self._source.values(), request)
        is_up = float((await self._source.state())["code"] != "down")
        samples = [*_samples(packets), *((f"{service}_status", {}, is_up) for service in packets)]
        text = await asyncio.to_thread(_exposition, samples, self._now(), self._source.histograms())
        return Response(200, text, PROMETHEUS)

    async def unknown(self, request: Request, names: Mapping[str, str]) -> Response:
        raise NotFound("No content at given path")

    def _packets(self, metrics: Iterable[Metric], request: Request) -> _Packets:
        wanted = names_of(request.parameters().get("consumer", ""))
        packets: _Packets = {self._source.service: {}}
        for metric in metrics:
            name: str = metric["name"]
            service = next(
                (there for prefix, there in _SERVICES.items() if name.startswith(prefix)), self._source.service
            )
            values = {f"{name}.{kind}": value for kind, value in metric["values"].items()}
            if wanted is not None:
                values = {name: value for name, value in values.items() if name in wanted}
            if values:
                dimensions = (*metric["dimensions"].items(), ("vespaVersion", VESPA_VERSION))
                packets.setdefault(service, {}).setdefault(dimensions, {}).update(values)
        return packets

    def _now(self) -> int:
        """Seconds since 1970."""
        return self._environment.time_ns() // 10**9


async def plain_exposition(metrics: Iterable[Metric], time_seconds: int) -> Response:
    """Metrics as `/state/v1/metrics` shows them with `format=prometheus`: `name_kind`, with their dimensions alone."""
    samples = [
        (f"{metric['name']}_{kind}", metric["dimensions"], value)
        for metric in metrics
        for kind, value in metric["values"].items()
    ]
    return Response(200, await asyncio.to_thread(_exposition, samples, time_seconds, None), PROMETHEUS)


async def histograms_response(histograms: Mapping[str, Latencies]) -> Response:
    """The answer of `/state/v1/metrics/histograms`."""
    return Response(200, await asyncio.to_thread(_exposition, (), None, histograms), PROMETHEUS)


def _exposition(
    samples: Iterable[tuple[str, Mapping[str, str], float]],
    time_seconds: int | None,
    histograms: Mapping[str, Latencies] | None,
) -> bytes:
    """As `exposition.exposition`, whose library takes a tenth of a second to load: a start does not wait for it."""
    from paperwasp.admin.monitoring.exposition import exposition

    return exposition(samples, time_seconds, histograms)


def _samples(packets: _Packets) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for service, by_dimensions in packets.items():
        for dimensions, values in by_dimensions.items():
            labels = {**dict(dimensions), "vespa_service": service.replace(".", "_").replace("-", "_")}
            for name, value in values.items():
                yield name, labels, value
