"""The TLS of a port, made of files in PEM form, and made again when these have changed.

    settings ── make_context ──▶ a context: that of all handshakes until a file changes
                    ▲
    each connection looks at the files (their times and sizes); what has changed is read again

A connection keeps the context that it began with, so that nobody is cut off. Files that cannot be used change nothing:
the last good ones stay, and the log says why, once for each change. (Who replaces a certificate and its key does so in
two steps.)

Cipher suites are named as OpenSSL or as IANA, and so Java, names them. Those of TLS 1.3 are always offered all.
Where clients show certificates, no session is resumed: each handshake verifies the certificate as it is then.
"""

from __future__ import annotations

import logging
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput
from paperwasp.http.tls import ALPN, ServerContext

TlsSource = Callable[[], ServerContext]
"""Gives the context of the next connection."""
_LOG: Final = logging.getLogger("paperwasp.http")
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_DEFAULT_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2; forward secrecy and authenticated encryption, as Vespa allows them."""
_SUITES_13: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
_KEY_PARTS: Final = ((compile_later(r"AES_(\d+)_CBC"), r"AES\1"), (compile_later(r"AES_(\d+)"), r"AES\1"))
_CERTIFICATE_MARK: Final = b"-----BEGIN CERTIFICATE-----"
_KEY_MARK: Final = b"PRIVATE KEY-----"
_LARGEST_FILE_BYTES: Final = 4 * 1024 * 1024


class PemFile(Struct, frozen=True):
    """A file in PEM form. `content`: of one that is not on this machine, but of an application package."""

    name: str
    content: bytes | None = None

    def read(self, setting: str) -> bytes:
        """Errors: WrongTls, of that setting."""
        if self.content is not None:
            return self.content
        try:
            with Path(self.name).open("rb") as file:
                content = file.read(_LARGEST_FILE_BYTES + 1)
        except OSError as error:
            raise WrongTls(setting, f"cannot read '{self.name}': {error.strerror or error}") from None
        if len(content) > _LARGEST_FILE_BYTES:
            raise WrongTls(setting, f"'{self.name}' is larger than {_LARGEST_FILE_BYTES} bytes")
        return content


class TlsSettings(Struct, frozen=True):
    """The TLS that a port speaks, and the authorities that it believes."""

    certificate: PemFile
    """Of the server, and those between it and an authority."""
    private_key: PemFile
    authorities: PemFile | None = None
    trusted: tuple[bytes, ...] = ()
    """Certificates (DER) of clients, or of authorities, that are trusted beside those of the file."""
    verify: ssl.VerifyMode = ssl.CERT_NONE
    """Whether clients may, or must, show a certificate."""
    cipher_suites: tuple[str, ...] = ()
    """Empty: those of Vespa."""
    protocols: tuple[str, ...] = ()
    """Empty: TLS 1.2 and 1.3."""


class WrongTls(InvalidInput):
    """A setting of TLS, named as in services.xml, that cannot be used."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
        self.problem = problem


class ReloadedTls:
    """The TLS of a port by its settings. Call it for each connection; on one thread at a time."""

    def __init__(self, settings: TlsSettings) -> None:
        """Errors: WrongTls."""
        self.settings: Final = settings
        self._stamps = self._look()
        self._context = make_context(settings)

    def __call__(self) -> ServerContext:
        stamps = self._look()
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                self._context = make_context(self.settings)
                _LOG.info("The certificate of '%s' was read again", self.settings.certificate.name)
            except WrongTls as error:
                _LOG.error("Changed files of TLS are not used, the last good ones are: %s", error.message)
        return self._context

    def _look(self) -> list[tuple[int, ...]]:
        settings = self.settings
        files = (settings.certificate, settings.private_key, settings.authorities)
        return [_stamp(file.name) for file in files if file is not None and file.content is None]


