"""Reads who may talk to a container: the `ssl` of its servers."""

from __future__ import annotations

from typing import Final, cast

from paperwasp.application.access_model import ClientAuthentication, NamedFile, ServerTls
from paperwasp.application.xml import Element

_CERTIFICATE: Final = "certificate-file"
_PRIVATE_KEY: Final = "private-key-file"


def read_tls(server: Element) -> ServerTls | None:
    """The TLS of a `server`; None: it has none, or one that the grammar has found incomplete."""
    ssl = server.first("ssl")
    if ssl is None:
        return None
    certificate, private_key = _file(ssl, _CERTIFICATE), _file(ssl, _PRIVATE_KEY)
    if certificate is None or private_key is None:
        return None
    authentication = ssl.first("client-authentication")
    return ServerTls(
        certificate,
        private_key,
        _file(ssl, "ca-certificates-file"),
        cast(ClientAuthentication, authentication.text if authentication is not None else ""),
        _words(ssl, "cipher-suites"),
        _words(ssl, "protocols"),
        ssl.position,
    )


def _file(element: Element, tag: str) -> NamedFile | None:
    found = element.first(tag)
    return None if found is None else NamedFile(found.text, found.position)


def _words(element: Element, tag: str) -> tuple[str, ...]:
    found = element.first(tag)
    return tuple(word for part in found.text.split(",") if (word := part.strip())) if found is not None else ()
