"""Sockets of HTTP/1.1 that the core reads: whatever comes on them is answered, or ends, as on all others."""

from __future__ import annotations

import asyncio
import random
import select
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from paperwasp.core import _core
from tests.chance import SEED
from tests.container.search.routed_port import RoutedPort, connected, get, read_answer, run, turn
from tests.container.search.test_routes import DOCUMENTS, FIXED, wanted
from tests.container.search.text_peers import Peers, filled_peers

_TEXTS = ("the of", "a", "blue", "cats the")
FIRST_REQUESTS = 6
"""Until the core reads a socket."""
MOST_UNTOLD = 256
_RESET = struct.pack("ii", 1, 0)


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    with filled_peers(DOCUMENTS, seed=7) as found:
        yield found


@asynccontextmanager
async def watched(port: RoutedPort) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose socket the core reads: the route is found first, then an answer goes by it."""
    async with connected(port.server.port) as (reader, writer):
        for _ in range(FIRST_REQUESTS):
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
            request = get(**FIXED, query="blue")
            for _ in range(5):
                writer.write(request)
                await read_answer(reader)
            wanted_bytes = FIRST_REQUESTS * len(get(**FIXED, query="the of")) + 5 * len(request)
            async with asyncio.timeout(20):  # the event loop is told after the client
                while port.server.traffic.received_bytes < wanted_bytes:
                    await turn()
            assert port.server.traffic.received_bytes == wanted_bytes

    run(shared, ask)


def test_a_server_that_stops_leaves_no_part_of_an_answer(shared: Peers) -> None:
    """Whoever has asked has the whole answer, or none: the core may be answering while the server begins to stop."""
    body, choice = wanted(shared, **FIXED, query="blue"), random.Random(SEED)
    answered = 0

    async def ask(port: RoutedPort) -> None:
        nonlocal answered
        for _ in range(30):
            async with watched(port) as (reader, writer):
                writer.write(get(**FIXED, query="blue"))
                for _ in range(choice.randrange(30)):
                    await turn()
                await port.server.restart()
                found = b""
                with suppress(ConnectionResetError):  # the server has not read the request
                    found = await reader.read()
                assert not found or found.endswith(b"\r\n\r\n" + body), found
                answered += bool(found)

    run(shared, ask)
    assert answered


# The kernel


class Pair:
    """A socket that is watched, and its client."""

    def __init__(self, sockets: _core.WatchedSockets[str], name: str) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.number = sockets.watch(self.ours.fileno(), _core.AnswerSocket(self.ours.fileno()), name, print)

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


class Sockets:
    """Sockets that are watched; `told` has what has come, by name."""

    def __init__(self, most_bytes: int) -> None:
        self.kernel: _core.WatchedSockets[str] = _core.WatchedSockets(_core.TextRoutes(1), most_bytes, 2)
        self.told: list[tuple[str, object]] = []
        self.bytes = 0

    def wait_for(self, count: int) -> list[tuple[str, object]]:
        """Waits until so many more things have come, and takes them."""
        del self.told[:]
        while len(self.told) < count:
            assert self.is_ready(20), f"{self.told} of {count}"
            came, size_bytes = self.kernel.receive()
            self.told += came
            self.bytes += size_bytes
        return self.told

    def is_ready(self, seconds: float = 0) -> bool:
        return bool(select.select([self.kernel.fd], [], [], seconds)[0])

    def pairs(self, count: int) -> list[Pair]:
        return [Pair(self.kernel, str(number)) for number in range(count)]


@contextmanager
def watching(count: int, most_bytes: int = 1000) -> Iterator[tuple[Sockets, list[Pair]]]:
    sockets = Sockets(most_bytes)
    pairs = sockets.pairs(count)
    try:
        yield sockets, pairs
    finally:
        for pair in pairs:
            sockets.kernel.unwatch(pair.number)
            pair.close()
        sockets.kernel.close()


def test_all_that_have_something_are_read() -> None:
    with watching(5) as (sockets, pairs):
        assert sockets.kernel.receive() == ([], 0)
        for number in (1, 3):
            pairs[number].theirs.send(b"x" * number)
        assert sorted(sockets.wait_for(2), key=str) == [("1", b"x"), ("3", b"xxx")]
        assert sockets.bytes == 4 and not sockets.is_ready()


def test_what_is_left_to_python_is_read_on_when_it_says_so() -> None:
    with watching(2) as (sockets, pairs):
        for pair in pairs:
            pair.theirs.send(bytes(2500))
        for size in (1000, 1000, 500):
            assert sorted(sockets.wait_for(2), key=str) == [("0", bytes(size)), ("1", bytes(size))]
            assert not sockets.is_ready() and not any(sockets.kernel.is_read(pair.number) for pair in pairs)
            for pair in pairs:
                sockets.kernel.expect(pair.number, False)
        assert sockets.bytes == 5000


def test_the_end_is_left_unread() -> None:
    with watching(1) as (sockets, (pair,)):
        pair.theirs.sendall(b"last")
        pair.theirs.shutdown(socket.SHUT_WR)
        told = sockets.wait_for(1)
        # Both at once, or one after the other.
        if told == [("0", b"last")]:
            sockets.kernel.expect(pair.number, False)
            told = sockets.wait_for(1)
            assert pair.ours.recv(10) == b""
        else:
            assert pair.ours.recv(10) == b"last"
        assert told == [("0", None)] and sockets.kernel.unwatch(pair.number)
        assert len(sockets.kernel) == 0


def test_a_socket_that_is_not_watched_is_not_read() -> None:
    with watching(1) as (sockets, (pair,)):
        assert sockets.kernel.unwatch(pair.number) and sockets.kernel.unwatch(pair.number)
        pair.theirs.send(b"more")
        sockets.kernel.expect(pair.number, True)
        assert not sockets.kernel.is_read(pair.number) and sockets.kernel.receive() == ([], 0)
        assert pair.ours.recv(10) == b"more"


def test_what_was_read_before_is_told_before_the_end_of_watching() -> None:
    with watching(1) as (sockets, (pair,)):
        pair.theirs.send(b"more")
        assert sockets.is_ready(20) and sockets.kernel.is_read(pair.number)
        assert not sockets.kernel.unwatch(pair.number)
        assert sockets.wait_for(2) == [("0", b"more"), ("0", None)]
        assert sockets.kernel.unwatch(pair.number) and not sockets.is_ready()


def test_what_nobody_takes_is_bounded() -> None:
    """More sockets than things may wait: the others are read when these are taken."""
    with watching(MOST_UNTOLD + 44) as (sockets, pairs):
        for pair in pairs:
            pair.theirs.send(b"x")
        found = sockets.wait_for(len(pairs))
        assert sorted(found) == sorted((str(number), b"x") for number in range(len(pairs)))


def test_sockets_end_with_what_nobody_has_taken() -> None:
    for _ in range(20):
        with watching(3) as (sockets, pairs):
            for pair in pairs:
                pair.theirs.send(b"more")
            assert sockets.is_ready(20)
            sockets.kernel.close()
            assert len(sockets.kernel) == 0


def test_a_number_that_is_no_socket_is_refused() -> None:
    sockets = Sockets(1000).kernel
    with pytest.raises(OSError):
        sockets.watch(-1, _core.AnswerSocket(-1), "it", print)
    sockets.close()
    pair = socket.socketpair()
    with pytest.raises(OSError):
        sockets.watch(pair[0].fileno(), _core.AnswerSocket(-1), "it", print)
    for each in pair:
        each.close()
    assert len(sockets) == 0
    for most_bytes, threads in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="no bytes, or by no thread"):
            _core.WatchedSockets(_core.TextRoutes(1), most_bytes, threads)
