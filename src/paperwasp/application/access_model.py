"""Who may talk to a container, as services.xml says it: the TLS of its servers, and its clients. Immutable.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#ssl
and https://docs.vespa.ai/en/reference/applications/services/container.html#clients
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from msgspec import Struct

from paperwasp.base.records import PartlyCompared
from paperwasp.errors import Position

ClientAuthentication = Literal["", "disabled", "want", "need"]


class NamedFile(Struct, frozen=True):
    """A file that services.xml names: absolute on this machine, relative in the application package."""

    name: str
    position: Position | None = None


class ServerTls(Struct, frozen=True):
    """The `ssl` of a server."""

    certificate: NamedFile
    private_key: NamedFile
    authorities: NamedFile | None = None
    client_authentication: ClientAuthentication = ""
    """Empty: services.xml does not say."""
    cipher_suites: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    position: Position | None = None


class Client(Struct, frozen=True):
    """A `client`: who shows one of the certificates, or sends a key of one of the names, may do what it says."""

    id: str
    permissions: frozenset[str]
    """Of `read` and `write`."""
    certificates: tuple[NamedFile, ...] = ()
    """Files of the package."""
    tokens: tuple[str, ...] = ()
    """Names of keys."""
    position: Position | None = None


class Access(PartlyCompared, frozen=True):
    """Who may ask a container."""

    UNCOMPARED: ClassVar = frozenset({"position"})

    required: bool | None = None
    """Whether clients must say who they are; None: as the service says."""
    clients: tuple[Client, ...] | None = None
    """None: there is no `clients`. Then every key may do what its scopes say, and who shows a certificate of
    `security/clients.pem` everything."""
    position: Position | None = None

    def is_required(self, otherwise: bool) -> bool:
        """`otherwise`: what the service says."""
        return otherwise if self.required is None else self.required


OPEN_TO_ALL: Final = Access()
"""Services.xml says nothing."""
