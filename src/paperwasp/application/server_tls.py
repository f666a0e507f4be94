"""The TLS of the servers of containers: its files, found on the machine or in the package, and whether they fit.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#ssl
Differs: a relative path is one in the package, which Vespa looks for where its process was started.
"""

from __future__ import annotations

import ssl
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Final

from paperwasp.application.access_model import NamedFile, ServerTls
from paperwasp.http.tls_files import PemFile, TlsSettings, WrongTls, make_context

if TYPE_CHECKING:
    from paperwasp.application.findings import Findings
    from paperwasp.application.services_model import Container
    from paperwasp.errors import Position

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
