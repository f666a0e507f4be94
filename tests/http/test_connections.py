"""Connections on real sockets: order, batches, floods, clients that go half or wholly, the end of descriptors."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.http.connection import Connection
from paperwasp.http.listening import Acceptor, bind
from paperwasp.http.messages import Answer, Request, Response, json_response
from paperwasp.http.server import HttpServer
from tests.http.http2_client import Client
from tests.http.http_servers import (
    HOST,
    LIMIT_BYTES,
    Held,
    connect,
    connections_of,
    context_of,
    echo,
    get,
    port_of,
    serve_for,
    serve_held,
    until,
    whole_answer,
)


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns of any length: they end after the number of requests alone."""
    monkeypatch.setattr(limits, "HTTP_TURN_SECONDS", 100)
    monkeypatch.setattr(limits, "HTTP_ROUND_SECONDS", 1000)


# One after the other


def test_answers_come_in_the_order_of_the_requests() -> None:
    async def test(server: HttpServer, held: Held) -> None:
        reader, writer = await connect(server)
        writer.write(get("/wait") + get("/a") + get("/b"))
        await until(lambda: held.begun == ["/wait"])
        held.may_end.set()
        for path in (b"/wait", b"/a", b"/b"):
            status, body = await whole_answer(reader)
            assert status == b"HTTP/1.1 200 OK"
            assert b'"path":"%b"' % path in body
        writer.close()

    serve_held(test)


def test_what_is_broken_is_told_after_the_answers_before_it() -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(get("/a") + b"POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx" + b"no request\r\n\r\n")
        assert [(await whole_answer(reader))[0] for _ in range(3)] == [
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 200 OK",
            b"HTTP/1.1 400 Bad Request",
        ]
        assert await reader.read() == b""
        writer.close()

    serve_for(test, echo)


def test_a_flood_of_requests_waits_in_the_system_and_not_here() -> None:
    """While one request is answered, no more than some reads of others are taken; then each has its answer."""
    count = 30_000

    async def test(server: HttpServer, held: Held) -> None:
        reader, writer = await connect(server)
        writer.write(get("/wait") + get("/a") * count)
        await until(lambda: bool(connections_of(server)) and connections_of(server)[0].line is not None)
        line: Any = connections_of(server)[0].line
        await until(lambda: line.is_paused)
        assert limits.HTTP_RECEIVE_BYTES <= line._reader.waiting_bytes < 3 * limits.HTTP_RECEIVE_BYTES
        assert held.begun == ["/wait"]
        held.may_end.set()
        for _ in range(count + 1):
            assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
        writer.close()

    serve_held(test)


def test_who_does_not_read_is_answered_no_more() -> None:
    """Requests are taken again when the answers before them are read."""
    body, count, begun = bytes(50_000), 1000, 0

    async def large(request: Request) -> Answer:
        nonlocal begun
        begun += 1
        return Response(200, body, "application/octet-stream")

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server, limit=1000)
        writer.write(get("/") * count)
        await until(lambda: any(each.is_choked for each in connections_of(server)))
        before = begun
        assert before * len(body) < limits.HTTP_WRITE_BUFFER_BYTES + 16_000_000  # what the system itself holds
        (connection,) = connections_of(server)
        assert connection.unread_bytes < limits.HTTP_WRITE_BUFFER_BYTES + 2 * len(body) + limits.HTTP_RECEIVE_BYTES * 2
        for _ in range(count):
            assert (await whole_answer(reader))[1] == body
        assert begun == count
        writer.close()

    serve_for(test, large)


# In batches


