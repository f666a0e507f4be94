"""The Deploy API's applications: what runs, restarting it, taking it down, its logs.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#application
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.base.env import Environment
from paperwasp.base.version import VESPA_VERSION
from paperwasp.configserver.addresses import (
    APPLICATION,
    SHORT_APPLICATION,
    TENANT,
    application_in_path,
    application_url,
)
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.deployments import ACTIVATE_SECONDS
from paperwasp.configserver.logs import ServiceLog
from paperwasp.configserver.parameters import seconds
from paperwasp.configserver.running import Activation
from paperwasp.configserver.server import ConfigServer
from paperwasp.configserver.services import Restart
from paperwasp.configserver.worker import Workers
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import TEXT, Request, Response, json_response
from paperwasp.http.routing import Router


class ApplicationApi:
    """Handlers of `…/application/…`, but for convergence, content and reindexing."""

    def __init__(
        self,
        server: ConfigServer,
        workers: Workers,
        restart: Restart,
        logs: ServiceLog | None,
        environment: Environment,
    ) -> None:
        self._sessions = server.sessions
        self._applications = server.applications
        self._deployments = server.deployments
        self._workers = workers
        self._convergence = server.convergence
        self._restart = restart
        self._logs = logs
        self._environment = environment

    def bind(self, router: Router) -> None:
        for path in (TENANT + "/application", TENANT + "/application/"):
            router.add("GET", path, self.applications)
        for path in (APPLICATION, APPLICATION + "/", SHORT_APPLICATION):
            router.add("GET", path, self.status)
            router.add("DELETE", path, self.delete)
        router.add("POST", APPLICATION + "/restart", self.restart)
        router.add("GET", APPLICATION + "/logs", self.logs)
        router.add("GET", APPLICATION + "/filedistributionstatus", self.file_distribution)
        router.add("GET", APPLICATION + "/quota", self.quota)

    async def applications(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant = names["tenant"]
        await self._workers.read(self._sessions.check_tenant, tenant)
        found = [application for application in self._applications.active() if application.tenant == tenant]
        return json_response(200, [application_url(request, application) for application in found])

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
        deadline = Deadline(seconds(request.parameters(), ACTIVATE_SECONDS), self._environment)
        await self._workers.deploy(
            application.tenant, deadline, lambda: self._deployments.delete_application(application, deadline)
        )
        return json_response(200, {"message": f"Application '{application}' deleted"})

    async def restart(self, request: Request, names: Mapping[str, str]) -> Response:
        """Restarts the services that all of the parameters name. Nodes here have no flavors: all are of any."""
        application, parameters = self._running(names).application, request.parameters()
        chosen = [parameters.get(name) or None for name in ("hostname", "clusterId", "clusterType")]
        deadline = Deadline(seconds(parameters, ACTIVATE_SECONDS), self._environment)
        await self._workers.deploy(
            application.tenant,
            deadline,
            lambda: self._deployments.between_deployments(
                application, lambda: self._restart(application, *chosen), deadline
            ),
        )
        return json_response(200, {"message": "Success"})

    async def logs(self, request: Request, names: Mapping[str, str]) -> Response:
        """The lines of a stretch of time. All applications of this process write into one log."""
        self._running(names)
        parameters = request.parameters()
        start_ms = _milliseconds(parameters, "from", 0)
        end_ms = _milliseconds(parameters, "to", self._environment.time_ns() // 1_000_000 + 1)
        if self._logs is None:
            return Response(200, b"", TEXT)
        return Response(200, await self._workers.read(self._logs.text, start_ms, end_ms), TEXT)

    async def file_distribution(self, request: Request, names: Mapping[str, str]) -> Response:
        """Whether the files of the package have reached all hosts: they have when the application runs."""
        services = self._convergence.services(self._running(names).application)
        hosts = sorted({service.host for service in services})
        shown = [{"hostname": host, "status": "FINISHED", "fileReferences": []} for host in hosts]
        return json_response(200, {"hosts": shown, "status": "FINISHED"})

    async def quota(self, request: Request, names: Mapping[str, str]) -> Response:
        """There are no quotas."""
        self._running(names)
        return json_response(200, {"rate": 0.0})

    def _running(self, names: Mapping[str, str]) -> Activation:
        """The activation of the application in the path. Errors: NotFound where it does not run."""
        return self._applications.running_of(application_in_path(names))


def _milliseconds(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput(f"Illegal value '{text}' of '{name}': it is a time in milliseconds")
    return int(text)
