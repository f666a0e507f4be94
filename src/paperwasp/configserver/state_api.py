"""How the config server is doing: what health checks and clients ask before they deploy."""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.configserver.server import Activation, ConfigServer
from paperwasp.env import Environment
from paperwasp.errors import NotFound
from paperwasp.http.messages import HTML, Request, Response, json_response, text_response
from paperwasp.http.routing import Router
from paperwasp.version import VESPA_VERSION


class StateApi:
    """Handlers of the status pages and of `/state/v1`. Nothing here waits."""

    def __init__(self, server: ConfigServer, environment: Environment) -> None:
        self._server = server
        self._environment = environment

    def bind(self, router: Router) -> None:
        router.add("GET", "/", self.root)
        router.add("GET", "/status", self.status)
        router.add("GET", "/status.html", self.status_page)
        router.add("GET", "/ApplicationStatus", self.application_status)
        for path in ("/state/v1", "/state/v1/"):
            router.add("GET", path, self.resources)
        router.add("GET", "/state/v1/health", self.health)
        router.add("GET", "/state/v1/version", self.version)
        router.add("GET", "/state/v1/config", self.config)
        router.add("GET", "/state/v1/{rest...}", self.unknown)

    async def root(self, request: Request, names: Mapping[str, str]) -> Response:
        handlers = [
            _handler(request, "ApplicationApiHandler", "/application/v2/tenant/*"),
            _handler(request, "StateHandler", "/state/v1/*"),
        ]
        return json_response(200, {"handlers": handlers})

    async def status(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"configserverConfig": {}, "modelVersions": [VESPA_VERSION]})

    async def status_page(self, request: Request, names: Mapping[str, str]) -> Response:
        return text_response(200, "<title>OK</title>\n", HTML)

    async def application_status(self, request: Request, names: Mapping[str, str]) -> Response:
        meta = _meta(self._server.running)
        return json_response(200, {"application": {"vespa": {"version": VESPA_VERSION}, "meta": meta}})

    async def resources(self, request: Request, names: Mapping[str, str]) -> Response:
        url = request.url.removesuffix("/")
        return json_response(200, {"resources": [{"url": f"{url}/{name}"} for name in ("config", "health", "version")]})

    async def health(self, request: Request, names: Mapping[str, str]) -> Response:
        now_ms = self._environment.time_ns() // 1_000_000
        return json_response(200, {"time": now_ms, "status": {"code": "up"}, "metrics": {}})

    async def version(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"version": VESPA_VERSION})

    async def config(self, request: Request, names: Mapping[str, str]) -> Response:
        generations = {
            "generation": self._server.current_generation,
            "wantedGeneration": self._server.wanted_generation,
        }
        return json_response(200, {"config": generations})

    async def unknown(self, request: Request, names: Mapping[str, str]) -> Response:
        raise NotFound(f"Nothing at '{request.raw_path}'")


def _handler(request: Request, name: str, binding: str) -> dict[str, object]:
    return {"id": name, "class": name, "bundle": "paperwasp", "serverBindings": [f"http://*{binding}"]}


def _meta(running: Activation | None) -> dict[str, object]:
    if running is None:
        return {"name": "", "generation": 0, "checksum": ""}
    name = running.application.application
    return {"name": name, "generation": running.generation, "checksum": running.model.checksum}
