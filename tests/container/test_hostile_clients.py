"""Clients that say nothing, or too slowly, or too much: none of them keeps a port from others."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from paperwasp import limits
from paperwasp.container import connections as connections_module
from paperwasp.container import request_bodies
from paperwasp.container.connections import Client, ConnectionGuard
from paperwasp.container.request_bodies import BodyBudget
from paperwasp.container.server import HttpServer
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse, json_response
from tests.container.http_servers import HOST, serve_for

LIMIT_BYTES = 100_000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


async def answer(request: Request) -> Answer:
    if request.raw_path == "/stream":
        return StreamedResponse(200, _endless())
    return json_response(200, {"size": len(request.body)})


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(65536)


def serve(test: Callable[[HttpServer], Awaitable[None]]) -> None:
    serve_for(test, answer, LIMIT_BYTES)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that a test can wait for."""
    for name, seconds in (
        ("HTTP_FIRST_REQUEST_SECONDS", 0.1),
        ("HTTP_LOOK_SECONDS", 0.02),
        ("HTTP_BODY_SECONDS", 0.1),
        ("HTTP_STREAM_UNREAD_SECONDS", 0.1),
        ("HTTP_IDLE_MS", 300),
    ):
        monkeypatch.setattr(limits, name, seconds)


async def all_of(server: HttpServer, sent: bytes) -> bytes:
    """What the server sends until it closes the connection, which the client leaves open."""
    reader, writer = await asyncio.open_connection(HOST, server.port)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


@pytest.mark.parametrize(
    "sent", [b"", b"P", PREFACE[:10], PREFACE, b"GET / HT", b"GET / HTTP/1.1\r\nHost: h\r\n"], ids=repr
)
@pytest.mark.usefixtures("hurried")
def test_a_connection_that_asks_nothing_is_closed(sent: bytes) -> None:
    async def test(server: HttpServer) -> None:
        assert b" 200 " not in await all_of(server, sent)

    serve(test)


@pytest.mark.usefixtures("hurried")
def test_a_connection_may_be_idle_for_a_while_after_an_answer() -> None:
    async def test(server: HttpServer) -> None:
        assert (await all_of(server, GET)).count(b"HTTP/1.1 200 OK") == 1
        assert (await all_of(server, GET + GET)).count(b"HTTP/1.1 200 OK") == 2

    serve(test)


@pytest.mark.parametrize("head", [b"Content-Length: 50", b"Transfer-Encoding: chunked"])
@pytest.mark.usefixtures("hurried")
def test_a_body_that_does_not_come_is_given_up(head: bytes) -> None:
    async def test(server: HttpServer) -> None:
        found = await all_of(server, b"POST / HTTP/1.1\r\nHost: h\r\n" + head + b"\r\n\r\n5\r\nhello\r\n")
        assert found.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"HTTP_BODY_SECONDS" in found

    serve(test)


@pytest.mark.usefixtures("hurried")
def test_a_body_that_has_come_may_wait_to_be_inflated() -> None:
    body = gzip.compress(bytes(90_000))
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def test(server: HttpServer) -> None:
        guard = server._guard
        async with server._inflating:
            found = asyncio.create_task(all_of(server, head + body))
            while guard._readings or not any(each.has_asked for each in guard._connections.values()):
                await asyncio.to_thread(lambda: None)
        assert b'{"size":90000}' in await found

    serve(test)


@pytest.mark.usefixtures("hurried")
def test_a_streamed_answer_that_nobody_reads_is_given_up() -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port, limit=1)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        while server._streams or not server._guard._connections:  # nothing tells of the end
            await asyncio.wait([asyncio.create_task(asyncio.to_thread(lambda: None))])
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(reader.readexactly(1 << 30), 10)
        writer.close()

    serve(test)


def test_streams_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS", 1)

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        found = await all_of(server, b"GET /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 429 ")
        assert b"HTTP_STREAMED_ANSWERS" in found
        writer.close()

    serve(test)


