"""The Deploy API's applications: what runs, whether it has converged, restarting it, taking it down, its logs; tenants
and hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.base.version import VESPA_VERSION
from paperwasp.configserver.config_server import ConfigServer
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.deployments import ACTIVATE_SECONDS
from paperwasp.configserver.logs import ServiceLog
from paperwasp.configserver.parameters import (
    APPLICATION,
    SHORT_APPLICATION,
    TENANT,
    TENANTS,
    application_in_path,
    application_url,
    seconds,
    wanted_version,
)
from paperwasp.configserver.repository import ApplicationId, SessionRepository
from paperwasp.configserver.running import Activation, RunningApplications
from paperwasp.configserver.service_addresses import LOCAL, Restart, ServiceAddress
from paperwasp.configserver.workers import Workers
from paperwasp.errors import InvalidInput, NotFound
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


# Whether the services of an application have the generation that was activated last.
#
# Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#serviceconverge


WAIT_SECONDS: Final = 5.0
_NO_GENERATION: Final = -1


class ConvergenceApi:
    """Handlers of `…/serviceconverge`. They wait up to `timeout` for convergence, without holding a thread."""

    def __init__(self, applications: RunningApplications, convergence: Convergence) -> None:
        self._applications = applications
        self._convergence = convergence

    def bind(self, router: Router) -> None:
        router.add("GET", APPLICATION + "/serviceconverge", self.converge)
        router.add("GET", APPLICATION + "/serviceconverge/{service}", self.converge_one)

    async def converge(self, request: Request, names: Mapping[str, str]) -> Response:
        """All services, and the least generation that one of them has."""
        application = application_in_path(names)
        self._applications.check_active(application)
        services = await self._wait_for_convergence(request, application, None)
        shown = [_service(request, service) for service in services]
        answer = self._answer(request, application, services)
        return json_response(200, {"services": shown, "url": request.url, **answer})

    async def converge_one(self, request: Request, names: Mapping[str, str]) -> Response:
        application, name = application_in_path(names), names["service"]
        self._applications.check_active(application)
        services = await self._wait_for_convergence(request, application, name)
        answer = {"url": request.url, "host": name}
        if services:
            return json_response(200, {**answer, **self._answer(request, application, services)})
        wanted = self._applications.wanted_generation(application)
        problem = f"Service at '{name}' is no longer part of application {application}"
        return json_response(410, {**answer, "wantedGeneration": wanted, "problem": problem})

    async def _wait_for_convergence(
        self, request: Request, application: ApplicationId, name: str | None
    ) -> Sequence[ServiceAddress]:
        """The services (of that name) once they have converged, or as they are when the time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds(request.parameters(), WAIT_SECONDS)
        while True:
            services = [
                s for s in self._convergence.services(application) if name is None or _is_named(request, s, name)
            ]
            if self._have_converged(application, services) or loop.time() >= end or not _is_our_version(request):
                return services
            await asyncio.sleep(min(limits.CONVERGENCE_POLL_SECONDS, end - loop.time()))

    def _answer(
        self, request: Request, application: ApplicationId, services: Sequence[ServiceAddress]
    ) -> dict[str, Any]:
        current = min((service.generation for service in services), default=_NO_GENERATION)
        wanted = self._applications.wanted_generation(application)
        converged = self._have_converged(application, services) and _is_our_version(request)
        return {"currentGeneration": current, "wantedGeneration": wanted, "converged": converged}

    def _have_converged(self, application: ApplicationId, services: Sequence[ServiceAddress]) -> bool:
        """All processes serve the wanted generation, and so do the services, of which there may be none."""
        wanted = self._applications.wanted_generation(application)
        served = {*self._convergence.generations(application), *(service.generation for service in services)}
        return served == {wanted}


def _is_our_version(request: Request) -> bool:
    """A service never converges to a version of Vespa that it is not."""
    return wanted_version(request.parameters()) in (None, VESPA_VERSION)


def _service(request: Request, service: ServiceAddress) -> dict[str, Any]:
    return {
        "clusterName": service.cluster,
        "host": service.host,
        "port": service.port,
        "type": service.type,
        "url": f"{request.url.removesuffix('/')}/{service.name}",
        "currentGeneration": service.generation,
    }


def _is_named(request: Request, service: ServiceAddress, name: str) -> bool:
    """Clients name this machine as they like: as our answers do, as they reach it, or as local."""
    host, _, port = name.rpartition(":")
    reached = request.host.rpartition(":")[0] or request.host
    return port == str(service.port) and host in (service.host, reached, *LOCAL)


# The Deploy API's tenants, and the hosts that applications run on.
#
# Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#tenants


class TenantApi:
    """Handlers of `/application/v2/tenant` and `/application/v2/host`."""

    def __init__(
        self,
        sessions: SessionRepository,
        applications: RunningApplications,
        workers: Workers,
        convergence: Convergence,
    ) -> None:
        self._sessions = sessions
        self._applications = applications
        self._workers = workers
        self._convergence = convergence

    def bind(self, router: Router) -> None:
        for path in (TENANTS, TENANTS + "/"):
            router.add("GET", path, self.tenants)
        for path in (TENANT, TENANT + "/"):
            router.add("GET", path, self.tenant)
            router.add("PUT", path, self.create)
            router.add("DELETE", path, self.delete)
        router.add("GET", "/application/v2/host/{host}", self.host)

    async def tenants(self, request: Request, names: Mapping[str, str]) -> Response:
        return json_response(200, {"tenants": await self._workers.read(self._sessions.tenants)})

    async def tenant(self, request: Request, names: Mapping[str, str]) -> Response:
        await self._workers.read(self._sessions.check_tenant, names["tenant"])
        return json_response(200, {"message": f"Tenant '{names['tenant']}' exists."})

    async def create(self, request: Request, names: Mapping[str, str]) -> Response:
        tenant = names["tenant"]
        await self._workers.deploy(tenant, Deadline(ACTIVATE_SECONDS), lambda: self._sessions.add_tenant(tenant))
        return json_response(200, {"message": f"Tenant {tenant} created."})

    async def delete(self, request: Request, names: Mapping[str, str]) -> Response:
        """Removes a tenant that has no applications, its sessions with it."""
        tenant = names["tenant"]
        await self._workers.deploy(tenant, Deadline(ACTIVATE_SECONDS), lambda: self._sessions.remove_tenant(tenant))
        return json_response(200, {"message": f"Tenant {tenant} deleted."})

    async def host(self, request: Request, names: Mapping[str, str]) -> Response:
        """The application that runs on a host: of several, which share this process, the first by name."""
        for application in sorted(self._applications.running):
            if any(service.host == names["host"] for service in self._convergence.services(application)):
                found = {"tenant": application.tenant, "application": application.application}
                zone = {"environment": "prod", "region": "default", "instance": application.instance}
                return json_response(200, {**found, **zone})
        raise NotFound(f"Could not find any application using host '{names['host']}'")
