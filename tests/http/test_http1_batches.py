"""Requests of a feed over HTTP/1.1: those of several connections are begun as one batch, as those of HTTP/2 are."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct

import pytest

from paperwasp.errors import Overload
from paperwasp.http.server import HttpServer
from tests.http import test_request_batches as http2
from tests.http.http_servers import connect, connections_of, context_of, serve_for, until, whole_answer
from tests.http.test_request_batches import LIMIT_BYTES, Handler

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
OK = b"HTTP/1.1 200 OK"


def post(number: int, body: bytes, fields: str = "", version: str = "1.1") -> bytes:
    head = f"POST /feed/{number} HTTP/{version}\r\nHost: h\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def ask(server: HttpServer, handler: Handler, *requests: bytes) -> list[Streams]:
    """Sends each request over a connection of its own, behind one that waits for its answer, so that they gather."""
    first = await connect(server)
    first[1].write(post(0, b"first"))
    await until(lambda: bool(handler.batches))
    clients = [first, *[await connect(server) for _ in requests]]
    for (_, writer), request in zip(clients[1:], requests, strict=True):
        writer.write(request)
    return clients


def close(clients: list[Streams]) -> None:
    for _, writer in clients:
        writer.close()


def test_requests_of_several_connections_are_one_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.HTTP_BATCH_SECONDS", 1000)
    monkeypatch.setattr("paperwasp.limits.HTTP_BATCH_REQUESTS", 3)
    handler = Handler()

    async def test(server: HttpServer) -> None:
        clients = await ask(server, handler, post(1, b"a"), post(2, b"bb"), post(3, b"ccc"))
        await until(lambda: len(handler.batches) == 2)
        batch, context = handler.batches[1], context_of(server)
        assert sorted(zip(batch.names, batch.bodies, strict=True)) == [("1", b"a"), ("2", b"bb"), ("3", b"ccc")]
        assert (batch.head.raw_path, dict(batch.head.headers)) == ("/feed/", {"host": "h"})
        assert context.budget.held_bytes == 11 and context.running == set(handler.batches)
        failed, one, other = (batch.names.index(name) for name in "123")
        batch.answer(failed, Overload("too many"))
        batch.succeed(one, b"second")
        line, body = await whole_answer(clients[1][0])
        assert line == b"HTTP/1.1 429 Too Many Requests" and b"too many" in body
        assert await whole_answer(clients[2][0]) == (OK, b"second")
        assert sum(not each.is_idle for each in connections_of(server)) == 2
        clients[2][1].write(post(4, b"d"))  # though the batch is not over, this connection goes on
        clients[1][1].write(post(5, b"e"))
        batch.succeed(other, b"third")
        assert await whole_answer(clients[3][0]) == (OK, b"third")
        clients[3][1].write(post(6, b"f"))
        await until(lambda: len(handler.batches) == 3)
        for each in (handler.batches[0], handler.batches[2]):
            each.succeed_all(0, [b"last"] * len(each.bodies))
        assert [await whole_answer(reader) for reader, _ in clients] == [(OK, b"last")] * 4
        assert not context.running and context.budget.held_bytes == 0
        assert all(each.is_idle for each in connections_of(server))
        assert ("HTTP/1.1/feed/2", b"second", 2, 6) in handler.observed and len(handler.observed) == 6
        close(clients)

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_what_is_not_taken_is_begun_alone_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Handler(takes=0)
    packed, wrong = gzip.compress(b"packed"), b"Content-Encoding: br\r\n"

    async def test(server: HttpServer) -> None:
        reader, writer = client = await connect(server)

        async def answer_to(request: bytes) -> tuple[bytes, bytes]:
            writer.write(request)
            return await whole_answer(reader)

        assert await answer_to(post(1, b"whole")) == (OK, b"alone whole")
        assert await answer_to(post(2, packed, "Content-Encoding: gzip\r\nX: y\r\n")) == (OK, b"alone packed")
        assert [batch.bodies for batch in handler.batches] == [[b"whole"], [b"packed"]]
        fields = {"host": "h", "content-encoding": "gzip", "x": "y", "content-length": str(len(packed))}
        assert handler.alone[1].headers == fields and handler.alone[1].raw_path == "/feed/2"
        assert (await answer_to(post(3, b"wrong", wrong.decode())))[0] == b"HTTP/1.1 400 Bad Request"
        assert (await answer_to(post(4, b"l" * (LIMIT_BYTES + 1))))[0] == b"HTTP/1.1 413 Payload Too Large"
        budget = context_of(server).budget
        budget.held_bytes += 1
        monkeypatch.setattr(budget, "_limit_bytes", budget.held_bytes)
        assert (await answer_to(post(5, b"full")))[0] == b"HTTP/1.1 429 Too Many Requests"
        monkeypatch.undo()
        budget.held_bytes -= 1
        assert len(handler.batches) == 2
        chunked = b"POST /feed/6 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n"
        assert await answer_to(chunked) == (OK, b"alone c")
        assert await answer_to(post(7, b"old", "Connection: keep-alive\r\n", "1.0")) == (
            b"HTTP/1.0 200 OK",
            b"alone old",
        )
        assert await answer_to(post(8, b"").replace(b"/8 ", b"/ ")) == (OK, b"alone ")
        assert len(handler.batches) == 2 and budget.held_bytes == 0 and not context_of(server).running
        assert await answer_to(post(9, b"last", "Connection: close\r\n")) == (OK, b"alone last")
        assert await reader.read() == b""
        close([client])

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_batch_is_of_one_protocol() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await http2.opened(server)
        streams = await http2.ask(client, [b"a"])
        await until(lambda: bool(handler.batches))
        clients = await ask(server, handler, post(0, b"b"))
        streams += await http2.ask(client, [b"c"])
        await until(lambda: sum(len(batch.bodies) for batch in handler.batches) == 4)
        for batch in handler.batches:
            batch.succeed_all(0, [b"done"] * len(batch.bodies))
        assert [await client.answer(stream) for stream in streams] == [("200", b"done")] * 2
        assert [await whole_answer(reader) for reader, _ in clients] == [(OK, b"done")] * 2
        versions = [each.split("/feed")[0] for each, *_ in handler.observed]
        assert sorted(versions) == ["HTTP/1.1"] * 2 + ["HTTP/2.0"] * 2
        client.close()
        close(clients)

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_server_that_stops_waits_for_what_it_has_taken() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(post(0, b"a"))
        await until(lambda: bool(handler.batches))
        stopping = asyncio.create_task(server.stop())
        await until(lambda: connections_of(server)[0].is_draining)
        assert not stopping.done()
        handler.batches[0].succeed(0, b"done")
        whole = await asyncio.wait_for(reader.read(), 10)
        assert whole.endswith(b"\r\n\r\ndone") and b"connection: close\r\n" in whole
        await asyncio.wait_for(stopping, 10)
        writer.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_answers_to_clients_that_are_gone_go_nowhere_and_are_counted() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        async def lose(number: int) -> None:
            _, writer = await connect(server)
            writer.write(post(number, b"a"))
            await until(lambda: len(handler.batches) > number)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            await until(lambda: not connections_of(server))

        await lose(0)
        await lose(1)
        assert len(context_of(server).running) == 2
        handler.batches[0].succeed(0, b"unread")
        handler.batches[1].answer(0, Overload("too many"))
        await until(lambda: not context_of(server).running)
        assert len(handler.observed) == 1 and context_of(server).budget.held_bytes == 0

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())
