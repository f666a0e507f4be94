"""How the container is doing: health, version, metrics, and what clients look at before they talk to it.

Until an application is active, `/status.html` and `/ApplicationStatus` say so with a status that makes clients wait.
Vespa: https://docs.vespa.ai/en/reference/operations/state-v1.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from paperwasp.admin.monitoring.api import histograms_response, plain_exposition
from paperwasp.admin.monitoring.process_metrics import process_metrics
from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import Environment
from paperwasp.base.measurements import EMBEDDING, Latencies, Metric, gauge
from paperwasp.base.version import VERSION, VESPA_VERSION
from paperwasp.container.metrics import ContainerMetrics
from paperwasp.container.paths import no_application
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import HTML, Request, Response, json_response, text_response
from paperwasp.http.pretty_json import pretty_response
from paperwasp.http.routing import Router

if TYPE_CHECKING:
    from paperwasp.application.services_model import Container
    from paperwasp.container.content_metrics import ContentMetrics


class Running(Struct, frozen=True):
    """The application that a container serves, as far as it concerns its own cluster."""

    generation: int
    model: ApplicationModel
    container: Container
    name: str = "default"
    """The name of the application."""


DOCUMENT_HANDLER: Final = (
    "com.yahoo.document.restapi.resource.DocumentV1ApiHandler",
    "/document/v1/*",
    "/document/v1/*/",
)
SEARCH_HANDLER: Final = ("com.yahoo.search.handler.SearchHandler", "/search/*")
EVALUATION_HANDLER: Final = (
    "ai.vespa.models.handler.ModelsEvaluationHandler",
    "/model-evaluation/v1",
    "/model-evaluation/v1/*",
)
_STATE_HANDLERS: Final = (
    ("com.yahoo.container.jdisc.state.StateHandler", "/state/v1", "/state/v1/*"),
    ("com.yahoo.container.handler.VipStatusHandler", "/status.html"),
    ("com.yahoo.container.handler.observability.ApplicationStatusHandler", "/ApplicationStatus"),
    ("com.yahoo.container.usability.BindingsOverviewHandler", "/"),
    ("com.yahoo.container.handler.metrics.MetricsV2Handler", "/metrics/v2", "/metrics/v2/*"),
    ("com.yahoo.container.handler.metrics.PrometheusV1Handler", "/prometheus/v1", "/prometheus/v1/*"),
)


class StateApi:
    """Handlers of the status pages and of `/state/v1`. Only health and metrics wait, for the content clusters."""

    service: Final = "vespa.container"

    def __init__(
        self, metrics: ContainerMetrics, environment: Environment, absence: Callable[[], str] = no_application
    ) -> None:
        """`absence`: what to say where no application is served."""
        self._metrics = metrics
        self._absence = absence
        self._environment = environment
        self.running: Running | None = None
        self.content_metrics: ContentMetrics | None = None
        """There is one wherever an application is running."""
        self.interface_metrics: Callable[[], Iterable[Metric]] = tuple
        """The metrics of the interfaces for documents, searches and models."""

    def bind(self, router: Router) -> None:
        router.add("GET", "/", self.root)
        router.add("GET", "/status.html", self.status_page)
        router.add("GET", "/ApplicationStatus", self.application_status)
        for path in ("/state/v1", "/state/v1/"):
            router.add("GET", path, self.resources)
        router.add("GET", "/state/v1/health", self.health)
        router.add("GET", "/state/v1/version", self.version)
        router.add("GET", "/state/v1/config", self.config)
        router.add("GET", "/state/v1/metrics", self.metrics)
        router.add("GET", "/state/v1/metrics/histograms", self.histogram_text)
        router.add("GET", "/state/v1/{rest...}", self.unknown)

    async def root(self, request: Request, names: Mapping[str, str]) -> Response:
        if self.running is None:  # a list without the handlers of applications would say that there are none
            return json_response(503, {"message": self._absence()})
        return json_response(200, {"handlers": self._handlers()})

    async def status_page(self, request: Request, names: Mapping[str, str]) -> Response:
        if self.running is None:
            return text_response(404, f"{self._absence()}\n")
        return text_response(200, "<title>OK</title>\n", HTML)

    async def application_status(self, request: Request, names: Mapping[str, str]) -> Response:
        if self.running is None:
            return json_response(503, {"message": self._absence()})
        checksum = self.running.model.checksum
        meta = {"name": self.running.name, "generation": self.running.generation, "checksum": checksum}
        application = {"vespa": {"version": VESPA_VERSION}, "meta": meta, "user": {"version": VERSION}}
        empty: dict[str, Any] = {"clients": [], "servers": [], "httpRequestFilters": [], "httpResponseFilters": []}
        shown = {"application": application, "abstractComponents": [], "handlers": self._handlers(), **empty}
        return json_response(200, shown)

    async def resources(self, request: Request, names: Mapping[str, str]) -> Response:
        url = request.url.removesuffix("/")
        names_shown = ("metrics", "config", "health", "version")
        return pretty_response(200, {"resources": [{"url": f"{url}/{name}"} for name in names_shown]})

    async def health(self, request: Request, names: Mapping[str, str]) -> Response:
        self._metrics.turn_if_due()
        return await self._shown(self._metrics.health())

    async def metrics(self, request: Request, names: Mapping[str, str]) -> Response:
        values = await self.values()
        wanted = request.parameters().get("format", "json")
        if wanted == "prometheus":
            return await plain_exposition(values, self._now_ms() // 1000)
        if wanted != "json":
            raise InvalidInput(f"Illegal value '{wanted[:100]}' of 'format': it is json or prometheus")
        return await self._shown(values)

    async def _shown(self, values: list[Metric]) -> Response:
        metrics = {"snapshot": self._metrics.windows.snapshot(), "values": values}
        return pretty_response(200, {"time": self._now_ms(), "status": await self.state(), "metrics": metrics})

    async def histogram_text(self, request: Request, names: Mapping[str, str]) -> Response:
        return await histograms_response(self.histograms())

    def histograms(self) -> Mapping[str, Latencies]:
        """The latencies of each kind of request, and of embedding, in milliseconds."""
        embedding = EMBEDDING.whole()
        return {**self._metrics.by_kind(), **({"embedding": embedding} if embedding.count else {})}

    async def values(self) -> list[Metric]:
        """Every metric of this container and of its content clusters."""
        content: list[Metric] = []
        if self.running is not None and self.content_metrics is not None:
            content = await self.content_metrics.values(cluster.id for cluster in self.running.model.content_clusters)
        own = chain(
            self._metrics.all(), self.interface_metrics(), EMBEDDING.all(), self._application(), process_metrics()
        )
        return [*own, *content]

    def _application(self) -> Iterable[Metric]:
        yield gauge("in_service", float(self.running is not None))
        if self.running is not None:
            yield gauge("application_generation", self.running.generation)

    async def version(self, request: Request, names: Mapping[str, str]) -> Response:
        return pretty_response(200, {"version": VESPA_VERSION})

    async def config(self, request: Request, names: Mapping[str, str]) -> Response:
        generation = self.running.generation if self.running else 0
        shown = {"generation": generation, "applyOnRestart": False, "container": {"generation": generation}}
        return pretty_response(200, {"config": {**shown, "wantedGeneration": generation}})

    async def unknown(self, request: Request, names: Mapping[str, str]) -> Response:
        raise NotFound(f"Nothing at '{request.raw_path}'")

    async def state(self) -> dict[str, str]:
        """Up, initializing, or down with the reason: a content cluster takes no operations."""
        if self.running is None or self.content_metrics is None:
            return {"code": "initializing"}
        faults = await self.content_metrics.faults(cluster.id for cluster in self.running.model.content_clusters)
        return {"code": "down", "message": "; ".join(faults)} if faults else {"code": "up"}

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000

    def _handlers(self) -> list[dict[str, Any]]:
        handlers = list(_STATE_HANDLERS)
        if self.running is not None and self.running.container.model_evaluation:
            handlers.insert(0, EVALUATION_HANDLER)
        if self.running is not None and self.running.container.search:
            handlers.insert(0, SEARCH_HANDLER)
        if self.running is not None and self.running.container.document_api:
            handlers.insert(0, DOCUMENT_HANDLER)
        return [_handler(*handler) for handler in handlers]


def _handler(name: str, *bindings: str) -> dict[str, Any]:
    shown = [f"http://*{binding}" for binding in bindings]
    return {"id": name, "class": name, "bundle": f"paperwasp:{VERSION}", "serverBindings": shown, "clientBindings": []}
