"""Whether the services of an application have the generation that was activated last.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#serviceconverge
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.version import VESPA_VERSION
from paperwasp.configserver.addresses import APPLICATION, application_in_path
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.parameters import seconds, wanted_version
from paperwasp.configserver.running import RunningApplications
from paperwasp.configserver.services import LOCAL, ServiceAddress
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router

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
