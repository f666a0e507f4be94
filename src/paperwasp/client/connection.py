"""One keep-alive connection to a service, who the client says it is, and whom it trusts. Blocking; one thread at a
time.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from paperwasp.errors import InvalidInput, NotFound


class Access(Struct, frozen=True):
    """The headers and certificates that go with every request to a service."""

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


TIMEOUT_SECONDS: Final = 180.0
_PORTS: Final = {"http": 80, "https": 443}
_NO_HEADERS: Final[Mapping[str, str]] = {}


class Unreachable(NotFound):
    """Nobody answers at the address."""


class Streamed(NamedTuple):
    """An answer whose body comes bit by bit."""

    status: int
    content_type: str
    lines: Iterator[bytes]
    """With their ends."""


class Connection:
    """Sends requests to one address, over one connection that is opened again when it was closed."""

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS, access: Access = ANYBODY) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise InvalidInput(f"'{url}' is not an address like http://127.0.0.1:8080")
        self._url = url
        self._headers = access.make_headers()
        host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
        if parts.scheme == "https":
            tls = access.make_tls()
            self._http: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=timeout_seconds, context=tls
            )
        else:
            self._http = http.client.HTTPConnection(host, port, timeout=timeout_seconds)

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Status and body of the answer. Errors: Unreachable."""
        for attempt in (1, 2):
            try:
                response = self._begin(method, path, body, content_type, _NO_HEADERS)
                return response.status, response.read()
            except (http.client.HTTPException, OSError) as error:
                fresh = self._http.sock is None
                self._http.close()
                # A connection that the service closed while it was idle is worth a second try; a refused one is not.
                if attempt == 2 or fresh or isinstance(error, ConnectionRefusedError | TimeoutError):
                    raise self._unreachable(error) from None
        raise AssertionError

    def stream(self, path: str, headers: Mapping[str, str]) -> Streamed:
        """The answer to a GET, whose lines are read as they come. Errors: Unreachable, also of reading the lines."""
        try:
            response = self._begin("GET", path, None, "", headers)
        except (http.client.HTTPException, OSError) as error:
            self._http.close()
            raise self._unreachable(error) from None
        return Streamed(response.status, response.getheader("Content-Type", ""), self._lines(response))

    def json(self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Any:
        """The answer as JSON, whatever its status. Errors: Unreachable, InvalidInput for an answer that is not JSON."""
        status, content = self.request(method, path, body, content_type)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise InvalidInput(f"{self._url}{path} answered {status} without JSON") from None

    def close(self) -> None:
        self._http.close()

    def _begin(
        self, method: str, path: str, body: bytes | None, content_type: str, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        content = {"Content-Type": content_type} if body is not None else {}
        self._http.request(method, path, body, {**self._headers, **content, **headers})
        return self._http.getresponse()

    def _lines(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        try:
            yield from response
        except (http.client.HTTPException, OSError, ValueError) as error:
            self._http.close()
            raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> Unreachable:
        hint = "Is `paperwasp serve` running?"
        if isinstance(error, ssl.SSLCertVerificationError):
            hint = "Say with --ca which certificates to trust."
        elif isinstance(error, ssl.SSLError):
            hint = "Does it speak https, and does it want --certificate and --private-key?"
        return Unreachable(f"No answer from {self._url}: {error}. {hint}")
