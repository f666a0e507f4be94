"""A stand-in for a service that models run on: it answers what a test says, and keeps what it was asked."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    body: Any
    """Its JSON."""


@dataclass(frozen=True)
class Reply:
    """What is answered. `raw`: these bytes instead of an HTTP response, after which the connection is closed."""

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


@dataclass
class StandIn:
    """A server that runs: where it is, what it was asked so far, and what it answers."""

    url: str
    answer: Callable[[Asked], Reply | object]
    """It may be replaced while the server runs. A value that is not a Reply is the JSON of one."""
    asked: list[Asked] = field(default_factory=list)

    @property
    def bodies(self) -> list[Any]:
        return [each.body for each in self.asked]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a client that has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def stand_in(answer: Callable[[Asked], Reply | object]) -> Iterator[StandIn]:
    """Serves on a free port of this machine alone, a thread for each connection."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, orjson.loads(content))
            found.asked.append(asked)
            made = found.answer(asked)
            reply = made if isinstance(made, Reply) else Reply(made)
            if reply.raw is not None:
                self.wfile.write(reply.raw)
                self.close_connection = True
                return
            body = orjson.dumps(reply.body) if not isinstance(reply.body, bytes) else reply.body
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    found = StandIn(f"http://127.0.0.1:{server.server_port}", answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
