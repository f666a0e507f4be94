"""One keep-alive connection to a service. Blocking; one thread at a time."""

from __future__ import annotations

import http.client
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from paperwasp.errors import InvalidInput, NotFound

TIMEOUT_SECONDS: Final = 180.0


class Unreachable(NotFound):
    """Nobody answers at the address."""


class Connection:
    """Sends requests to one address, over one connection that is opened again when it was closed."""

    def __init__(self, url: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise InvalidInput(f"'{url}' is not an address like http://127.0.0.1:8080")
        self._url = url
        self._http = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_seconds)

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Status and body of the answer. Errors: Unreachable."""
        headers = {"Content-Type": content_type} if body is not None else {}
        for attempt in (1, 2):
            try:
                self._http.request(method, path, body, headers)
                response = self._http.getresponse()
                return response.status, response.read()
            except (http.client.HTTPException, OSError) as error:
                fresh = self._http.sock is None
                self._http.close()
                # A connection that the service closed while it was idle is worth a second try; a refused one is not.
                if attempt == 2 or fresh or isinstance(error, ConnectionRefusedError | TimeoutError):
                    raise Unreachable(f"No answer from {self._url}: {error}. Is `paperwasp serve` running?") from None
        raise AssertionError

    def json(self, method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Any:
        """The answer as JSON, whatever its status. Errors: Unreachable, InvalidInput for an answer that is not JSON."""
        status, content = self.request(method, path, body, content_type)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise InvalidInput(f"{self._url}{path} answered {status} without JSON") from None

    def close(self) -> None:
        self._http.close()
