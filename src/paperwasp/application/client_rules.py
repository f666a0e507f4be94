"""Who may do what in a container, by the certificates in the package and the names of keys.

    <clients>                 its clients, each with their permissions
    none, but it is required  who shows a certificate of security/clients.pem everything, every key what its scopes say

Vespa: https://docs.vespa.ai/en/security/guide.html, where this is called the data plane
Differs: Vespa checks clients in its cloud alone; a token is a key of that name of this service; keys and certificates
are taken at the same port.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from posixpath import normpath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from paperwasp.base.records import dataclass
from paperwasp.http.tls_files import certificates_of

if TYPE_CHECKING:
    from paperwasp.application.access_model import Access, NamedFile
    from paperwasp.application.findings import Findings
    from paperwasp.application.services_model import Container

_CLIENTS_FILE: Final = "security/clients.pem"
_PERMISSIONS: Final = ("read", "write")


@dataclass(frozen=True, slots=True)
class ClientRules:
    """Who may do what. Each mapping is from a permission."""

    certificates: Mapping[str, frozenset[str]]
    """… to the SHA-256 (hexadecimal) of the certificates that have it."""
    keys: Mapping[str, frozenset[str]] | None
    """… to the names of the keys that have it, if their scopes have it too; None: all have it by their scopes alone."""
    trusted: frozenset[bytes]
    """All the certificates (DER)."""


def client_rules(access: Access, files: Mapping[str, bytes]) -> ClientRules:
    """The rules of a container where clients are required. `files`: those of the package.

    Errors: ValueError for a file that is not there or has no certificates, which `check_clients` has reported.
    """
    if access.clients is None:
        shown = certificates_of(files[_CLIENTS_FILE]) if _CLIENTS_FILE in files else ()
        return _rules(dict.fromkeys(_PERMISSIONS, shown), None)
    certificates: dict[str, tuple[bytes, ...]] = {}
    keys: dict[str, frozenset[str]] = {}
    for name in _PERMISSIONS:
        allowed = [client for client in access.clients if name in client.permissions]
        named = [file for client in allowed for file in client.certificates]
        certificates[name] = tuple(shown for file in named for shown in _read(file, files))
        keys[name] = frozenset(token for client in allowed for token in client.tokens)
    return _rules(certificates, keys)


def _rules(certificates: Mapping[str, Iterable[bytes]], keys: Mapping[str, frozenset[str]] | None) -> ClientRules:
    digests = {name: frozenset(hashlib.sha256(each).hexdigest() for each in all) for name, all in certificates.items()}
    trusted = frozenset(each for all in certificates.values() for each in all)
    return ClientRules(MappingProxyType(digests), None if keys is None else MappingProxyType(keys), trusted)


def _read(file: NamedFile, files: Mapping[str, bytes]) -> tuple[bytes, ...]:
    """Errors: ValueError."""
    path = normpath(file.name)
    if path not in files:
        raise ValueError(f"there is no file '{file.name}' in the application package")
    try:
        return certificates_of(files[path])
    except ValueError as error:
        raise ValueError(f"'{file.name}': {error}") from None


def check_clients(
    containers: Iterable[Container], files: Mapping[str, bytes], findings: Findings, *, authenticates: bool
) -> None:
    """Reports certificates that cannot be read, clients that are not checked, and who can never come in."""
    for container in containers:
        access = container.access
        if not access.is_required(authenticates):
            if access.clients is not None:
                findings.info(
                    f"the 'clients' of container '{container.id}' are not checked: neither does services.xml ask for "
                    "it (config 'paperwasp.access'), nor does the service (serve --authenticate)",
                    access.position,
                )
            continue
        _check_files(access, files, findings)
        _check_servers(container, files, findings)


def _check_files(access: Access, files: Mapping[str, bytes], findings: Findings) -> None:
    for file in (file for client in access.clients or () for file in client.certificates):
        try:
            _read(file, files)
        except ValueError as error:
            findings.error(str(error), file.position)
    if access.clients is None and _CLIENTS_FILE in files:
        try:
            certificates_of(files[_CLIENTS_FILE])
        except ValueError as error:
            findings.error(f"{_CLIENTS_FILE}: {error}")


def _check_servers(container: Container, files: Mapping[str, bytes], findings: Findings) -> None:
    """That clients with certificates find a server that asks for them."""
    access = container.access
    has_certificates = _CLIENTS_FILE in files
    if access.clients is not None:
        has_certificates = any(client.certificates for client in access.clients)
    asks = any(
        server.tls is not None and server.tls.client_authentication != "disabled" for server in container.servers
    )
    if has_certificates and not asks:
        message = f"no server of container '{container.id}' has an 'ssl' that asks clients for certificates"
        findings.warning(f"{message}: only keys are taken", access.position)
