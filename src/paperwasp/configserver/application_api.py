"""The Deploy API's applications: what runs, whether it has converged, and taking it down.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#application
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from paperwasp.configserver.addresses import (
    APPLICATION,
    ROOT,
    application_in_path,
    application_url,
    check_tenant,
)
from paperwasp.configserver.server import Activation, ConfigServer
from paperwasp.configserver.sessions import ApplicationId
from paperwasp.configserver.worker import Worker
from paperwasp.errors import InvalidInput, NotFound
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router
from paperwasp.version import VESPA_VERSION

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ContainerAddress:
    """Where the container of this process listens."""

    host: str = "localhost"
    port: int = 8080


class ApplicationApi:
    """Handlers of `…/application/…` and of the tenants. What runs is read from memory, without waiting."""

    def __init__(self, server: ConfigServer, worker: Worker, container: ContainerAddress) -> None:
        self._server = server
        self._worker = worker
        self._container = container

    def bind(self, router: Router) -> None:
        for path in ("/application/v2/tenant", "/application/v2/tenant/"):
            router.add("GET", path, self.tenants)
        router.add("GET", ROOT, self.tenant)
        for path in (ROOT + "/application", ROOT + "/application/"):
            router.add("GET", path, self.applications)
        for path in (APPLICATION, APPLICATION + "/"):
            router.add("GET", path, self.status)
            router.add("DELETE", path, self.delete)
        router.add("GET", APPLICATION + "/serviceconverge", self.converge)
        router.add("GET", APPLICATION + "/serviceconverge/{service}", self.converge_one)
        router.add("POST", APPLICATION + "/restart", self.restart)
        router.add("GET", APPLICATION + "/reindexing", self.reindexing)
        for method in ("POST", "PUT"):
            router.add(method, APPLICATION + "/reindex", self.reindex)
        for method in ("POST", "DELETE"):
            router.add(method, APPLICATION + "/reindexing", self.reindex)

    async def tenants(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"tenants": ["default"]})

    async def tenant(self, request: Request, names: Mapping[str, str]) -> Response:
        check_tenant(names)
        return json_response(200, {"message": "Tenant 'default' exists."})

    async def applications(self, request: Request, names: Mapping[str, str]) -> Response:
        check_tenant(names)
        running = self._server.running
        return json_response(200, [application_url(request, running.application)] if running else [])

    async def status(self, request: Request, names: Mapping[str, str]) -> Response:
        """The generation that runs. Both names of the list of versions are given: the clients differ."""
        running = self._running(names)
        return json_response(
            200,
            {
                "generation": running.generation,
                "applicationPackageFileReference": "",
                "versions": [{"generation": running.generation, "serviceVersion": VESPA_VERSION}],
                "modelVersions": [VESPA_VERSION],
            },
        )

    async def delete(self, request: Request, names: Mapping[str, str]) -> Response:
        application = application_in_path(names)
        await self._worker.run(self._server.delete_application, application)
        return json_response(200, {"message": f"Application '{application}' deleted"})

    # Convergence

    async def converge(self, request: Request, names: Mapping[str, str]) -> Response:
        """Whether every service has the generation that was activated last."""
        running = self._running(names)
        return json_response(
            200,
            {
                "services": [self._service(request, container.id) for container in running.model.containers],
                "url": request.url,
                **self._convergence(),
            },
        )

    def _service(self, request: Request, cluster: str) -> dict[str, Any]:
        host, port = self._container.host, self._container.port
        return {
            "clusterName": cluster,
            "host": host,
            "port": port,
            "type": "container",
            "url": f"{request.url.removesuffix('/')}/{host}:{port}",
            "currentGeneration": self._server.current_generation,
        }

    def _convergence(self) -> dict[str, Any]:
        current, wanted = self._server.current_generation, self._server.wanted_generation
        return {"currentGeneration": current, "wantedGeneration": wanted, "converged": current == wanted}

    async def converge_one(self, request: Request, names: Mapping[str, str]) -> Response:
        running = self._running(names)
        service = names["service"]
        answer = {"url": request.url, "host": service}
        if running.model.containers and self._is_ours(request, service):
            return json_response(200, {**answer, **self._convergence()})
        problem = f"Service at '{service}' is no longer part of application {running.application}"
        wanted = self._server.wanted_generation
        return json_response(410, {**answer, "wantedGeneration": wanted, "problem": problem})

    def _is_ours(self, request: Request, service: str) -> bool:
        """Clients name this machine as they like: as we told them, as they reach it, or as local."""
        host, _, port = service.rpartition(":")
        reached = request.host.rpartition(":")[0] or request.host
        return port == str(self._container.port) and host in (self._container.host, reached, *_LOCAL)

    # Operations

    async def restart(self, request: Request, names: Mapping[str, str]) -> Response:
        """Nothing ever waits for a restart here: a new configuration is taken without one."""
        self._running(names)
        return json_response(200, {"message": "Success"})

    async def reindexing(self, request: Request, names: Mapping[str, str]) -> Response:
        """No document type was ever reindexed: changes that need it are refused."""
        clusters = {
            cluster.id: {"pending": [], "ready": {name: {} for name in cluster.document_types}}
            for cluster in self._running(names).model.content_clusters
        }
        return json_response(200, {"enabled": False, "clusters": clusters})

    async def reindex(self, request: Request, names: Mapping[str, str]) -> Response:
        self._running(names)
        raise InvalidInput("Reindexing is not supported yet")

    def _running(self, names: Mapping[str, str]) -> Activation:
        """What runs, if it is the application of the path. Errors: NotFound."""
        application: ApplicationId = application_in_path(names)
        running = self._server.running
        if running is None or running.application != application:
            raise NotFound(f"Unknown application id '{application}'")
        return running
