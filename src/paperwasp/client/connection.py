"""One keep-alive connection to a service. Blocking; one thread at a time."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from paperwasp.client.access import ANYBODY, Access
from paperwasp.errors import InvalidInput, NotFound

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