def _stamp(name: str) -> tuple[int, ...]:
    """Differs when the file has changed; empty for one that cannot be looked at."""
    try:
        found = Path(name).stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def make_context(settings: TlsSettings) -> ServerContext:
    """The context of the settings. Errors: WrongTls."""
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(list(ALPN))
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_protocols(context, settings.protocols)
    _set_ciphers(context, settings.cipher_suites)
    _load_certificate(context, settings)
    _load_trusted(context, settings)
    context.verify_mode = settings.verify
    if settings.verify != ssl.CERT_NONE:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _set_protocols(context: ssl.SSLContext, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown:
        raise WrongTls("protocols", f"'{unknown[0]}' is not spoken; {' and '.join(_VERSIONS)} are")
    versions = [_VERSIONS[name] for name in names] or list(_VERSIONS.values())
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def _set_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    older = [_openssl_name(name) for name in names if name not in _SUITES_13]
    for given, name in zip((name for name in names if name not in _SUITES_13), older, strict=True):
        try:
            context.set_ciphers(name)
        except ssl.SSLError:
            raise WrongTls("cipher-suites", f"there is no cipher suite '{given}'") from None
    context.set_ciphers(":".join(older) or _DEFAULT_CIPHERS)
    if names and not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    elif names and len(older) == len(names):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if context.minimum_version > context.maximum_version:
        raise WrongTls("cipher-suites", "none is of a protocol in 'protocols'")


def _openssl_name(name: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` as OpenSSL names it: `ECDHE-RSA-AES128-GCM-SHA256`."""
    exchange, separator, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return name
    for pattern, replacement in _KEY_PARTS:
        cipher = pattern.sub(replacement, cipher)
    if cipher.startswith("CHACHA20"):
        cipher = cipher.removesuffix("_SHA256")
    return "-".join(part for part in (exchange, cipher) if part != "RSA").replace("_", "-")


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings) -> None:
    certificate, key = settings.certificate, settings.private_key
    if _CERTIFICATE_MARK not in certificate.read("certificate-file"):
        raise WrongTls("certificate-file", f"there is no certificate in PEM form in '{certificate.name}'")
    if _KEY_MARK not in key.read("private-key-file"):
        raise WrongTls("private-key-file", f"there is no private key in PEM form in '{key.name}'")
    try:
        with _on_disk(certificate) as certificate_path, _on_disk(key) as key_path:
            context.load_cert_chain(certificate_path, key_path, _refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            problem = f"the key in '{key.name}' is not that of the certificate in '{certificate.name}'"
            raise WrongTls("private-key-file", problem) from None
        problem = f"'{certificate.name}' and '{key.name}' cannot be used: {_reason(error)}"
        raise WrongTls("certificate-file", problem) from None
    except _PasswordWanted:
        raise WrongTls("private-key-file", f"the key in '{key.name}' is encrypted; it must not be") from None
    except OSError as error:
        raise WrongTls("certificate-file", f"cannot read it: {error.strerror or error}") from None


def _load_trusted(context: ssl.SSLContext, settings: TlsSettings) -> None:
    authorities = settings.authorities
    if authorities is not None:
        try:
            context.load_verify_locations(cadata=authorities.read("ca-certificates-file").decode("latin-1"))
        except (ssl.SSLError, ValueError) as error:
            problem = f"there is no certificate in PEM form in '{authorities.name}'"
            if isinstance(error, ssl.SSLError) and error.reason not in (None, "NO_START_LINE"):
                problem = f"'{authorities.name}' cannot be used: {_reason(error)}"
            raise WrongTls("ca-certificates-file", problem) from None
    for certificate in settings.trusted:
        context.load_verify_locations(cadata=certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what is trusted need not have signed itself


@contextmanager
def _on_disk(file: PemFile) -> Iterator[str]:
    """A path where the file can be read: OpenSSL takes no bytes."""
    if file.content is None:
        yield file.name
        return
    with tempfile.NamedTemporaryFile() as copy:  # for the owner's eyes only
        copy.write(file.content)
        copy.flush()
        yield copy.name


class _PasswordWanted(Exception):
    """A key is encrypted."""


def _refuse_password() -> NoReturn:
    """Else OpenSSL asks for one, at the terminal."""
    raise _PasswordWanted


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()


def certificates_of(content: bytes) -> tuple[bytes, ...]:
    """All certificates (DER) of a file in PEM form. Errors: ValueError where there is none, or one is broken."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    found = []
    for block in re.findall(b"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", content, re.DOTALL):
        try:
            certificate = ssl.PEM_cert_to_DER_cert(block.decode("ascii"))
            context.load_verify_locations(cadata=certificate)
        except (ssl.SSLError, ValueError):
            raise ValueError("a certificate is broken") from None
        found.append(certificate)
    if not found:
        raise ValueError("there is no certificate in PEM form")
    return tuple(found)
