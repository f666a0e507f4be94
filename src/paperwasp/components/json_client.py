"""A client that posts JSON to one endpoint and waits for the answer, for any number of threads, and the secrets that it
identifies itself by.
"""

from __future__ import annotations

import http.client
import io
import math
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, Timeout, Unavailable

# Secrets that services.xml refers to by a name: the keys of services that models run on.
#
# A secret is the content of the file of its name in the folder that PAPERWASP_SECRETS names, else the value of the
# environment variable PAPERWASP_SECRET_<NAME>, the name in capitals, with `_` for everything but letters and digits. It
# is looked up at each use, so that a new key holds without a deployment, and is never part of a package, a log or a
# message.
#
# Differs: Vespa has secrets in the store of its cloud alone: https://docs.vespa.ai/en/security/secret-store


FOLDER_VARIABLE: Final = "PAPERWASP_SECRETS"
_VARIABLE_PREFIX: Final = "PAPERWASP_SECRET_"
_NAME: Final = compile_later(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


def find_secret(name: str) -> str | None:
    """The secret of that name, without white space around it; None: there is none."""
    if not _NAME.fullmatch(name):
        return None
    return _in_file(name).strip() or os.environ.get(variable_of(name), "").strip() or None


def secret(name: str) -> str:
    """The secret of that name. Errors: Unavailable that says where one is looked for."""
    found = find_secret(name)
    if found is None:
        where = f"a file of that name in the folder {FOLDER_VARIABLE} names, or the variable {variable_of(name)}"
        raise Unavailable(f"There is no secret '{name}': it would be {where}")
    return found


def variable_of(name: str) -> str:
    """The environment variable that a secret may be in."""
    return _VARIABLE_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def _in_file(name: str) -> str:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return ""
    try:
        with Path(folder, name).open(encoding="utf-8") as file:
            return file.read(limits.SECRET_CHARACTERS)
    except (OSError, UnicodeDecodeError):
        return ""


# A client that posts JSON to one endpoint and waits for the answer, for any number of threads.
#
#     post → a place among the connections → an attempt → an answer
#                                            → again, after a pause: the endpoint is overloaded, down or broken for now
#
# All of it is over at the deadline of the call, whatever the other side does: each wait for bytes ends there, too. Idle
# connections are kept and used again; one that was closed meanwhile is opened again at once, without counting as an
# attempt. Redirects are not followed and proxies are not asked, so the key goes nowhere but to the endpoint.
#
# Vespa: ai.vespa.embedding.AbstractHttpEmbedder
# Differs: 429 is tried again, too, after the time that the endpoint asks for; pauses grow.


_AGAIN: Final = frozenset({429, 500, 502, 503, 504})
_REFUSED: Final = frozenset({400, 413, 422})
_SHOWN: Final = 500
_PIECE_BYTES: Final = 64 * 1024
_HEAD_BYTES: Final = 1024 * 1024
_TOO_LARGE: Final = "the answer has more than {} bytes"


class Endpoint(Struct, frozen=True):
    """An address that JSON is posted to, and how long and often that is tried."""

    url: str
    name: str
    """As messages name it: `openai-embedder 'x'`."""
    secret_name: str = ""
    """The name of the secret that goes with each request as a bearer token; empty: none does."""
    timeout_seconds: float = limits.REMOTE_TIMEOUT_SECONDS
    """Of a call, with all its attempts."""
    max_retries: int = 3
    connections: int = limits.REMOTE_CONNECTIONS
    """Requests at a time; others wait."""

    def __post_init__(self) -> None:
        """Errors: ValueError for an address that is none."""
        check_url(self.url)


def check_url(url: str) -> None:
    """Errors: ValueError for an address that is none of http or https."""
    try:
        parts = urlsplit(url)
        is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_right = False
    if not is_right or parts.username is not None or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError(f"'{url}' is not an address such as https://host/v1/embeddings")


class _Reply(Struct, frozen=True):
    status: int
    body: bytes
    retry_after: str | None


class _Pool(Struct):
    """Idle connections, the one that was used last at the end."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[http.client.HTTPConnection] = field(default_factory=list)


class JsonClient:
    """Posts JSON to an endpoint. Any thread; blocks."""

    def __init__(
        self,
        endpoint: Endpoint,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """`clock` gives seconds; `pause` waits for some."""
        self.endpoint = endpoint
        self._clock = clock
        self._pause = pause
        self._parts = urlsplit(endpoint.url)
        self._target = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        self._places = threading.BoundedSemaphore(endpoint.connections)
        self._pool = _Pool()

    def post(self, body: object, timeout_seconds: float = math.inf) -> Any:
        """The JSON of the answer.

        `timeout_seconds`: that of the caller, where it is shorter than the endpoint's own.
        Errors: InvalidInput for what the endpoint refuses (400, 413, 422); Overload (429); Timeout; Unavailable for
        all other failures.
        """
        key = secret(self.endpoint.secret_name) if self.endpoint.secret_name else ""
        seconds = min(timeout_seconds, self.endpoint.timeout_seconds)
        deadline = self._clock() + seconds
        data = orjson.dumps(body)
        if not self._places.acquire(timeout=max(0.0, seconds)):
            raise self._timeout(seconds)
        try:
            reply = self._attempts(data, key, deadline, seconds)
        finally:
            self._places.release()
        return self._content(reply, key)

    def close(self) -> None:
        """Closes the connections that are idle. The client may be used on."""
        with self._pool.lock:
            idle, self._pool.idle = self._pool.idle, []
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self.close()

    def _attempts(self, data: bytes, key: str, deadline: float, seconds: float) -> _Reply:
        failure: Exception | None = None
        reply: _Reply | None = None
        for retry in range(self.endpoint.max_retries + 1):
            if retry:
                wait = _wait_seconds(retry, reply)
                if self._clock() + wait >= deadline:
                    break
                self._pause(wait)
            try:
                reply, failure = self._attempt(data, key, deadline), None
            except TimeoutError:
                raise self._timeout(seconds) from None
            except (OSError, http.client.HTTPException) as error:
                reply, failure = None, error
                continue
            if reply.status not in _AGAIN:
                break
        if reply is None:
            reason = str(failure)[:_SHOWN] or type(failure).__name__
            raise Unavailable(f"{self.endpoint.name}: {self.endpoint.url} does not answer: {reason}")
        return reply

    def _timeout(self, seconds: float) -> Timeout:
        return Timeout(f"{self.endpoint.name}: {self.endpoint.url} did not answer in {seconds:g} seconds")

    def _attempt(self, data: bytes, key: str, deadline: float) -> _Reply:
        """Errors: TimeoutError at the deadline; OSError, HTTPException."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        with self._pool.lock:
            connection = self._pool.idle.pop() if self._pool.idle else None
        if connection is not None:
            try:
                return self._exchange(connection, data, headers, deadline)
            except TimeoutError:
                raise
            except (OSError, http.client.HTTPException):
                pass  # closed while it was idle: it is worth a new one
        return self._exchange(self._open(), data, headers, deadline)

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(host, port, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port)

    def _exchange(
        self, connection: http.client.HTTPConnection, data: bytes, headers: Mapping[str, str], deadline: float
    ) -> _Reply:
        keep = False
        try:
            connection.timeout = self._left(deadline)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request("POST", self._target, data, headers)
            connection.response_class = _timed_response(lambda: self._left(deadline))
            with connection.getresponse() as response:
                body = response.read(limits.REMOTE_ANSWER_BYTES + 1)
                if len(body) > limits.REMOTE_ANSWER_BYTES:
                    raise http.client.HTTPException(_TOO_LARGE.format(limits.REMOTE_ANSWER_BYTES))
                if response.length:
                    raise http.client.IncompleteRead(body, response.length)
                keep = not response.will_close
                return _Reply(response.status, body, response.getheader("Retry-After"))
        finally:
            if keep:
                with self._pool.lock:
                    self._pool.idle.append(connection)
            else:
                connection.close()

    def _left(self, deadline: float) -> float:
        """Seconds. Errors: TimeoutError where there are none."""
        left = deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        return left

    def _content(self, reply: _Reply, key: str) -> Any:
        if not 200 <= reply.status < 300:
            raise self._failure(reply, key)
        try:
            return orjson.loads(reply.body)
        except orjson.JSONDecodeError as error:
            problem = f"{self.endpoint.name}: {self.endpoint.url} answered no JSON: {error}"
            raise Unavailable(problem) from None

    def _failure(self, reply: _Reply, key: str) -> PaperwaspError:
        said = _said(reply.body)
        if key:
            said = said.replace(key, "…")
        problem = f"{self.endpoint.name}: {self.endpoint.url} answered {reply.status}" + (f": {said}" if said else "")
        if reply.status == 429:
            return Overload(problem)
        if reply.status in (401, 403):
            return Unavailable(f"{problem} (is the secret '{self.endpoint.secret_name}' right?)" if key else problem)
        return InvalidInput(problem) if reply.status in _REFUSED else Unavailable(problem)


def _wait_seconds(retry: int, reply: _Reply | None) -> float:
    """The pause before a retry, which count from 1: what the endpoint asks for, else a tenth of a second, doubled."""
    asked = reply.retry_after if reply is not None else None
    if asked is not None:
        asked = asked.strip()
        if asked.isascii() and asked.isdecimal():
            return float(asked[:9])
        try:
            return max(0.0, parsedate_to_datetime(asked).timestamp() - time.time())
        except (ValueError, TypeError, OverflowError):
            pass
    return min(limits.REMOTE_PAUSE_SECONDS, 0.1 * 2.0 ** (retry - 1))


def _said(body: bytes) -> str:
    """The message of an error: of OpenAI's form, of Voyage's or Hugging Face's, else the text itself."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")[:_SHOWN].strip()
    if isinstance(content, dict):
        error = content.get("error")
        found = error.get("message") if isinstance(error, dict) else error
        for each in (found, content.get("detail"), content.get("message")):
            if isinstance(each, str) and each:
                return each[:_SHOWN]
    return body.decode(errors="replace")[:_SHOWN].strip()


def _timed_response(left: Callable[[], float]) -> type[http.client.HTTPResponse]:
    """Responses whose every wait for bytes ends when no time is left: a socket's own timeout is that of one wait."""

    class _TimedResponse(http.client.HTTPResponse):
        def __init__(self, sock: socket.socket, *given: Any, **named: Any) -> None:
            super().__init__(sock, *given, **named)
            self.fp.close()
            self.fp = io.BufferedReader(_TimedReader(sock, left), _PIECE_BYTES)

    return _TimedResponse


class _TimedReader(io.RawIOBase):
    """Reads a socket, and keeps it open until it is closed itself; each read has what is left of the time.

    It reads no more than an answer may have, with room for its head: a length or a chunk may say less than comes.
    """

    def __init__(self, sock: socket.socket, left: Callable[[], float]) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._left = left
        self._bytes_left = limits.REMOTE_ANSWER_BYTES + _HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._bytes_left <= 0:
            raise http.client.HTTPException(_TOO_LARGE.format(limits.REMOTE_ANSWER_BYTES))
        self._sock.settimeout(self._left())
        count = self._raw.readinto(buffer)
        self._bytes_left -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()
