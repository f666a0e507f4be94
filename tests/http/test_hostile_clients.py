"""Clients that say nothing, or too slowly, or too much: none of them keeps a port from others."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from paperwasp import limits
from paperwasp.errors import Overload
from paperwasp.http import bodies
from paperwasp.http.bodies import BodyBudget
from paperwasp.http.eviction import choose_leaving, choose_unread
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse, json_response
from paperwasp.http.server import HttpServer
from paperwasp.http.streaming import Unread, make_room
from tests.core.http.http2_frames import PREFACE
from tests.http.http_servers import (
    HOST,
    LIMIT_BYTES,
    connections_of,
    context_of,
    get,
    look_at,
    serve_for,
    unread_of,
    until,
)

GET = get("/")


async def answer(request: Request) -> Answer:
    if request.raw_path == "/stream":
        return StreamedResponse(200, _endless())
    if request.raw_path == "/quiet":
        return StreamedResponse(200, _quiet())
    return json_response(200, {"size": len(request.body)})


async def _endless() -> AsyncIterator[bytes]:
    while True:
        yield bytes(65536)


async def _quiet() -> AsyncIterator[bytes]:
    yield b"a"
    await asyncio.Event().wait()


def serve(test: Callable[[HttpServer], Awaitable[None]]) -> None:
    serve_for(test, answer)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times that a test can wait for."""
    for name, seconds in (
        ("HTTP_FIRST_REQUEST_SECONDS", 0.1),
        ("HTTP_LOOK_SECONDS", 0.02),
        ("HTTP_BODY_SECONDS", 0.1),
        ("HTTP_UNREAD_SECONDS", 0.1),
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
        service = context_of(server)
        async with service.inflating:
            found = asyncio.create_task(all_of(server, head + body))
            while not service.running:
                await asyncio.to_thread(lambda: None)
            for _ in range(100):  # several looks at the connections
                await asyncio.to_thread(look_at, server)
        assert b'{"size":90000}' in await found

    serve(test)


@pytest.mark.usefixtures("hurried")
def test_a_streamed_answer_that_nobody_reads_is_given_up() -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port, limit=1)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n")
        streams = context_of(server).streams
        for is_sent in (True, False):  # nothing tells of the end
            while bool(streams) != is_sent:
                await asyncio.to_thread(lambda: None)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(reader.readexactly(1 << 30), 10)
        writer.close()

    serve(test)


def test_streams_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS", 1)

    async def test(server: HttpServer) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        writer.write(get("/quiet"))
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        found = await all_of(server, get("/quiet", "Connection: close\r\n"))
        assert found.startswith(b"HTTP/1.1 429 ")
        assert b"HTTP_STREAMED_ANSWERS" in found
        writer.close()

    serve(test)


def test_streams_that_wait_for_their_clients_keep_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is made at a time, and three there may be: for a fourth another is broken off, and not the newest.

    Which of the others is the longest unread depends on what the system still takes of each."""
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS", 1)
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS_MOST", 3)

    async def test(server: HttpServer) -> None:
        streams = context_of(server).streams
        lines = []
        for number in range(5):
            before = set(streams)
            lines.append(await asyncio.open_connection(HOST, server.port, limit=1))
            lines[-1][1].write(get("/stream"))
            await until(lambda before=before: any(each.unread_since for each in streams - before))  # type: ignore[misc]
            await until(lambda number=number: len(streams) == min(number + 1, 3))  # type: ignore[misc]
        broken = []
        for number, (reader, writer) in enumerate(lines):
            try:
                assert len(await asyncio.wait_for(reader.readexactly(1 << 24), 10)) == 1 << 24
            except (asyncio.IncompleteReadError, ConnectionError):
                broken.append(number)
            writer.close()
        assert len(broken) == 2
        assert 4 not in broken

    serve(test)


class Waiting:
    """A streamed answer."""

    def __init__(self, unread_since: float) -> None:
        self.unread_since = unread_since
        self.reasons: list[Unread] = []

    def give_up(self, reason: Unread) -> None:
        self.reasons.append(reason)


def test_the_longest_unread_of_too_many_streams_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS", 2)
    monkeypatch.setattr(limits, "HTTP_STREAMED_ANSWERS_MOST", 4)
    streams = [Waiting(since) for since in (0.0, 7.0, 5.0, 6.0)]
    make_room(streams[:3])
    assert not any(each.reasons for each in streams)
    make_room(streams)
    assert [len(each.reasons) for each in streams] == [0, 0, 1, 0]
    with pytest.raises(Overload):
        make_room([*streams, Waiting(0.0)])


def test_a_client_that_asks_for_an_upgrade_and_goes_leaves_nothing() -> None:
    """Its answer waits for it to speak HTTP/2, which it will not."""
    upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"

    async def test(server: HttpServer) -> None:
        for path in ("/", "/stream"):
            reader, writer = await asyncio.open_connection(HOST, server.port)
            writer.write(get(path, upgrade))
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
            writer.write_eof()
            await asyncio.wait_for(reader.read(), 10)
            await until(lambda: not connections_of(server) and not context_of(server).streams)
            writer.close()

    serve(test)


@pytest.mark.parametrize("sent", [b"INVALID CONNECTION PREFACE\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\rX"])
def test_a_broken_preface_gets_no_answer_of_http_1(sent: bytes) -> None:
    """RFC 9113, 3.4: the connection is closed, with a GOAWAY or without. The first is what h2spec sends."""

    async def test(server: HttpServer) -> None:
        found = await all_of(server, sent)
        assert found[3:4] in (b"", b"\x04")  # SETTINGS come before a GOAWAY
        assert b"HTTP/1" not in found

    serve(test)


def test_what_a_client_sends_ahead_waits_until_it_reads() -> None:
    """Of many requests whose answers are not read, only those are begun whose answers the system takes."""
    begun = 0

    async def large(request: Request) -> Answer:
        nonlocal begun
        begun += 1
        return Response(200, bytes(100_000), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        lines = [await asyncio.open_connection(HOST, server.port, limit=1) for _ in range(3)]
        for _, writer in lines:
            writer.write(get("/") * 200)
        await until(lambda: [each.is_choked for each in connections_of(server)] == [True] * 3)
        assert 0 < begun < 3 * 100
        assert sum(each.unread_bytes for each in connections_of(server)) < 3 * 300_000
        for reader, writer in lines:
            assert (await asyncio.wait_for(reader.readexactly(200 * 100_000), 10)).startswith(b"HTTP/1.1 200 OK")
            writer.close()

    serve_for(test, large)


def test_bodies_have_one_common_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for its end holds most of it; a second finds no room, and room is there again when the first is
    answered."""
    budget = BodyBudget(1000)
    monkeypatch.setattr("paperwasp.http.server.BODIES", budget)

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
    monkeypatch.setattr("paperwasp.http.server.BODIES", budget)
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


