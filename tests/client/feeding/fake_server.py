"""A server of the document API that does what a test tells it to: HTTP/2 by the package h2, and plain HTTP/1.1."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes

HANDSHAKE = "/document/v1/feeder/handshake/docid/dummy?dryRun=true"


@dataclass
class Request:
    """A request that came whole, and the ways to answer it."""

    peer: Peer
    stream: int
    headers: dict[str, str]
    body: bytes = b""

    @property
    def method(self) -> str:
        return self.headers[":method"]

    @property
    def path(self) -> str:
        return self.headers[":path"]

    def answer(self, status: int = 200, body: bytes | None = None, **members: Any) -> None:
        """Answers with a JSON object of the members, or with a body as it is. Nothing happens if the stream is gone."""
        content = json.dumps({"pathId": self.path, **members}).encode() if body is None else body
        self.peer.answer(self.stream, status, content)

    def json(self) -> Any:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        return json.loads(body)


class Peer(asyncio.Protocol):
    """One connection of a client, over HTTP/2."""

    def __init__(self, server: FakeServer) -> None:
        self.server = server
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
        self.requests: dict[int, Request] = {}
        """Those that have begun and are not answered."""
        self.number = 0
        self.tls_name: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.peers.append(self)
        self.number = len(self.server.peers)
        self.h2.initiate_connection()
        if self.server.settings:
            self.h2.update_settings(self.server.settings)
        self.flush()
        self.server.on_connection(self)

    def data_received(self, data: bytes) -> None:
        try:
            events = self.h2.receive_data(data)
        except ProtocolError as error:
            self.server.violations.append(repr(error))
            self.transport.abort()
            return
        for event in events:
            if isinstance(event, RequestReceived):
                headers = {str(name): str(value) for name, value in event.headers}
                self.requests[event.stream_id] = Request(self, event.stream_id, headers)
            elif isinstance(event, DataReceived):
                self.requests[event.stream_id].body += event.data
                if self.server.reads:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamReset):
                self.server.resets.append((event.stream_id, int(event.error_code)))
                self.requests.pop(event.stream_id, None)
            elif isinstance(event, StreamEnded):
                self.server.take(self.requests[event.stream_id])
        self.flush()

    def answer(self, stream: int, status: int, body: bytes) -> None:
        if self.requests.pop(stream, None) is None or self.transport.is_closing():
            return
        self.h2.send_headers(stream, [(":status", str(status)), ("content-type", "application/json")])
        self.h2.send_data(stream, body, end_stream=True)
        self.flush()

    def reset(self, stream: int, code: ErrorCodes) -> None:
        self.requests.pop(stream, None)
        self.h2.reset_stream(stream, code)
        self.flush()

    def go_away(self, last_stream: int, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        """Says that streams above the last one are not worked on. h2 counts the connection as over after that."""
        frame = bytes([0, 0, 8, 7, 0, 0, 0, 0, 0]) + last_stream.to_bytes(4, "big") + int(code).to_bytes(4, "big")
        self.flush()
        self.transport.write(frame)

    def cut(self) -> None:
        """Breaks the connection."""
        self.transport.abort()

    def flush(self) -> None:
        if output := self.h2.data_to_send():
            self.transport.write(output)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open_peers -= 1


class OldPeer(Peer):
    """One connection of a client, over HTTP/1.1: an answer goes out in the way that the server's `framing` names."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.peers.append(self)
        self.number = len(self.server.peers)
        self.input = b""

    def data_received(self, data: bytes) -> None:
        self.input += data
        head, end, body = self.input.partition(b"\r\n\r\n")
        if not end:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, version = first.split(" ")
        headers = dict(line.split(": ", 1) for line in lines)
        size = int(headers["content-length"])
        if len(body) < size:
            return
        self.input = body[size:]
        if self.input or version != "HTTP/1.1" or self.requests:
            self.server.violations.append(f"more than one request at a time: {first}")
        self.requests[1] = Request(self, 1, {":method": method, ":path": path, **headers}, body[:size])
        self.server.take(self.requests[1])

    def answer(self, stream: int, status: int, body: bytes) -> None:
        if self.requests.pop(stream, None) is None or self.transport.is_closing():
            return
        head = b"HTTP/1.1 %d Whatever\r\nContent-Type: application/json\r\n" % status
        framing = self.server.framing
        if framing == "length":
            self.transport.write(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        elif framing == "chunks":
            parts = b"".join(
                b"%x;a=b\r\n%b\r\n" % (len(body[at : at + 7]), body[at : at + 7]) for at in range(0, len(body), 7)
            )
            self.transport.write(
                b"HTTP/1.1 103 Early\r\n\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
            )
        else:
            self.transport.write(head + b"Connection: close\r\n\r\n" + body)
            self.transport.close()


def accept(request: Request) -> None:
    """The behaviour of a server that takes everything."""
    request.answer(id="id")


@dataclass
class FakeServer:
    """Listens on 127.0.0.1 within `async with`. `on_request` has every request but the handshake."""

    on_request: Callable[[Request], None] = accept
    settings: dict[SettingCodes | int, int] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    handshake: Callable[[Request], None] = accept
    on_connection: Callable[[Peer], None] = lambda peer: None
    framing: str = "length"
    """How an old peer says where its answers end: by `length`, `chunks` or the `end` of the connection."""
    reads: bool = True
    """Whether what was read of bodies is given back to the windows."""
    protocol: Callable[[FakeServer], Peer] = field(default_factory=lambda: Peer)
    port: int = 0
    peers: list[Peer] = field(default_factory=list)
    """Every connection that was made."""
    open_peers: int = 0
    requests: list[Request] = field(default_factory=list)
    """In the order in which they were whole, without handshakes."""
    resets: list[tuple[int, int]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """What the client sent against the rules of HTTP/2."""

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def take(self, request: Request) -> None:
        if request.path == HANDSHAKE:
            self.handshake(request)
        else:
            self.requests.append(request)
            self.on_request(request)

    def make_peer(self) -> asyncio.Protocol:
        self.open_peers += 1
        return self.protocol(self)

    async def __aenter__(self) -> FakeServer:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.make_peer, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        if error is None:
            assert self.violations == []

    async def stop(self) -> None:
        """Takes no more connections and breaks those that there are."""
        self._server.close()
        for peer in self.peers:
            peer.transport.abort()
        await self._server.wait_closed()
