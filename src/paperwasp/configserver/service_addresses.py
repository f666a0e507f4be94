"""Where the services of an application listen, as the processes that run them report it (`convergence`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from paperwasp.configserver.repository import ApplicationId

LOCAL: Final = ("localhost", "127.0.0.1", "[::1]")


class ServiceAddress(Struct, frozen=True):
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


Restart = Callable[[ApplicationId, str | None, str | None, str | None], None]
"""(application, host, cluster, type of the cluster; None: any) restarts what all of these name."""
