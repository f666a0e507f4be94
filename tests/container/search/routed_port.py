"""A port before a content node whose requests for words go by routes, and a client that sees bytes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from paperwasp.core import _core
from paperwasp.http.messages import Request
from paperwasp.http.routed_requests import RoutedRequests, SentAnswer
from paperwasp.http.server import HttpServer
from tests.container.search.text_peers import Peers

HOST: Final = "127.0.0.1"
_LENGTH: Final = b"content-length: "


class RoutedPort:
    """A server on a free port. `sent` has the answers that the core has written."""

    def __init__(self, peers: Peers) -> None:
        self._handler = peers.compiled.handler
        self.sent: list[SentAnswer] = []
        self.server = HttpServer(self._handler.begin, HOST, 0, routing=self)

    def route_of(self, request: Request) -> _core.TextRoute | None:
        return self._handler.route_of(request)

    def observe_sent(self, sent: Sequence[SentAnswer]) -> None:
        self.sent += sent

    @property
    def known(self) -> RoutedRequests:
        assert self.server._port is not None and self.server._port._routed is not None
        return self.server._port._routed

    async def ask(self, requests: Sequence[bytes], connections: int = 1) -> list[tuple[bytes, bytes]]:
        """Head and body of each answer. Every connection has one request under way."""
        found: list[tuple[bytes, bytes]] = [(b"", b"")] * len(requests)

        async def ask_some(first: int) -> None:
            async with connected(self.server.port) as (reader, writer):
                for number in range(first, len(requests), connections):
                    writer.write(requests[number])
                    found[number] = await read_answer(reader)

        async with asyncio.timeout(120):
            await asyncio.gather(*map(ask_some, range(connections)))
        return found


def run(peers: Peers, test: Callable[[RoutedPort], Coroutine[Any, Any, None]]) -> RoutedPort:
    """Runs a test of a port on the event loop of the peers."""

    async def served() -> RoutedPort:
        port = RoutedPort(peers)
        port.server.start()
        try:
            await test(port)
        finally:
            await asyncio.wait_for(port.server.stop(), 20)
        return port

    return peers.compiled._loop.run_until_complete(served())


async def turn() -> None:
    """A round of the event loop."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    loop.call_soon(done.set_result, None)
    await done


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.index(_LENGTH) + len(_LENGTH)
    return head, await reader.readexactly(int(head[at : head.index(b"\r\n", at)]))


def get(**parameters: object) -> bytes:
    return f"GET /search/?{urlencode(parameters)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(**parameters: object) -> bytes:
    body = orjson.dumps(parameters)
    head = f"POST /search/ HTTP/1.1\r\nHost: h\r\ncontent-type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
