"""A connection of HTTP/1.1 that sends any bytes as a request, and reads the answer within a time."""

from __future__ import annotations

import http.client
import shlex
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paperwasp.http.messages import Request, Response


@dataclass(frozen=True)
class Draft:
    """A request as it is sent: `target` is path and query string, all percent signs in place."""

    port: str
    """`container` or `configserver`."""
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    operation: str = ""
    """What it was made for."""
    seconds: float = 0.0
    """How long the answer may take beside the time that any may take."""

    def request(self) -> Request:
        path, _, query = self.target.partition("?")
        return Request(self.method, path, query, {name.lower(): value for name, value in self.headers}, self.body)

    def curl(self, url: str, folder: Path, number: int) -> str:
        """A line that sends it again. Its body goes into a file."""
        parts = ["curl", "-sS", "--path-as-is", "-g", "-X", self.method, url + self.target]
        for name, value in self.headers:
            parts += ["-H", f"{name}: {value}"]
        if self.body:
            file = folder / f"body{number}"
            file.write_bytes(self.body)
            parts += ["--data-binary", f"@{file}"]
        return shlex.join(parts)


class NoAnswer(Exception):
    """There is no answer in time, or one that cannot be read."""


class Connection:
    """One connection at a time to a port, made when it is needed."""

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        self._address: Final = (host, port)
        self._socket: socket.socket | None = None

    def ask(self, draft: Draft, seconds: float) -> Response:
        """The answer. Errors: NoAnswer, also where the connection ends twice before there is one."""
        for attempt in (1, 2):
            is_new = self._socket is None
            try:
                return self._ask(draft, time.monotonic() + seconds)
            except TimeoutError:
                self.close()
                raise NoAnswer(f"no answer in {seconds:g} seconds") from None
            except (OSError, http.client.HTTPException) as error:
                self.close()
                if attempt == 2 or is_new:
                    raise NoAnswer(f"{type(error).__name__}: {error}") from None
        raise AssertionError

    def _ask(self, draft: Draft, end: float) -> Response:
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=10)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(max(0.1, end - time.monotonic()))
        lines = [f"{draft.method} {draft.target} HTTP/1.1", f"Host: {self._address[0]}:{self._address[1]}"]
        lines += [f"{name}: {value}" for name, value in draft.headers]
        if draft.body or draft.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(draft.body)}")
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + draft.body)
        with http.client.HTTPResponse(self._socket, method=draft.method) as answer:
            answer.begin()
            body = answer.read()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if answer.will_close:
            self.close()
        return Response(answer.status, body, headers.get("content-type", ""), headers)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
