"""Who may talk to a container, as services.xml says it: the TLS of its servers. Immutable.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#ssl
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from paperwasp.errors import Position

ClientAuthentication = Literal["", "disabled", "want", "need"]


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that services.xml names: absolute on this machine, relative in the application package."""

    name: str
    position: Position | None = None


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The `ssl` of a server."""

    certificate: NamedFile
    private_key: NamedFile
    authorities: NamedFile | None = None
    client_authentication: ClientAuthentication = ""
    """Empty: services.xml does not say."""
    cipher_suites: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    position: Position | None = None