def test_bodies_have_one_common_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for its end holds most of it; a second finds no room, and room is there again when the first is
    answered."""
    budget = BodyBudget(1000)
    monkeypatch.setattr("paperwasp.container.server.BODIES", budget)

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + bytes(4999))
        while budget.held_bytes < 4999:  # alone it may be larger than the bound
            await asyncio.wait([asyncio.create_task(asyncio.to_thread(lambda: None))])
        small = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 10\r\n\r\n" + bytes(10)
        found = await all_of(server, small)
        assert found.startswith(b"HTTP/1.1 429 ")
        assert b"at most 1000 (HTTP_BODIES_BYTES in paperwasp.limits)" in found
        writer.write(b"!")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        assert (await all_of(server, small)).startswith(b"HTTP/1.1 200 ")
        assert budget.held_bytes == 0

    serve(test)


def test_what_a_body_inflates_to_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = BodyBudget(1000)
    monkeypatch.setattr("paperwasp.container.server.BODIES", budget)
    budget.held_bytes = 900

    async def test(server: HttpServer) -> None:
        squeezed = gzip.compress(bytes(5000))
        head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Encoding: gzip\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(squeezed)
        assert (await all_of(server, head + length + squeezed)).startswith(b"HTTP/1.1 429 ")
        assert budget.held_bytes == 900

    serve(test)


@pytest.mark.parametrize("length", [900_000_000, 2**63 - 1])
def test_a_body_that_is_announced_too_long_is_refused_before_it_is_asked_for(length: int) -> None:
    async def test(server: HttpServer) -> None:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        found = await all_of(server, head % length)
        assert found.startswith(b"HTTP/1.1 413 ")
        assert b"limit 100000 bytes" in found

    serve(test)


def test_who_announces_more_than_anybody_sends_need_not_send_it() -> None:
    async def test(server: HttpServer) -> None:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9223372036854775807\r\n\r\nx"
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(head)
        assert await asyncio.wait_for(reader.readline(), 10) == b"HTTP/1.1 413 Payload Too Large\r\n"
        writer.close()

    serve(test)


def test_broken_chunks_are_said_to_be_broken() -> None:
    async def test(server: HttpServer) -> None:
        head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        found = await all_of(server, head + b"zz\r\nhello\r\n0\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 400 ")
        assert b"its chunks are broken, or the client went away before its end" in found

    serve(test)


@pytest.mark.parametrize(
    ("head", "status", "message"),
    [
        (b"GET / HTTP/1.1\r\n", 400, b"No Host"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n", 400, b"Bad Host"),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n", 400, b"Bad Host"),
        (b"GET / HTTP/1.1\r\nHost: a:b\r\n", 400, b"Bad Host"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400, b"Bad Host"),
        (b"GET / HTTP/1.1\r\nHost: a-b.example:8080\r\n", 200, b""),
        (b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n", 200, b""),
        (b"GET / HTTP/1.0\r\n", 200, b""),
    ],
)
def test_the_host_is_demanded_and_checked(head: bytes, status: int, message: bytes) -> None:
    """RFC 9112, 3.2: a server answers 400 to a request of HTTP/1.1 without a Host, or with an invalid one."""

    async def test(server: HttpServer) -> None:
        found = await all_of(server, head + b"Connection: close\r\n\r\n")
        assert re.match(rb"HTTP/1.[01] %d " % status, found)
        assert message in found

    serve(test)


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def clients(address: str, count: int) -> list[Client]:
    return [(address, str(number)) for number in range(count)]


def test_the_silent_go_first_and_the_busy_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight that may be there, six is crowded and four is calm."""
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CROWDED", 6)
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CALM", 4)
    now = Time()
    guard = ConnectionGuard(1, now)
    busy, answered, silent = ("busy", "1"), ("answered", "2"), clients("silent", 5)
    guard.begin(busy)
    guard.end(guard.begin(answered))
    now.seconds += 1
    there = dict.fromkeys([busy, answered, *silent], 0)
    assert guard.choose(dict.fromkeys([busy, answered, *silent[:4]], 0)) == []
    assert guard.choose(there) == silent[:3]
    assert guard.choose(dict.fromkeys([busy, answered, *clients("other", 5)], 0)) == clients("other", 3)