@pytest.mark.usefixtures("calm")
@pytest.mark.parametrize("http2", [False, True], ids=["http1", "h2c"])
def test_what_is_read_together_is_handed_over_together_and_answered_with_one_write(
    http2: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seam for a writer that takes batches: what a handler gathers until `call_soon` is all that was read."""
    batches: list[list[str]] = []
    gathered: list[tuple[str, asyncio.Future[None]]] = []
    writes = 0
    write = Connection.write

    def counted(self: Connection, data: bytes) -> None:
        nonlocal writes
        writes += 1
        write(self, data)

    monkeypatch.setattr(Connection, "write", counted)

    def flush() -> None:
        batches.append([path for path, _ in gathered])
        for _, waiter in gathered:
            waiter.set_result(None)
        gathered.clear()

    async def gather(request: Request) -> Answer:
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        if not gathered:
            loop.call_soon(flush)
        gathered.append((request.raw_path, waiter))
        await waiter
        return await echo(request)

    async def test(server: HttpServer) -> None:
        if http2:
            client = Client(server)
            await client.open()
            numbers = [client.ask("GET", f"/{number}") for number in range(20)]
            writes_before = writes
            await client.send()
            for number in numbers:
                await client.answer(number)
            assert [path for batch in batches for path in batch] == [f"/{number}" for number in range(20)]
            assert len(batches) == 1
            assert writes - writes_before <= 3
            client.close()
        else:
            lines = [await connect(server) for _ in range(10)]
            await until(lambda: len(connections_of(server)) == 10 and not port_of(server)._opening)
            for number, (_, writer) in enumerate(lines):
                writer.write(get(f"/{number}"))
            for reader, writer in lines:
                assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
                writer.close()
            assert batches[0] == [f"/{number}" for number in range(len(batches[0]))]
            assert len(batches) < 10

    serve_for(test, gather)


@pytest.mark.usefixtures("calm")
def test_requests_that_come_together_have_their_answers_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    write = Connection.write

    def noted(self: Connection, data: bytes) -> None:
        written.append(data.count(b"HTTP/1.1 200 OK"))
        write(self, data)

    monkeypatch.setattr(Connection, "write", noted)

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        turn = limits.HTTP_TURN_REQUESTS
        writer.write(get("/") * (2 * turn + 1))
        for _ in range(2 * turn + 1):
            await whole_answer(reader)
        assert written == [turn, turn, 1]
        writer.close()

    serve_for(test, echo)


def test_a_handler_may_use_time_outs_before_its_first_wait() -> None:
    """Up to there it has no task of its own, but must not notice."""

    async def slow(request: Request) -> Answer:
        assert asyncio.current_task() is not None
        try:
            async with asyncio.timeout(0.01 if request.raw_path == "/late" else 10):
                if request.raw_path != "/now":
                    await asyncio.Event().wait()
        except TimeoutError:
            return json_response(200, {"late": True})
        return json_response(200, {"late": False})

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(get("/late") + get("/now") + get("/late"))
        assert [(await whole_answer(reader))[1] for _ in range(3)] == [
            b'{"late":true}',
            b'{"late":false}',
            b'{"late":true}',
        ]
        writer.close()

    serve_for(test, slow)


@pytest.mark.usefixtures("calm")
def test_who_sends_much_ahead_does_not_keep_others_waiting() -> None:
    """Of two clients that send at once, neither has all its answers before the other has its first."""
    seen: list[str] = []

    async def note(request: Request) -> Answer:
        seen.append(request.raw_path)
        return await echo(request)

    async def test(server: HttpServer) -> None:
        lines = [await connect(server) for _ in range(2)]
        await until(lambda: len(connections_of(server)) == 2 and not port_of(server)._opening)
        count = 10 * limits.HTTP_TURN_REQUESTS
        for number, (_, writer) in enumerate(lines):
            writer.write(get(f"/{number}") * count)
        for reader, writer in lines:
            for _ in range(count):
                await whole_answer(reader)
            writer.close()
        assert max(seen.index("/0"), seen.index("/1")) <= 2 * limits.HTTP_TURN_REQUESTS

    serve_for(test, note)


# Clients that go


def test_a_client_that_sends_no_more_has_its_answers() -> None:
    async def test(server: HttpServer, held: Held) -> None:
        reader, writer = await connect(server)
        writer.write(get("/wait") + get("/a") + b"GET /half HT")
        writer.write_eof()
        await until(lambda: held.begun == ["/wait"])
        held.may_end.set()
        assert [(await whole_answer(reader))[0] for _ in range(2)] == [b"HTTP/1.1 200 OK"] * 2
        assert await asyncio.wait_for(reader.read(), 10) == b""
        assert held.begun == ["/wait", "/a"]
        writer.close()

    serve_held(test)


@pytest.mark.parametrize(
    "sent", [b"GET / HT", get("/wait"), b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"]
)
def test_a_client_that_resets_its_connection_leaves_nothing(sent: bytes) -> None:
    async def test(server: HttpServer, held: Held) -> None:
        _, writer = await connect(server)
        writer.write(sent)
        await until(lambda: any(each.line is not None for each in connections_of(server)))
        plain: socket.socket = writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await until(lambda: not connections_of(server))
        held.may_end.set()
        await until(lambda: not context_of(server).running)
        assert context_of(server).budget.held_bytes == 0
        reader, writer = await connect(server)
        writer.write(get("/a"))
        assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
        writer.close()

    serve_held(test)


def test_a_head_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_HEAD_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(get("/"))
        assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
        writer.write(b"GET / HTTP/1.1\r\nHo")
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

    serve_for(test, echo)


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_UNREAD_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)
    size_bytes = 32 * 1024 * 1024

    async def large(request: Request) -> Answer:
        return Response(200, bytes(size_bytes), "application/octet-stream")

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server, limit=1)
        writer.write(get("/"))
        await until(lambda: bool(connections_of(server)))
        await until(lambda: not connections_of(server))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await asyncio.wait_for(reader.readexactly(size_bytes), 10)
        writer.close()

    serve_for(test, large)


# Bodies that are refused


def test_a_connection_goes_on_after_a_refused_body() -> None:
    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        size = LIMIT_BYTES + 1
        writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        assert (await whole_answer(reader))[0] == b"HTTP/1.1 413 Payload Too Large"
        writer.write(bytes(size) + get("/after"))
        assert b'"path":"/after"' in (await whole_answer(reader))[1]
        writer.close()

    serve_for(test, echo)


def test_a_refused_body_is_read_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_DISCARD_SECONDS", 0.1)
    monkeypatch.setattr(limits, "HTTP_DISCARDED_BYTES", 1_000_000)
    monkeypatch.setattr(limits, "HTTP_LOOK_SECONDS", 0.02)
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"

    async def test(server: HttpServer) -> None:
        for sent in (head, head + bytes(2_000_000)):
            reader, writer = await connect(server)
            writer.write(sent)
            assert (await whole_answer(reader))[0] == b"HTTP/1.1 413 Payload Too Large"
            assert await asyncio.wait_for(reader.read(), 10) == b""
            await until(lambda: not connections_of(server))
            writer.close()

    serve_for(test, echo)


# Bounds of connections


def test_more_connections_than_there_may_be_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_CONNECTIONS", 2)

    async def test(server: HttpServer, held: Held) -> None:
        lines = [await connect(server) for _ in range(3)]
        for _, writer in lines:
            writer.write(get("/wait"))
        await until(lambda: len(held.begun) == 2)
        assert len(connections_of(server)) == 2
        held.may_end.set()
        for reader, writer in lines:
            assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
            writer.close()

    serve_held(test)


def test_an_address_with_too_many_busy_connections_gets_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS", 2)
    monkeypatch.setattr(limits, "HTTP_ADDRESS_CONNECTIONS_MOST", 3)

    async def test(server: HttpServer, held: Held) -> None:
        lines = []
        for number in range(3):
            lines.append(await connect(server))
            lines[-1][1].write(get("/wait"))
            await until(lambda number=number: len(held.begun) == number + 1)  # type: ignore[misc]
        reader, writer = await connect(server)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        held.may_end.set()
        for reader, writer in lines:
            assert (await whole_answer(reader))[0] == b"HTTP/1.1 200 OK"
            writer.close()

    serve_held(test)


class Exhausted(socket.socket):
    """A listening socket of a process that has no descriptors left, for the first time it is asked."""

    asked = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.asked += 1
        if self.asked == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_without_descriptors_a_port_pauses(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It does not ask again and again, and takes who has waited when the pause is over."""
    monkeypatch.setattr(limits, "HTTP_ACCEPT_SECONDS", 0.2)

    async def run() -> None:
        taken: list[socket.socket] = []
        with bind(HOST, 0) as bound, Exhausted(fileno=bound.detach()) as listener:
            listener.setblocking(False)
            acceptor = Acceptor(listener, lambda accepted, *_: taken.append(accepted))
            acceptor.listen()
            with socket.create_connection(listener.getsockname()):
                await until(lambda: listener.asked == 1)
                acceptor.resume()  # a connection has closed meanwhile
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), 0.05)
                assert listener.asked == 1
                await until(lambda: bool(taken))
                assert listener.asked <= 3
            acceptor.pause()
            taken[0].close()

    asyncio.run(run())
    assert "No connections are accepted for 0.2 s" in caplog.text