@dataclass(eq=False)
class Fake:
    """A connection, as the choice knows it."""

    address: str = "a"
    has_asked: bool = False
    since: float = 0.0
    unread_since: float = 0.0
    unread_bytes: int = 0
    is_idle: bool = True
    overdue_at: float = 1e9

    def is_overdue(self, now: float) -> bool:
        return now > self.overdue_at


def silent(address: str, count: int) -> list[Fake]:
    return [Fake(address, since=float(number)) for number in range(count)]


def test_the_silent_go_first_and_the_busy_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight that may be there, six is crowded and four is calm."""
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CROWDED", 6)
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CALM", 4)
    busy, answered, quiet, others = Fake(is_idle=False), Fake(has_asked=True, since=-1), silent("s", 5), silent("o", 7)
    assert choose_leaving([busy, answered, *quiet[:4]], 9) == []
    assert choose_leaving([busy, answered, *quiet], 9) == quiet[:3]
    assert choose_leaving([busy, answered, *others[:4], others[6]], 9) == others[:3]
    assert choose_leaving([busy, *(Fake(has_asked=True, since=time) for time in (5, 3, 4, 2, 1, 6))], 9) != []


def test_the_longest_idle_of_those_that_asked_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CROWDED", 2)
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS_CALM", 1)
    young, old, middle = (Fake(has_asked=True, since=time) for time in (3.0, 1.0, 2.0))
    assert choose_leaving([young, old, middle], 9) == [old, middle]


def test_an_address_has_a_bound_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS", 3)
    many, few = silent("many", 5), silent("few", 3)
    many[0].is_idle = False
    assert choose_leaving([*many, *few], 9) == many[1:3]


def test_who_is_late_goes_and_is_not_counted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS", 2)
    late, *rest = silent("a", 4)
    late.overdue_at = 5
    assert choose_leaving([late, *rest], 5) == [late, rest[0]]
    assert choose_leaving([late, *rest], 6) == [late, rest[0]]
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS", 3)
    assert choose_leaving([late, *rest], 6) == [late]


def test_the_longest_unread_answers_go_where_they_are_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_UNREAD_ANSWERS_BYTES", 4_000_000)
    first, second, third = (Fake(unread_since=time, unread_bytes=2_000_000) for time in (1.0, 2.0, 3.0))
    read = Fake()
    assert choose_unread([read, second, first]) == []
    assert choose_unread([third, read, second, first]) == [first]
    third.unread_bytes = 2_500_000
    assert choose_unread([third, read, second, first]) == [first, second]


def test_answers_that_nobody_reads_take_no_more_memory_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of four are given up, at once; the other two are read. What was read does not count."""
    size_bytes = 16 * 1024 * 1024
    monkeypatch.setattr(limits, "HTTP_UNREAD_ANSWERS_BYTES", 2 * size_bytes)

    async def large(request: Request) -> Answer:
        return Response(200, bytes(size_bytes), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        lines = []
        for number in range(4):
            reader, writer = await asyncio.open_connection(HOST, server.port, limit=1)
            lines.append((reader, writer))
            writer.write(GET)
            while len(unread_of(server)) < min(number + 1, 2) or len(connections_of(server)) > 2:
                await asyncio.to_thread(lambda: None)
        for reader, _ in lines[:2]:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await asyncio.wait_for(reader.readexactly(size_bytes), 30)
        for reader, _ in lines[2:]:
            await asyncio.wait_for(reader.readexactly(size_bytes), 30)
        while unread_of(server):
            await asyncio.to_thread(lambda: None)
        for _, writer in lines:
            writer.close()

    serve_for(test, large, LIMIT_BYTES)


def test_the_budget_of_the_process_is_that_of_the_limits() -> None:
    assert bodies.BODIES.held_bytes == 0
