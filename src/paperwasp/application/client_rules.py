"""Who may do what in a container, by the certificates in the package and the names of keys.

    <clients>                 its clients, each with their permissions
    none, but it is required  who shows a certificate of security/clients.pem everything, every key what its scopes say

Vespa: https://docs.vespa.ai/en/security/guide.html, where this is called the data plane
Differs: Vespa checks clients in its cloud alone; a token is a key of that name of this service; keys and certificates
are taken at the same port.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from paperwasp.application.access_model import NamedFile, ServerTls
from paperwasp.http.tls_files import PemFile, TlsSettings, WrongTls, certificates_of, make_context

if TYPE_CHECKING:
    from paperwasp.application.access_model import Access
    from paperwasp.application.findings import Findings
    from paperwasp.application.services_model import Container
    from paperwasp.errors import Position

_CLIENTS_FILE: Final = "security/clients.pem"
_PERMISSIONS: Final = ("read", "write")


class ClientRules(Struct, frozen=True):
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


# The TLS of the servers of containers: its files, found on the machine or in the package, and whether they fit.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#ssl
# Differs: a relative path is one in the package, which Vespa looks for where its process was started.


_VERIFY: Final = {"disabled": ssl.CERT_NONE, "want": ssl.CERT_OPTIONAL, "need": ssl.CERT_REQUIRED}


def tls_settings(tls: ServerTls, files: Mapping[str, bytes], known: Collection[bytes] = ()) -> TlsSettings:
    """The settings of a server's port. `files`: those of the package; `known`: certificates (DER) by which
    clients are recognized. Where there are some, clients are asked for theirs, unless services.xml says otherwise.

    Errors: WrongTls for a file that is not there.
    """
    return TlsSettings(
        certificate=_found(tls.certificate, "certificate-file", files),
        private_key=_found(tls.private_key, "private-key-file", files),
        authorities=None if tls.authorities is None else _found(tls.authorities, "ca-certificates-file", files),
        trusted=tuple(sorted(known)),
        verify=_VERIFY[tls.client_authentication or ("want" if known else "disabled")],
        cipher_suites=tls.cipher_suites,
        protocols=tls.protocols,
    )


def check_tls(
    containers: Iterable[Container], files: Mapping[str, bytes], findings: Findings, *, authenticates: bool
) -> None:
    """Reports files and settings of TLS that cannot be used, and what shuts clients out. `authenticates`: whether
    clients of containers that do not say it must tell who they are."""
    for container in containers:
        is_required = container.access.is_required(authenticates)
        for server in container.servers:
            if server.tls is not None:
                _check(server.tls, files, findings, is_required)


def _check(tls: ServerTls, files: Mapping[str, bytes], findings: Findings, is_required: bool) -> None:
    if tls.client_authentication in ("want", "need") and tls.authorities is None and not is_required:
        message = f"client-authentication is '{tls.client_authentication}' without 'ca-certificates-file'"
        findings.warning(f"{message}: no certificate of a client will be trusted", tls.position)
    try:
        make_context(tls_settings(tls, files))
    except WrongTls as error:
        findings.error(error.message, _place(tls, error.setting))


def _place(tls: ServerTls, setting: str) -> Position | None:
    named = {
        "certificate-file": tls.certificate,
        "private-key-file": tls.private_key,
        "ca-certificates-file": tls.authorities,
    }.get(setting)
    return tls.position if named is None else named.position


def _found(named: NamedFile, setting: str, files: Mapping[str, bytes]) -> PemFile:
    if PurePosixPath(named.name).is_absolute():
        return PemFile(named.name)
    path = normpath(named.name)
    if path not in files:
        problem = f"there is no file '{named.name}' in the application package; one of the machine has an absolute path"
        raise WrongTls(setting, problem)
    return PemFile(named.name, files[path])
