"""Sockets of HTTP/1.1 that the core reads: whatever comes on them is answered, or ends, as on all others."""

from __future__ import annotations

import asyncio
import random
import select
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from paperwasp import limits
from paperwasp.core import _core
from tests.container.routed_port import RoutedPort, connected, get, read_answer, run, turn
from tests.container.test_routes import DOCUMENTS, FIXED, wanted
from tests.container.text_peers import Peers, filled_peers

_TEXTS = ("the of", "a", "blue", "cats the")
_RESET = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    with filled_peers(DOCUMENTS, seed=7) as found:
        yield found


@asynccontextmanager
async def watched(port: RoutedPort) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose socket the core reads: the route is found first, then an answer goes by it."""
    async with connected(port.server.port) as (reader, writer):
        for _ in range(6):
            writer.write(get(**FIXED, query="the of"))
            await read_answer(reader)
        await until(port, 1)
        yield reader, writer


async def until(port: RoutedPort, sockets: int) -> None:
    """Waits until the core reads that many sockets."""
    async with asyncio.timeout(20):
        while port.known.watched != sockets:
            await turn()


def test_what_comes_next_has_the_general_answers(shared: Peers) -> None:
    """Known requests, others, and such whose parts come one by one."""
    fixed: dict[str, object] = {**FIXED}
    other = fixed | {"hits": 2}
    bodies = {each: (wanted(shared, **FIXED, query=each), wanted(shared, **other, query=each)) for each in _TEXTS}

    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, writer):
            for each in _TEXTS * 3:
                for parameters, body in zip((fixed, other), bodies[each], strict=True):
                    request = get(**parameters, query=each)
                    size = choice.choice((len(request), 40))
                    for at in range(0, len(request), size):
                        writer.write(request[at : at + size])
                        await turn()
                    assert (await read_answer(reader))[1] == body
            assert port.known.watched == 1

    choice = random.Random(3)
    assert run(shared, ask).sent


def test_what_is_sent_ahead_is_answered_in_order(shared: Peers) -> None:
    texts = _TEXTS * 10
    bodies = [wanted(shared, **FIXED, query=each) for each in texts]

    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, writer):
            for _ in range(3):
                for each in texts:
                    writer.write(get(**FIXED, query=each))
                    await turn()
                assert [(await read_answer(reader))[1] for _ in texts] == bodies

    run(shared, ask)


def test_what_is_no_request_is_refused(shared: Peers) -> None:
    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, writer):
            writer.write(b"no request\r\n\r\n")
            head, _ = await read_answer(reader)
            assert head.startswith(b"HTTP/1.1 400 ")
            assert await reader.read() == b""
        await until(port, 0)

    run(shared, ask)


def test_who_sends_no_more_has_the_answer(shared: Peers) -> None:
    body = wanted(shared, **FIXED, query="blue")

    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, writer):
            writer.write(get(**FIXED, query="blue"))
            writer.write_eof()
            assert (await read_answer(reader))[1] == body
            assert await reader.read() == b""
        await until(port, 0)

    run(shared, ask)


def test_who_breaks_the_connection_off_is_no_longer_watched(shared: Peers) -> None:
    async def ask(port: RoutedPort) -> None:
        for request in (b"", get(**FIXED, query="blue")):
            async with watched(port) as (_, writer):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.write(request)
                writer.transport.abort()
                await until(port, 0)

    run(shared, ask)


def test_a_server_that_stops_ends_those_that_wait(shared: Peers) -> None:
    body = wanted(shared, **FIXED, query="blue")

    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, _):
            before = port.known
            await port.server.restart()
            assert await reader.read() == b""
            assert before.watched == 0 and port.known is not before
        assert (await port.ask([get(**FIXED, query="blue")]))[0][1] == body

    run(shared, ask)


def test_all_bytes_are_counted(shared: Peers) -> None:
    async def ask(port: RoutedPort) -> None:
        async with watched(port) as (reader, writer):
            before = port.server.traffic.received_bytes
            request = get(**FIXED, query="blue")
            for _ in range(5):
                writer.write(request)
                await read_answer(reader)
            assert port.server.traffic.received_bytes - before == 5 * len(request)

    run(shared, ask)


# The kernel


class Pair:
    """A socket that is watched, and its client."""

    def __init__(self, sockets: _core.WatchedSockets[str], name: str) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.number = self.ours.fileno()
        sockets.watch(self.number, _core.AnswerSocket(self.number), name, print)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def sockets() -> Iterator[_core.WatchedSockets[str]]:
    made: _core.WatchedSockets[str] = _core.WatchedSockets(_core.TextRoutes(limits.REQUEST_FORMS), 1000)
    yield made
    made.close()


def test_one_call_reads_all_that_have_something(sockets: _core.WatchedSockets[str]) -> None:
    pairs = [Pair(sockets, str(number)) for number in range(5)]
    assert sockets.receive(True) == ([], 0)
    for number in (1, 3):
        pairs[number].theirs.send(b"x" * number)
    assert select.select([sockets.fd], [], [], 0)[0]
    came, size_bytes = sockets.receive(True)
    assert sorted(came, key=str) == [("1", b"x"), ("3", b"xxx")] and size_bytes == 4
    assert not select.select([sockets.fd], [], [], 0)[0]
    for pair in pairs:
        pair.close()


def test_each_call_reads_a_part_of_every_socket(sockets: _core.WatchedSockets[str]) -> None:
    pairs = [Pair(sockets, str(number)) for number in range(2)]
    for pair in pairs:
        pair.theirs.send(bytes(2500))
    found = [sockets.receive(True) for _ in range(4)]
    assert [size for _, size in found] == [2000, 2000, 1000, 0]
    assert all({line for line, _ in came} == {"0", "1"} for came, _ in found[:3])
    for pair in pairs:
        pair.close()


def test_whatever_is_not_plainly_bytes_ends_the_watch_unread(sockets: _core.WatchedSockets[str]) -> None:
    pair = Pair(sockets, "it")
    pair.theirs.send(b"last")
    pair.theirs.shutdown(socket.SHUT_WR)
    assert sockets.receive(True) == ([("it", None)], 0)
    assert len(sockets) == 0
    assert pair.ours.recv(10) == b"last"
    pair.close()


def test_a_socket_that_is_not_watched_is_not_read(sockets: _core.WatchedSockets[str]) -> None:
    pair = Pair(sockets, "it")
    pair.theirs.send(b"more")
    sockets.unwatch(pair.number)
    sockets.unwatch(pair.number)
    sockets.expect(pair.number, True)
    assert sockets.receive(True) == ([], 0)
    pair.close()


def test_a_number_that_is_no_socket_is_refused(sockets: _core.WatchedSockets[str]) -> None:
    with pytest.raises(OSError):
        sockets.watch(-1, _core.AnswerSocket(-1), "it", print)
    sockets.close()
    pair = socket.socketpair()
    with pytest.raises(OSError):
        sockets.watch(pair[0].fileno(), _core.AnswerSocket(-1), "it", print)
    for each in pair:
        each.close()
    assert len(sockets) == 0
    with pytest.raises(ValueError, match="no bytes"):
        _core.WatchedSockets(_core.TextRoutes(1), 0)
