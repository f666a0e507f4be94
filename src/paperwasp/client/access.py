"""Who a client says it is, and whom it trusts: a token, headers, certificates."""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from pathlib import Path

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Access:
    """What goes with every request to a service."""

    token: str | None = None
    """Sent as `Authorization: Bearer …`."""
    headers: tuple[tuple[str, str], ...] = ()
    certificate: Path | None = None
    """Of the client, in PEM, with `private_key`."""
    private_key: Path | None = None
    ca: Path | None = None
    """The certificates of those who may sign the service's, in PEM. None: those that the system trusts."""

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidInput("--certificate and --private-key are given together")

    def make_headers(self) -> dict[str, str]:
        """The headers of a request."""
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {**token, **dict(self.headers)}

    def make_tls(self) -> ssl.SSLContext:
        """The context of connections over TLS. Errors: InvalidInput for certificates that cannot be read."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.private_key)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(str(file) for file in (self.ca, self.certificate, self.private_key) if file)
            raise InvalidInput(f"The certificates ({files}) cannot be used: {error}") from None
        return context


ANYBODY = Access()


def parse_headers(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Headers of `Name: value` texts. Errors: InvalidInput for a text that is none."""
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not line.isprintable():
            raise InvalidInput(f"--header: '{line}' is not like 'Name: value'")
        headers.append((name.strip(), value.strip()))
    return tuple(headers)
