"""Streamed answers on real sockets: slow readers, readers that leave, iterators that fail, stops."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from h2.connection import H2Connection
from h2.events import DataReceived, Event
from h2.exceptions import ProtocolError

from paperwasp import limits
from paperwasp.errors import Overload
from paperwasp.http.messages import Request, StreamedResponse
from paperwasp.http.server import HttpServer
from tests.http.http_servers import BOTH, HOST, client_of, connections_of, get, serve_for

LINES = "application/jsonl"
GZIP = {"Accept-Encoding": "gzip"}
CHUNK = bytes(range(256)) * 256
H2_GET = [(":method", "GET"), (":path", "/"), (":scheme", "http"), (":authority", "h")]


class Source:
    """A handler that streams what `chunks` makes, and notes how far it was read and whether it was closed."""

    def __init__(self, chunks: Callable[[], AsyncIterator[bytes]]) -> None:
        self._chunks = chunks
        self.given = 0
        self.closed = asyncio.Event()

    async def __call__(self, request: Request) -> StreamedResponse:
        return StreamedResponse(200, self._read(), LINES, {"X-Test": "yes"})

    async def _read(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._chunks():
                self.given += 1
                yield chunk
        finally:
            self.closed.set()


def serve(chunks: Callable[[], AsyncIterator[bytes]], test: Callable[[HttpServer, Source], Awaitable[None]]) -> None:
    source = Source(chunks)
    serve_for(lambda server: test(server, source), source)


def client(server: HttpServer, http2: bool) -> httpx.AsyncClient:
    return client_of(server, http2, headers={"Accept-Encoding": "identity"})


class TwoLines:
    """Makes a line, and another when it may."""

    def __init__(self) -> None:
        self.may_go_on = asyncio.Event()

    async def __call__(self) -> AsyncIterator[bytes]:
        yield b"one\n"
        await self.may_go_on.wait()
        yield b"two\n"


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield CHUNK


async def some() -> AsyncIterator[bytes]:
    for _ in range(50):
        yield CHUNK
        yield b""


async def nothing() -> AsyncIterator[bytes]:
    chunks: tuple[bytes, ...] = ()
    for chunk in chunks:
        yield chunk


@BOTH
def test_all_chunks_arrive(http2: bool) -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http:
            for _ in range(2):
                answer = await http.get("/")
                assert (answer.status_code, answer.headers["content-type"]) == (200, LINES)
                assert answer.headers["x-test"] == "yes"
                assert answer.content == CHUNK * 50

    serve(some, test)


@BOTH
def test_a_stream_is_compressed_as_it_is_made(http2: bool) -> None:
    two_lines = TwoLines()

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/", headers=GZIP) as answer:
            assert answer.headers["content-encoding"] == "gzip"
            assert answer.headers["vary"] == "Accept-Encoding"
            lines = answer.aiter_lines()
            assert await anext(lines) == "one"
            two_lines.may_go_on.set()
            assert [line async for line in lines] == ["two"]
        await asyncio.wait_for(source.closed.wait(), 10)

    serve(two_lines, test)


@BOTH
def test_a_compressed_stream_is_closed_when_its_client_leaves(http2: bool) -> None:
    async def noise() -> AsyncIterator[bytes]:
        while True:
            yield random.randbytes(65536)

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/", headers=GZIP) as answer:
            assert await anext(answer.aiter_raw())
        await asyncio.wait_for(source.closed.wait(), 10)

    serve(noise, test)


@BOTH
def test_a_stream_without_chunks_is_an_empty_answer(http2: bool) -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http:
            answer = await http.get("/")
            assert (answer.status_code, answer.content) == (200, b"")

    serve(nothing, test)


@BOTH
def test_a_chunk_arrives_before_the_next_one_is_made(http2: bool) -> None:
    two_lines = TwoLines()

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/") as answer:
            lines = answer.aiter_lines()
            assert await anext(lines) == "one"
            two_lines.may_go_on.set()
            assert await anext(lines) == "two"

    serve(two_lines, test)


@BOTH
def test_a_slow_reader_does_not_make_the_process_grow(http2: bool) -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/") as answer:
            parts = answer.aiter_raw()
            assert await anext(parts)
            before = await _standstill(source)
            assert before * len(CHUNK) < 32 * 1024 * 1024
            size_bytes = 0
            while size_bytes < 16 * 1024 * 1024:
                size_bytes += len(await anext(parts))
            assert await _standstill(source) > before

    serve(endless, test)


async def _standstill(source: Source) -> int:
    """How many chunks were taken when no more are."""
    given = -1
    while given != source.given:
        given = source.given
        with suppress(TimeoutError):
            await asyncio.wait_for(source.closed.wait(), 0.2)
    return given


@BOTH
def test_an_iterator_is_closed_when_its_client_leaves(http2: bool) -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/") as answer:
            assert await anext(answer.aiter_raw())
        await asyncio.wait_for(source.closed.wait(), 10)

    serve(endless, test)


@BOTH
def test_nothing_is_made_for_a_connection_that_is_closing(http2: bool) -> None:
    """The exchange learns that it is lost in a later turn of the event loop, which an iterator that never waits would
    not let come."""
    servers: list[HttpServer] = []

    async def closing() -> AsyncIterator[bytes]:
        yield CHUNK
        for connection in connections_of(servers[0]):
            connection.abort()
        for _ in range(1000):
            yield CHUNK

    async def test(server: HttpServer, source: Source) -> None:
        servers.append(server)
        async with client(server, http2) as http:
            with pytest.raises(httpx.HTTPError):
                await http.get("/")
        await source.closed.wait()
        assert source.given <= 3

    serve(closing, test)


def test_a_stream_that_is_reset_leaves_its_connection_to_the_others() -> None:
    async def test(server: HttpServer, source: Source) -> None:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        connection = H2Connection()
        connection.initiate_connection()
        connection.send_headers(1, H2_GET, end_stream=True)
        await _h2_data(connection, reader, writer)
        connection.reset_stream(1)
        writer.write(connection.data_to_send())
        await asyncio.wait_for(source.closed.wait(), 10)
        connection.send_headers(3, H2_GET, end_stream=True)
        await _h2_data(connection, reader, writer)
        writer.close()

    serve(endless, test)


async def _h2_data(connection: H2Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Sends what there is, and reads until some of an answer has come."""
    events: list[Event] = []
    while not any(isinstance(event, DataReceived) for event in events):
        writer.write(connection.data_to_send())
        events = connection.receive_data(await asyncio.wait_for(reader.read(65536), 10))


