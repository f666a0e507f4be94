"""Any bytes, in any pieces, with pauses and ends anywhere: a connection answers or closes, and leaves nothing. What it
answers over HTTP/1.1 is the same where requests that are alike are answered together."""

from __future__ import annotations

import asyncio
import errno
import gzip
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from paperwasp import limits
from paperwasp.http.bodies import BodyBudget
from paperwasp.http.connection import PREFACE, Connection
from paperwasp.http.exchange import PortContext
from paperwasp.http.http1 import chunk
from paperwasp.http.http1_line import Http1Line
from paperwasp.http.http2_line import Http2Line
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse, json_response
from paperwasp.http.request_batch import Batches, RequestBatch
from paperwasp.http.server import default_error_response
from paperwasp.http.turns import Turns
from tests import chance

LIMIT_BYTES = 300
HEADS = (
    b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n",
    b"HEAD /stream HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /stream HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /wait HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"POST /wait HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 400\r\n\r\n" + bytes(400),
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"a") * 600 + b"0\r\nT: x\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"abc") + b"0\r\n\r\n",
    b"POST /feed/1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    b"PUT /feed/2?a=b HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
    b"POST /feed/3 HTTP/1.1\r\nHost: h\r\nContent-Length: 400\r\n\r\n" + bytes(400),
    b"POST /feed/4 HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: 25\r\n\r\n"
    + gzip.compress(b"hello", mtime=0),
    b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAMAAABk\r\n\r\n",
)
SAME_HEADS = [head for head in HEADS if chunk(b"a") not in head]
"""Those whose answers are the same in whatever pieces they come: of chunks, the answer may say how much has come."""
# By the static table of HPACK: the method, the scheme http, the path /, and the authority h.
GET_BLOCK, POST_BLOCK = b"\x82\x84\x86\x41\x01h", b"\x83\x84\x86\x41\x01h"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


