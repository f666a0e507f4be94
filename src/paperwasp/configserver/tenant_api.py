"""The Deploy API's tenants, and the hosts that applications run on.

Vespa: https://docs.vespa.ai/en/reference/api/deploy-v2.html#tenants
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.configserver.addresses import TENANT, TENANTS
from paperwasp.configserver.convergence import Convergence
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.deployments import ACTIVATE_SECONDS
from paperwasp.configserver.repository import SessionRepository
from paperwasp.configserver.running import RunningApplications
from paperwasp.configserver.worker import Workers
from paperwasp.errors import NotFound
from paperwasp.http.messages import Request, Response, json_response
from paperwasp.http.routing import Router


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
