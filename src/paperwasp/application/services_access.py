"""Reads who may talk to a container: the `ssl` of its servers, its `clients`, and whether these are needed.

The last is a configuration of our own, since Vespa leaves that to its cloud:

    <config name="paperwasp.access"><required>true</required></config>
"""

from __future__ import annotations

from typing import Final, cast, get_args

from paperwasp.application.access_model import Access, Client, ClientAuthentication, NamedFile, ServerTls
from paperwasp.application.findings import Findings
from paperwasp.application.values import VALUES, boolean
from paperwasp.application.xml import Element
from paperwasp.text.parsing.nearest import did_you_mean

ACCESS_CONFIG: Final = "paperwasp.access"
PERMISSIONS: Final = ("read", "write")
_REQUIRED: Final = "required"
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
    word = "" if authentication is None else authentication.text  # one that is none, the grammar reports
    return ServerTls(
        certificate,
        private_key,
        _file(ssl, "ca-certificates-file"),
        cast(ClientAuthentication, word if word in get_args(ClientAuthentication) else ""),
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


def read_access(container: Element, findings: Findings) -> Access:
    """Who may ask a container. Reports what is wrong with it, but not files that are not there."""
    clients = container.first("clients")
    declared = None if clients is None else tuple(_client(each, findings) for each in clients.all("client"))
    seen: set[str] = set()
    for client in declared or ():
        if client.id in seen:
            findings.error(f"client id '{client.id}' is used more than once", client.position)
        seen.add(client.id)
    position = container.position if clients is None else clients.position
    return Access(_required(container, findings), declared, position)


def _client(element: Element, findings: Findings) -> Client:
    found = Client(
        element.attributes.get("id", ""),
        _permissions(element, findings),
        tuple(NamedFile(each.attributes.get("file", ""), each.position) for each in element.all("certificate")),
        tuple(each.attributes.get("id", "") for each in element.all("token")),
        element.position,
    )
    if not found.certificates and not found.tokens:
        findings.error(f"client '{found.id}' has neither a 'certificate' nor a 'token'", element.position)
    return found


def _permissions(element: Element, findings: Findings) -> frozenset[str]:
    words = [word.strip() for word in element.attributes.get("permissions", "").split(",")]
    for word in words:
        if word not in PERMISSIONS:
            message = f"client '{element.attributes.get('id', '')}' has an unknown permission '{word[:100]}'"
            findings.error(f"{message}; there are 'read', 'write' and 'read,write'", element.position)
    return frozenset(words)


def _required(container: Element, findings: Findings) -> bool | None:
    found = None
    for config in container.all("config"):
        if config.attributes.get("name") != ACCESS_CONFIG:
            continue
        for child in config.children:
            if child.tag != _REQUIRED:
                message = f"{ACCESS_CONFIG} has no '{child.tag}'{did_you_mean(child.tag, (_REQUIRED,))}"
                findings.error(message, child.position)
            elif not VALUES["boolean"].accepts(child.text):
                message = f"value of '{_REQUIRED}' is invalid; must be {VALUES['boolean'].description}"
                findings.error(f"{message}, not '{child.text[:100]}'", child.position)
            else:
                found = boolean(child.text)
    return found
