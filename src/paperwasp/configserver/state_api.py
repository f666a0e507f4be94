"""How the config server is doing: what health checks and clients ask before they deploy.

Vespa: https://docs.vespa.ai/en/reference/operations/state-v1.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from paperwasp.admin.monitoring.api import histograms_response, plain_exposition
from paperwasp.admin.monitoring.process_metrics import process_metrics
from paperwasp.admin.monitoring.requests import RequestMetrics
from paperwasp.base.env import Environment
from paperwasp.base.measurements import Latencies, Metric, counted, gauge, metric
from paperwasp.base.version import VESPA_VERSION
from paperwasp.configserver.reindexing import ApplicationReindexing
from paperwasp.configserver.repository import ApplicationId
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import HTML, Request, Response, json_response, text_response
from paperwasp.http.pretty_json import pretty_response
from paperwasp.http.routing import Router

_RESOURCES: Final = ("metrics", "config", "health", "version")


class StateApi:
    """Handlers of the status pages and of `/state/v1`. Nothing here waits."""

    service: Final = "vespa.configserver"

    def __init__(
        self,
        applications: RunningApplications,
        reindexing: Callable[[ApplicationId], ApplicationReindexing],
        metrics: RequestMetrics,
        environment: Environment,
    ) -> None:
        self._applications = applications
        self._reindexing = reindexing
        self._metrics = metrics
        self._environment = environment

    def bind(self, router: Router) -> None:
        router.add("GET", "/", self.root)
        router.add("GET", "/status", self.status)
        router.add("GET", "/status.html", self.status_page)
        router.add("GET", "/ApplicationStatus", self.application_status)
        for path in ("/state/v1", "/state/v1/"):
            router.add("GET", path, self.resources)
        router.add("GET", "/state/v1/health", self.health)
        router.add("GET", "/state/v1/metrics", self.metrics)
        router.add("GET", "/state/v1/metrics/histograms", self.histogram_text)
        router.add("GET", "/state/v1/version", self.version)
        router.add("GET", "/state/v1/config", self.config)
        router.add("GET", "/state/v1/{rest...}", self.unknown)

    async def root(self, request: Request, names: Mapping[str, str]) -> Response:
        handlers = [
            _handler("TenantHandler", "/application/v2/tenant/", "/application/v2/tenant/*"),
            _handler("ApplicationHandler", "/application/v2/tenant/*/application/*"),
            _handler("SessionCreateHandler", "/application/v2/tenant/*/session"),
            _handler("ApplicationApiHandler", "/application/v2/tenant/*/prepareandactivate"),
            _handler("StateHandler", "/state/v1", "/state/v1/*"),
        ]
        return json_response(200, {"handlers": handlers})

    async def status(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"configserverConfig": {}, "modelVersions": [VESPA_VERSION]})

    async def status_page(self, request: Request, names: Mapping[str, str]) -> Response:
        return text_response(200, "<title>OK</title>\n", HTML)

    async def application_status(self, request: Request, names: Mapping[str, str]) -> Response:
        application = {"vespa": {"version": VESPA_VERSION}, "meta": _meta(self._first())}
        return json_response(200, {"application": application})

    async def resources(self, request: Request, names: Mapping[str, str]) -> Response:
        url = request.url.removesuffix("/")
        return pretty_response(200, {"resources": [{"url": f"{url}/{name}"} for name in _RESOURCES]})

    async def health(self, request: Request, names: Mapping[str, str]) -> Response:
        self._metrics.turn_if_due()
        return await self._shown(self._metrics.health())

    async def metrics(self, request: Request, names: Mapping[str, str]) -> Response:
        values = await self.values()
        wanted = request.parameters().get("format", "json")
        if wanted == "prometheus":
            return await plain_exposition(values, self._now_ms() // 1000)
        if wanted != "json":
            raise InvalidInput(f"Illegal value '{wanted}' of 'format': it is json or prometheus")
        return await self._shown(values)

    async def histogram_text(self, request: Request, names: Mapping[str, str]) -> Response:
        return await histograms_response(self.histograms())

    def histograms(self) -> Mapping[str, Latencies]:
        """The latencies of each kind of request, in milliseconds."""
        return self._metrics.by_kind()

    async def values(self) -> list[Metric]:
        """Every metric of the config server, and of the process."""
        self._metrics.turn_if_due()
        return [*self._requests(), *self._metrics.http(), *self._gauges(), *self._progress(), *process_metrics()]

    def _requests(self) -> Iterator[Metric]:
        latency, seconds = self._metrics.of(), self._metrics.windows.seconds
        failed = [answers for _, status, answers in self._metrics.statuses() if status >= 400]
        recent = sum(answers.recent_count for answers in failed)
        yield counted("configserver.requests", latency.count, latency.recent_count, seconds)
        yield counted("configserver.failedRequests", sum(answers.count for answers in failed), recent, seconds)
        yield metric("configserver.latency", latency.values(seconds))

    async def version(self, request: Request, names: Mapping[str, str]) -> Response:
        return pretty_response(200, {"version": VESPA_VERSION})

    async def config(self, request: Request, names: Mapping[str, str]) -> Response:
        """The youngest generation of any application."""
        applications = self._applications.active()
        current = max(map(self._applications.current_generation, applications), default=0)
        wanted = max(map(self._applications.wanted_generation, applications), default=0)
        return pretty_response(200, {"config": {"generation": current, "wantedGeneration": wanted}})

    async def unknown(self, request: Request, names: Mapping[str, str]) -> Response:
        raise NotFound(f"Nothing at '{request.raw_path}'")

    async def state(self) -> dict[str, str]:
        """Up even without applications that could not be restored: to deploy them is how they are mended."""
        status = {"code": "up"}
        if left_out := self._applications.left_out:
            status["message"] = "; ".join(f"{name} does not run: {why}" for name, why in left_out.items())
        return status

    async def _shown(self, values: list[Metric]) -> Response:
        metrics = {"snapshot": self._metrics.windows.snapshot(), "values": values}
        return pretty_response(200, {"time": self._now_ms(), "status": await self.state(), "metrics": metrics})

    def _gauges(self) -> list[Metric]:
        applications = [
            gauge("configserver.generation", activation.generation, applicationId=str(application))
            for application, activation in sorted(self._applications.running.items())
        ]
        return [gauge("configserver.activeApplications", len(applications)), *applications]

    def _progress(self) -> Iterator[Metric]:
        """How far the reindexing of each document type is, from 0 to 1."""
        for application in sorted(self._applications.running):
            try:
                runs = self._reindexing(application).runs
            except NotFound:  # it was deleted just now
                continue
            for (cluster, document_type), run in sorted(runs.items()):
                dimensions = {"clusterid": cluster, "documenttype": document_type, "state": run.state}
                progress = 1.0 if run.state == "successful" else run.progress
                yield gauge("reindexing.progress", progress, applicationId=str(application), **dimensions)

    def _first(self) -> Activation | None:
        """The application that is meant where none is named: the default one, or else the first by name."""
        running = self._applications.running
        return running.get(ApplicationId()) or next((running[name] for name in sorted(running)), None)

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000


def _handler(name: str, *bindings: str) -> dict[str, object]:
    shown = [f"http://*{binding}" for binding in bindings]
    return {"id": name, "class": name, "bundle": "paperwasp", "serverBindings": shown}


def _meta(running: Activation | None) -> dict[str, object]:
    if running is None:
        return {"name": "", "generation": 0, "checksum": ""}
    name = running.application.application
    return {"name": name, "generation": running.generation, "checksum": running.model.checksum}
