"""Connections of HTTP/1.1 that feed, whose sockets a thread of the core reads: whatever else comes on them, and however
they end, they are answered as all others are."""

from __future__ import annotations

import asyncio
import gzip
import random
import re
import socket
import struct
from collections.abc import Sequence

from paperwasp.errors import Overload
from paperwasp.http.server import HttpServer
from tests.chance import SEED
from tests.http.http_servers import connect, connections_of, context_of, get, serve_for, until, whole_answer
from tests.http.test_connection_fuzz import Together, _pause, answer
from tests.http.test_http1_batches import OK, Streams, post
from tests.http.test_request_batches import LIMIT_BYTES, Handler


def read_count(server: HttpServer) -> int:
    """How many sockets the thread reads."""
    batches = context_of(server).batches
    assert batches is not None
    return len(batches.reader)


async def fed(server: HttpServer, handler: Handler, count: int = 1) -> list[Streams]:
    """Connections that the thread reads."""
    clients = [await connect(server) for _ in range(count)]
    for client in clients:
        assert await put(handler, client, b"first") == (OK, b"done")
    assert read_count(server) == count
    handler.batches.clear()
    return clients


async def put(handler: Handler, client: Streams, body: bytes) -> tuple[bytes, bytes]:
    """The answer to a put that is taken."""
    reader, writer = client
    taken = len(handler.batches)
    writer.write(post(0, body))
    await until(lambda: len(handler.batches) > taken)
    assert handler.batches[taken].bodies == [body]
    handler.batches[taken].succeed(0, b"done")
    return await whole_answer(reader)