class Transport:
    """A transport that keeps what is written, and holds it back when it is told to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.written = bytearray()
        self.is_closed = False
        self._is_ended = False
        self._is_held = False
        self.is_reset = False
        """Whether the client has reset the connection, of which only the end of writing tells yet."""

    def hold(self, holds: bool) -> None:
        if holds != self._is_held and not self.is_closed:
            self._is_held = holds
            (self._connection.pause_writing if holds else self._connection.resume_writing)()

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        assert not self._is_ended, "written after its end"
        assert data
        self.written += data

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 100_000 if self._is_held else 0

    def get_extra_info(self, name: str) -> Any:
        return None

    def can_write_eof(self) -> bool:
        return True

    def set_write_buffer_limits(self, high: int) -> None: ...

    def write_eof(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            if self.is_reset:
                raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Watcher:
    """Keeps one connection."""

    def __init__(self) -> None:
        self.is_gone = False

    def make_line(self, connection: Connection, is_http2: bool) -> Http1Line | Http2Line:
        return Http2Line(connection) if is_http2 else Http1Line(connection)

    def note_unread(self, connection: Connection) -> None: ...

    def remove(self, connection: Connection) -> None:
        self.is_gone = True


async def answer(request: Request) -> Answer:
    if request.raw_path == "/stream":
        return StreamedResponse(200, _chunks())
    if request.raw_path == "/wait":
        await _pause()
    return json_response(200, {"size": len(request.body)}) if request.body else Response(200, bytes(2000), "text/plain")


async def _chunks() -> Any:
    for _ in range(3):
        yield b"chunk"
        await _pause()


async def _pause() -> None:
    waiter = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waiter.set_result, None)
    await waiter


def http1(choices: random.Random) -> bytes:
    data = bytearray(b"".join(choices.choices(HEADS, k=choices.randint(1, 5))))
    for _ in range(choices.choice((0, 0, 1, 3))):
        at = choices.randrange(len(data))
        data[at : at + choices.choice((0, 1, 2))] = choices.choice((b"\r", b"\n", b"\0", b"5", b":", b"\r\n", b" "))
    return bytes(data)


def http2(choices: random.Random) -> bytes:
    pieces, stream = [PREFACE, frame(4, 0, 0, b"")], 1
    for _ in range(choices.randint(1, 12)):
        kind = choices.randrange(7)
        old = choices.randrange(1, stream + 2)
        pieces.append(
            (
                frame(1, 5, stream, GET_BLOCK),
                frame(1, 4, stream, POST_BLOCK),
                frame(0, choices.randrange(2), old, bytes(choices.choice((0, 10, 400)))),
                frame(3, 0, old, bytes(4)),
                frame(6, 0, 0, bytes(8)),
                frame(8, 0, choices.choice((0, old)), choices.choice((b"\0\0\0\1", b"\x7f\xff\xff\xff"))),
                frame(4, 0, 0, b"\0\4" + choices.choice((b"\0\0\0\0", b"\0\1\0\0"))),
            )[kind]
        )
        stream += 2 * (kind < 2)
    data = bytearray(b"".join(pieces))
    if choices.random() < 0.3:
        data[choices.randrange(len(data))] = choices.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("make", [http1, http2])
def test_nothing_is_left_of_any_connection(
    make: Callable[[random.Random], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    choices = random.Random(chance.SEED)

    async def run() -> int:
        togethers = choices.choices((None, Together(choices)), k=300)
        return sum([len(await _one(choices, make(choices), together)) for together in togethers])

    assert asyncio.run(run()) > 300 * 100
    assert [record for record in caplog.records if record.exc_info] == [], chance.SEED


def test_the_answers_of_requests_that_are_answered_together_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # One second for all: after an upgrade the date is in Huffman's code, and cannot be taken out of what is compared.
    monkeypatch.setattr("paperwasp.http.http1._date", lambda: b"date: Mon, 01 Jan 2001 00:00:00 GMT\r\n")
    choices = random.Random(chance.SEED)

    async def run() -> int:
        together = 0
        for _ in range(300):
            data, seed = b"".join(choices.choices(SAME_HEADS, k=choices.randint(1, 5))), choices.randrange(2**32)
            handler = Together(choices)
            found = await _one(random.Random(seed), data, handler)
            assert _undated(found) == _undated(await _one(random.Random(seed), data)), (chance.SEED, data)
            together += handler.taken
        return together

    assert asyncio.run(run()) > 30, chance.SEED


def _undated(written: bytes) -> bytes:
    return re.sub(rb"date: [^\r]*", b"date", written)


class Together:
    """Takes some of the first requests of a batch, and answers as `answer` does, soon and in any order."""

    def __init__(self, choices: random.Random) -> None:
        self._choices = choices
        self.taken = 0
        self.batches = Batches("/feed/", self.begin, lambda *_: None)

    def begin(self, batch: RequestBatch) -> int:
        count = self._choices.randint(0, len(batch.bodies))
        answers = [json_response(200, {"size": len(body)}) for body in batch.bodies[:count]]
        for number, each in self._choices.sample(list(enumerate(answers)), count):
            batch.content_type = each.content_type
            give = partial(batch.answer, number, each)
            if self._choices.random() < 0.5:
                give = partial(batch.succeed, number, each.body)
            asyncio.get_running_loop().call_soon(give)
        self.taken += count
        return count


async def _one(choices: random.Random, data: bytes, together: Together | None = None) -> bytes:
    """What is answered."""
    loop, budget, watcher = asyncio.get_running_loop(), BodyBudget(), Watcher()
    failures: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: failures.append(context))
    context = PortContext(
        answer,
        default_error_response,
        lambda _: LIMIT_BYTES,
        None,
        budget,
        lambda: None,
        loop,
        Turns(loop),
        together=None if together is None else together.batches,
    )
    buffer = memoryview(bytearray(limits.HTTP_RECEIVE_BYTES))
    connection = Connection(context, watcher, buffer, "a")
    transport = Transport(connection)
    transport.is_reset = choices.random() < 0.3
    connection.connection_made(cast(asyncio.Transport, transport))

    def act(at: int, end: int) -> None:
        if transport.is_closed:
            return
        if at == end:
            transport.hold(choices.random() < 0.5)
        else:
            buffer[: end - at] = data[at:end]
            connection.buffer_updated(end - at)

    at = 0
    while at < len(data):
        size = choices.choice((0, 1, 7, 60, 1000))
        loop.call_soon(act, at, at := min(at + size, len(data)))
        if choices.random() < 0.3:
            await _pause()
    loop.call_soon(transport.hold, False)
    await _settle(lambda: not context.running or transport.is_closed)
    loop.call_soon(_finish, connection, transport)
    await _settle(lambda: watcher.is_gone and not context.running)
    assert failures == [], data
    assert (budget.held_bytes, context.streams, connection.line) == (0, set(), None)
    return bytes(transport.written)


def _finish(connection: Connection, transport: Transport) -> None:
    """The client sends no more; who does not close then is closed."""
    if not transport.is_closed:
        connection.eof_received()
    transport.close()


async def _settle(condition: Callable[[], bool]) -> None:
    """Returns when the condition has held for a while. What runs on threads gets its turn, too."""
    held = 0
    for turn in range(10_000):
        held = held + 1 if condition() else 0
        if held == 20:
            return
        await (_pause() if turn < 1000 else asyncio.to_thread(int))
    raise AssertionError("it does not come to rest")
