"""What serves an application, as those know it who run it: the config server is told by a callable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from paperwasp.configserver.names import ApplicationId
from paperwasp.configserver.server import ConfigServer

LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """One service: where it listens, and the generation that it has reached."""

    cluster: str
    type: str
    host: str
    port: int
    generation: int

    @property
    def name(self) -> str:
        """As the paths of the Deploy API have it."""
        return f"{self.host}:{self.port}"


ServicesOf = Callable[[ApplicationId], Sequence[ServiceAddress]]
Restart = Callable[[ApplicationId, str | None, str | None, str | None], None]
"""(application, host, cluster, type of the cluster; None: any) restarts what all of these name."""


def local_services(server: ConfigServer) -> ServicesOf:
    """Every container of an application on this host at the usual port, configured with what is active."""

    def services(application: ApplicationId) -> Sequence[ServiceAddress]:
        running = server.running_of(application)
        return [
            ServiceAddress(container.id, "container", "localhost", container.port or 8080, running.generation)
            for container in running.model.containers
        ]

    return services


def no_restart(application: ApplicationId, host: str | None, cluster: str | None, cluster_type: str | None) -> None:
    """Restarts nothing: for a config server whose services are elsewhere."""
