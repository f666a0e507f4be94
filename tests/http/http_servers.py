"""Servers on free ports for as long as one test takes, and what tests look at inside them."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

import httpx
import pytest

from paperwasp.http.connection import Connection
from paperwasp.http.exchange import Handler, PortContext
from paperwasp.http.messages import Answer, Request, json_response
from paperwasp.http.request_batch import Batches
from paperwasp.http.server import HttpServer, _OpenPort
from paperwasp.http.tls import ServerContext

HOST = "127.0.0.1"
LIMIT_BYTES = 100_000
"""Of bodies, where a test says nothing else."""
BOTH = pytest.mark.parametrize("http2", [False, True], ids=["http1", "h2"])


def serve_for(
    test: Callable[[HttpServer], Awaitable[None]],
    handler: Handler,
    limit_bytes: int = LIMIT_BYTES,
    tls: ServerContext | None = None,
    batches: Batches | None = None,
) -> None:
    """Runs the test against a server whose bodies have at most `limit_bytes`, and ends the server."""

    async def run() -> None:
        server = HttpServer(handler, HOST, 0, body_limit_bytes=lambda _: limit_bytes, tls=tls, batches=batches)
        server.start()
        try:
            await test(server)
        finally:
            await asyncio.wait_for(server.stop(), 10)

    asyncio.run(run())


def client_of(
    server: HttpServer,
    http2: bool,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> httpx.AsyncClient:
    """A client that speaks one protocol only, and sends these headers with every request."""
    address = f"http{'s' if tls else ''}://{HOST}:{server.port}"
    return httpx.AsyncClient(base_url=address, verify=tls or True, headers=headers, http1=not http2, http2=http2)


def port_of(server: HttpServer) -> _OpenPort:
    assert server._port is not None
    return server._port


def context_of(server: HttpServer) -> PortContext:
    return port_of(server)._context


def connections_of(server: HttpServer) -> list[Connection]:
    return list(port_of(server)._connections)


def unread_of(server: HttpServer) -> list[Connection]:
    return [each for each in connections_of(server) if each.unread_bytes]


def look_at(server: HttpServer) -> None:
    """One look at the connections, on the thread of the event loop."""
    done = threading.Event()

    def look() -> None:
        port_of(server)._look()
        done.set()

    context_of(server).loop.call_soon_threadsafe(look)
    assert done.wait(10)


def get(path: str, fields: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n".encode()


async def echo(request: Request) -> Answer:
    return json_response(200, {"path": request.raw_path, "size": len(request.body), "host": request.host})


async def connect(server: HttpServer, limit: int = 1 << 20) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(HOST, server.port, limit=limit)


async def whole_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The first line of an answer of known length, and its body."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head.split(b"\r\n")[0], await asyncio.wait_for(reader.readexactly(length), 10)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.to_thread(lambda: None)


class Held:
    """A handler that answers a path that begins with `/wait` only when it may."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    async def __call__(self, request: Request) -> Answer:
        self.begun.append(request.raw_path)
        if request.raw_path.startswith("/wait"):
            await self.may_end.wait()
        return await echo(request)


def serve_held(test: Callable[[HttpServer, Held], Awaitable[None]]) -> None:
    held = Held()

    async def run(server: HttpServer) -> None:
        try:
            await test(server, held)
        finally:
            held.may_end.set()

    serve_for(run, held)