@BOTH
def test_an_iterator_that_fails_breaks_the_answer_off(http2: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield CHUNK
        raise ZeroDivisionError("secret")

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http:
            with pytest.raises(httpx.RemoteProtocolError):
                await http.get("/")
        assert source.closed.is_set()

    with caplog.at_level(logging.ERROR, "paperwasp.http"):
        serve(failing, test)
    assert "failed while its answer was sent" in caplog.text


@BOTH
def test_what_fails_before_the_first_chunk_is_an_error_of_its_own(http2: bool) -> None:
    async def refusing() -> AsyncIterator[bytes]:
        if CHUNK:  # always: what has a yield is a generator
            raise Overload("too much")
        yield CHUNK

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http:
            answer = await http.get("/")
            assert answer.status_code == Overload("").http_status
            assert answer.json()["message"] == "too much"

    serve(refusing, test)


@BOTH
def test_head_takes_no_chunk(http2: bool) -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http:
            answer = await http.head("/")
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"] == LINES
        assert source.given == 0

    serve(endless, test)


@BOTH
def test_a_stop_cuts_streams_that_do_not_end(http2: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_STREAM_STOP_SECONDS", 0.05)

    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2) as http, http.stream("GET", "/") as answer:
            parts = answer.aiter_raw()
            assert await anext(parts)
            await asyncio.wait_for(server.stop(), 8)
            assert source.closed.is_set()
            with pytest.raises((httpx.HTTPError, ProtocolError)):
                async for _ in parts:
                    pass

    serve(endless, test)


def test_a_stop_lets_a_stream_end_that_is_read() -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async with client(server, http2=False) as http, http.stream("GET", "/") as answer:
            parts = answer.aiter_raw()
            body = await anext(parts)
            stop = asyncio.create_task(server.stop())
            body += b"".join([part async for part in parts])
            assert body == CHUNK * 50
        await asyncio.wait_for(stop, 10)

    serve(some, test)


def test_no_descriptor_is_left() -> None:
    async def test(server: HttpServer, source: Source) -> None:
        async def leave() -> None:
            reader, writer = await asyncio.open_connection(HOST, server.port)
            writer.write(get("/"))
            assert await asyncio.wait_for(reader.read(1000), 10)
            writer.close()

        await leave()
        await asyncio.wait_for(source.closed.wait(), 10)
        before = len(list(Path("/dev/fd").iterdir()))
        for _ in range(20):
            source.closed.clear()
            await leave()
            await asyncio.wait_for(source.closed.wait(), 10)
        assert len(list(Path("/dev/fd").iterdir())) < before + 10

    serve(endless, test)