def test_an_address_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS", 3)
    guard = ConnectionGuard(1, Time())
    many, few = clients("many", 5), clients("few", 3)
    guard.begin(many[0])
    assert guard.choose(dict.fromkeys([*many, *few], 0)) == many[1:3]


def test_the_longest_unread_answers_go_where_they_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_UNREAD_ANSWERS_BYTES", 4_000_000)
    now = Time()
    guard = ConnectionGuard(1, now)
    first, small, second, third = clients("a", 4)
    there = dict.fromkeys([first, small, second, third], 0)
    for client, size_bytes in ((first, 2_000_000), (small, limits.HTTP_LARGE_ANSWER_BYTES - 1), (second, 2_000_000)):
        connection = guard.begin(client)
        guard.note_answer(connection, size_bytes)
        guard.end(connection)
        now.seconds += 1
    assert guard.choose(there) == []
    busy = guard.begin(third)
    guard.note_answer(busy, 2_000_000)
    assert guard.choose(there) == [first]
    guard.note_answer(busy, 500_000)
    assert guard.choose(there) == [first, second]


def test_a_look_forgets_no_connection_that_is_younger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that came, and was answered, while the sockets were looked at still has its unread answer."""
    monkeypatch.setattr(limits, "HTTP_UNREAD_ANSWERS_BYTES", 1_000_000)
    now = Time()
    guard = ConnectionGuard(1, now)
    gone, young = clients("a", 2)
    guard.end(guard.begin(gone))
    now.seconds += 1
    began = now()
    connection = guard.begin(young)
    guard.note_answer(connection, 2_000_000)
    guard.end(connection)
    guard.forget_gone({}, began)
    assert guard.choose({young: 0}) == [young]
    assert guard._connections.keys() == {young}


def test_answers_that_nobody_reads_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of four are read after the other two were given up; those that are read do not count."""
    size_bytes = 16 * 1024 * 1024
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(limits, "HTTP_UNREAD_ANSWERS_BYTES", 2 * size_bytes)
    # On a busy machine the library takes longer to begin writing, and what it has not begun looks as if it were read.
    monkeypatch.setattr(connections_module, "_HANDOVER_SECONDS", 300.0)

    async def large(request: Request) -> Answer:
        return Response(200, bytes(size_bytes), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        connections = server._guard._connections

        async def until_unread(wanted: set[Client]) -> None:
            while {client for client, each in connections.items() if each.unread_bytes} != wanted:
                await asyncio.to_thread(lambda: None)

        lines, clients_of = [], list[Client]()
        for _ in range(4):
            reader, writer = await asyncio.open_connection(HOST, server.port, limit=1)
            lines.append((reader, writer))
            clients_of.append((HOST, str(writer.get_extra_info("sockname")[1])))
            writer.write(GET)
            await asyncio.wait_for(until_unread(set(clients_of[-2:])), 30)
        for reader, _ in lines[:2]:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asyncio.wait_for(reader.readexactly(size_bytes), 30)
        for reader, _ in lines[2:]:
            await asyncio.wait_for(reader.readexactly(size_bytes), 30)
        monkeypatch.setattr(connections_module, "_HANDOVER_SECONDS", 0.1)
        await asyncio.wait_for(until_unread(set()), 30)
        for _, writer in lines:
            writer.close()

    serve_for(test, large, LIMIT_BYTES)


def test_time_runs_from_the_first_look_and_from_the_last_answer() -> None:
    now = Time()
    guard = ConnectionGuard(1, now)
    silent, answered = ("a", "1"), ("a", "2")
    there = {silent: 0, answered: 0}
    assert guard.choose(there) == []
    connection = guard.begin(answered)
    now.seconds += limits.HTTP_FIRST_REQUEST_SECONDS + 1
    assert guard.choose(there) == [silent]
    now.seconds += limits.HTTP_IDLE_MS
    assert guard.choose(there) == [silent]  # the other one's request is under way
    guard.end(connection)
    now.seconds += limits.HTTP_IDLE_MS / 1000 - 1
    assert guard.choose({answered: 0}) == []
    now.seconds += 2
    assert guard.choose({answered: 0}) == [answered]


def test_the_budget_of_the_process_is_that_of_the_limits() -> None:
    assert request_bodies.BODIES.held_bytes == 0