def test_whatever_else_comes_is_read_and_answered() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        (client,) = await fed(server, handler)
        reader, writer = client
        traffic = server.traffic
        received_bytes, sent_bytes = traffic.received_bytes, traffic.sent_bytes
        assert await put(handler, client, b"second") == (OK, b"done") and read_count(server) == 1
        writer.write(get("/other"))
        assert await whole_answer(reader) == (OK, b"alone ") and read_count(server) == 0
        assert traffic.received_bytes == received_bytes + len(post(0, b"second")) + len(get("/other"))
        assert traffic.sent_bytes > sent_bytes + 200
        assert await put(handler, client, b"third") == (OK, b"done") and read_count(server) == 1
        whole = post(1, b"in pieces")
        writer.write(whole[:30])
        await until(lambda: read_count(server) == 0)
        writer.write(whole[30:])
        await until(lambda: handler.batches[-1].bodies == [b"in pieces"])
        handler.batches[-1].succeed(0, b"done")
        assert await whole_answer(reader) == (OK, b"done")
        writer.write(post(1, b"ahead") + post(2, b"behind"))
        for body in (b"ahead", b"behind"):
            await until(lambda body=body: handler.batches[-1].bodies == [body])  # type: ignore[misc]
            handler.batches[-1].succeed(0, body)
            assert await whole_answer(reader) == (OK, body)
        assert await put(handler, client, b"fourth") == (OK, b"done") and read_count(server) == 1
        writer.write(b"no request\n\r\n")
        assert (await whole_answer(reader))[0] == b"HTTP/1.1 400 Bad Request"
        assert await reader.read() == b""
        writer.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_what_is_not_taken_or_fails_is_answered_alone() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        ((reader, writer),) = await fed(server, handler)
        writer.write(post(7, b"fails"))
        await until(lambda: bool(handler.batches))
        assert handler.batches[0].request(0).raw_path == "/feed/7" and read_count(server) == 1
        assert not connections_of(server)[0].is_idle
        handler.batches[0].answer(0, Overload("too many"))
        assert (await whole_answer(reader))[0] == b"HTTP/1.1 429 Too Many Requests" and read_count(server) == 0
        assert connections_of(server)[0].is_idle
        assert await put(handler, (reader, writer), b"a") == (OK, b"done") and read_count(server) == 1
        handler._takes = 0
        writer.write(post(8, b"alone"))
        assert await whole_answer(reader) == (OK, b"alone alone")
        request = handler.alone[-1]
        assert (request.raw_path, request.headers) == ("/feed/8", {"host": "h", "content-length": "5"})
        assert (request.address, read_count(server)) == ("127.0.0.1", 0)
        assert not context_of(server).running and context_of(server).budget.held_bytes == 0
        writer.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_bodies_are_held_within_their_limits() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        (client,) = await fed(server, handler)
        client[1].write(post(1, b"l" * (LIMIT_BYTES + 1)))
        assert (await whole_answer(client[0]))[0] == b"HTTP/1.1 413 Payload Too Large"
        packed = gzip.compress(b"packed")
        for _ in range(2):
            client[1].write(post(1, packed, "Content-Encoding: gzip\r\n"))
            await until(lambda: bool(handler.batches))
            assert handler.batches[0].bodies == [b"packed"]
            assert context_of(server).budget.held_bytes == len(packed) + len(b"packed")
            handler.batches.pop().succeed(0, b"done")
            assert await whole_answer(client[0]) == (OK, b"done") and read_count(server) == 1
        client[1].close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_server_that_stops_answers_what_was_read() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        (idle, waiting) = await fed(server, handler, 2)
        waiting[1].write(post(1, b"a"))
        await until(lambda: bool(handler.batches))
        stopping = asyncio.create_task(server.stop())
        assert await asyncio.wait_for(idle[0].read(), 10) == b""
        assert not stopping.done()
        handler.batches[0].succeed(0, b"last")
        whole = await asyncio.wait_for(waiting[0].read(), 10)
        assert whole.endswith(b"\r\n\r\nlast") and b"connection: close\r\n" in whole
        await asyncio.wait_for(stopping, 10)
        assert read_count(server) == 0
        for _, writer in (idle, waiting):
            writer.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_clients_may_go_at_any_time() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        idle, ended, reset = await fed(server, handler, 3)
        idle[1].close()
        await until(lambda: read_count(server) == 2)
        ended[1].write(post(1, b"a"))
        ended[1].write_eof()
        await until(lambda: bool(handler.batches))
        handler.batches[0].succeed(0, b"read")
        assert (await asyncio.wait_for(ended[0].read(), 10)).endswith(b"read")
        reset[1].write(post(2, b"b"))
        await until(lambda: len(handler.batches) == 2)
        linger = struct.pack("ii", 1, 0)
        reset[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        reset[1].transport.abort()
        await until(lambda: not connections_of(server))
        assert read_count(server) == 0 and context_of(server).running
        handler.batches[1].succeed(0, b"unread")
        await until(lambda: not context_of(server).running)
        assert context_of(server).budget.held_bytes == 0
        ended[1].close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_client_that_does_not_read_has_its_answer_when_it_does() -> None:
    handler = Handler()
    body = bytes(range(256)) * 40_000

    async def test(server: HttpServer) -> None:
        ((reader, writer),) = await fed(server, handler)
        writer.write(post(1, b"a"))
        await until(lambda: bool(handler.batches))
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        handler.batches[0].succeed(0, body)
        await until(lambda: connections_of(server)[0].unread_bytes > 0)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert await whole_answer(reader) == (OK, body)
        await until(lambda: connections_of(server)[0].is_idle)
        assert await put(handler, (reader, writer), b"b") == (OK, b"done")
        writer.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


REQUESTS = (
    *(post(number, b"x" * number) for number in range(1, 20)),
    post(1, b"put").replace(b"POST", b"PUT"),
    post(1, b"a", "X: y\r\n"),
    post(1, gzip.compress(b"packed"), "Content-Encoding: gzip\r\n"),
    post(1, b"broken", "Content-Encoding: gzip\r\n"),
    post(1, b"l" * (LIMIT_BYTES + 1)),
    post(1, b"").replace(b"/1 ", b"/ "),
    b"POST /feed/1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    get("/feed/1"),
    get("/wait"),
)


def test_random_requests_are_answered_as_without_batches() -> None:
    choice = random.Random(SEED)
    sent = [choice.choices(REQUESTS, weights=[3] * 19 + [1] * (len(REQUESTS) - 19), k=60) for _ in range(8)]
    sizes = [[choice.choice((10_000, 10_000, 10_000, 20, 150)) for _ in range(60)] for _ in range(8)]
    found: list[list[bytes]] = []
    reads: list[int] = []

    async def test(server: HttpServer) -> None:
        found.append(await asyncio.gather(*map(ask_all, [server] * 8, sent, sizes, [reads] * 8)))

    serve_for(test, answer, LIMIT_BYTES)
    assert not any(reads)
    together = Together(choice)
    serve_for(test, answer, LIMIT_BYTES, batches=together.batches)
    assert found[0] == found[1], SEED
    assert sum(reads) > 100, SEED


async def ask_all(server: HttpServer, requests: Sequence[bytes], sizes: Sequence[int], reads: list[int]) -> bytes:
    """All answers to requests over one connection, each sent in pieces of some size when the one before is answered."""
    reader, writer = await connect(server)
    answers = b""
    for request, size in zip(requests, sizes, strict=True):
        for at in range(0, len(request), size):
            writer.write(request[at : at + size])
            await _pause()
        line, body = await whole_answer(reader)
        answers += line + body
        batches = context_of(server).batches
        reads.append(0 if batches is None else len(batches.reader))
    writer.close()
    return re.sub(rb"date: [^\r]*", b"date", answers)
