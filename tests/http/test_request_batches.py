"""Requests that come together over HTTP/2: begun as one batch as far as the handler takes them, else one by one."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from collections.abc import Sequence

import pytest
from h2.events import ResponseReceived

from paperwasp import limits
from paperwasp.errors import Overload
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.request_batch import Batches, RequestBatch
from paperwasp.http.server import HttpServer
from tests.http.http2_client import Client
from tests.http.http_servers import connections_of, context_of, serve_for, until

LIMIT_BYTES = 1000
TYPE = "application/json"


class Handler:
    """Takes the first requests of each batch, and keeps what it is given. Those alone are answered at once."""

    def __init__(self, takes: int = 100) -> None:
        self._takes = takes
        self.batches: list[RequestBatch] = []
        self.alone: list[Request] = []
        self.observed: list[tuple[str, bytes, int, int]] = []

    def begin(self, batch: RequestBatch) -> int:
        self.batches.append(batch)
        batch.content_type = TYPE
        return min(self._takes, len(batch.bodies))

    async def handle(self, request: Request) -> Answer:
        self.alone.append(request)
        return Response(200, b"alone " + request.body, TYPE)

    def observe(self, batch: RequestBatch, numbers: Sequence[int], bodies: Sequence[bytes], elapsed_ns: int) -> None:
        assert elapsed_ns >= 0
        for number, body in zip(numbers, bodies, strict=True):
            exchanged = batch.exchanged(number, len(body))
            sizes = exchanged.received_bytes, exchanged.sent_bytes
            self.observed.append((exchanged.line.version + batch.request(number).raw_path, body, *sizes))

    def port(self) -> Batches:
        return Batches("/feed/", self.begin, self.observe)


async def ask(client: Client, bodies: Sequence[bytes], **fields: str) -> list[int]:
    """Sends requests that come together; gives their streams."""
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    numbers = [client.ask("POST", f"/feed/{number}", body, fields=named) for number, body in enumerate(bodies)]
    await client.send()
    return numbers


async def opened(server: HttpServer) -> Client:
    """A client whose settings are known, so that what it sends next comes alone."""
    client = Client(server)
    await client.open()
    await client.send()
    return client


def test_answers_are_given_in_any_order_and_sent_together() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b", b"c"])
        await until(lambda: bool(handler.batches))
        (batch,), context = handler.batches, context_of(server)
        assert (batch.names, batch.bodies, batch.head.raw_path) == (["0", "1", "2"], [b"a", b"b", b"c"], "/feed/")
        assert context.budget.held_bytes == 3 and context.running == {batch}
        batch.succeed(2, b"third")
        batch.answer(1, Overload("too many"))
        assert await client.answer(streams[2]) == ("200", b"third")
        status, body = await client.answer(streams[1])
        assert status == "429" and b"too many" in body
        assert context.running == {batch} and not connections_of(server)[0].is_idle
        batch.succeed(0, b"first")
        assert await client.answer(streams[0]) == ("200", b"first")
        assert not context.running and context.budget.held_bytes == 0 and connections_of(server)[0].is_idle
        assert handler.observed == [("HTTP/2.0/feed/2", b"third", 1, 5), ("HTTP/2.0/feed/0", b"first", 1, 5)]
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_what_the_handler_does_not_take_is_begun_alone_in_order() -> None:
    handler = Handler(takes=1)

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", gzip.compress(b"b"), b"c"], content_encoding="gzip")
        assert (await client.answer(streams[0]))[0] == "400"  # it is no gzip
        assert await client.answer(streams[1]) == ("200", b"alone b")
        streams = await ask(client, [b"a", b"b", b"c"], user_agent="tests")
        await until(lambda: len(handler.batches) == 2)
        assert [(each.raw_path, each.body) for each in handler.alone[1:]] == [("/feed/1", b"b")]
        assert handler.alone[1].headers == {"host": "h", "user-agent": "tests", "content-length": "1"}
        assert [batch.names for batch in handler.batches] == [["0", "1", "2"], ["2"]]
        for batch in handler.batches:
            batch.succeed(0, b"together")
        answers = [await client.answer(stream) for stream in streams]
        assert answers == [("200", b"together"), ("200", b"alone b"), ("200", b"together")]
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_bodies_are_inflated_and_held_within_their_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        packed = gzip.compress(b"a" * 100)
        await ask(client, [packed, packed], content_encoding="gzip")
        await until(lambda: bool(handler.batches))
        (batch,), budget = handler.batches, context_of(server).budget
        assert batch.bodies == [b"a" * 100] * 2 and budget.held_bytes == 200 + 2 * len(packed)
        large = await ask(client, [b"b", b"c" * (LIMIT_BYTES + 1), b"d"])
        assert (await client.answer(large[1]))[0] == "413"
        assert [each.bodies for each in handler.batches[1:]] == [[b"b"], [b"d"]]
        monkeypatch.setattr(budget, "_limit_bytes", budget.held_bytes)
        full = await ask(client, [b"e"])
        assert (await client.answer(full[0]))[0] == "429"
        for each in handler.batches:
            for number in range(len(each.bodies)):
                each.succeed(number, b"done")
        await client.answer(large[0])
        assert budget.held_bytes == 0
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_requests_of_several_connections_are_gathered_while_answers_are_waited_for() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        clients = [await opened(server) for _ in range(3)]
        streams = [await ask(clients[0], [b"first"])]
        await until(lambda: bool(handler.batches))
        streams += [await ask(client, [b"a", b"b"]) for client in clients[1:]]
        await until(lambda: sum(len(batch.names) for batch in handler.batches) == 5)
        for batch in handler.batches:
            numbers = range(len(batch.names))
            assert [batch.request(number).body for number in numbers] == batch.bodies
            for number in reversed(numbers):
                batch.succeed(number, b"answer to " + batch.bodies[number])
        found = [await client.answer(one) for client, several in zip(clients, streams, strict=True) for one in several]
        bodies = [b"answer to " + body for body in (b"first", b"a", b"b", b"a", b"b")]
        assert found == [("200", body) for body in bodies]
        assert {each.split("/feed")[0] for each, *_ in handler.observed} == {"HTTP/2.0"}
        await until(lambda: not context_of(server).running)
        assert all(connection.is_idle for connection in connections_of(server))
        for client in clients:
            client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_what_comes_later_on_a_connection_is_begun_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though requests are gathered without an end here: who asks for a document that it has just put must find it."""
    monkeypatch.setattr(limits, "HTTP_BATCH_SECONDS", 1000)
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        await ask(client, [b"a"])
        await until(lambda: bool(handler.batches))
        client.ask("POST", "/feed/0", b"b")
        last = client.ask("GET", "/feed/0")
        await client.send()
        await until(lambda: bool(handler.alone))
        assert [batch.bodies for batch in handler.batches] == [[b"a"], [b"b"]]
        assert (await client.answer(last))[0] == "200"
        client.ask("POST", "/feed/0", b"c")
        await client.send()
        for batch in handler.batches[:2]:  # when all are answered, nothing is gathered any more
            batch.succeed(0, b"")
        await until(lambda: len(handler.batches) == 3)
        handler.batches[2].succeed(0, b"")
        await until(lambda: not context_of(server).running)
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_no_more_are_gathered_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HTTP_BATCH_SECONDS", 1000)
    monkeypatch.setattr(limits, "HTTP_BATCH_REQUESTS", 4)
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        await ask(client, [b"a"])
        await until(lambda: bool(handler.batches))
        for _ in range(4):
            await ask(client, [b"b"])
        await until(lambda: len(handler.batches) == 2)
        assert handler.batches[1].bodies == [b"b"] * 4
        for batch in handler.batches:
            batch.succeed_all(0, [b""] * len(batch.names))
        await until(lambda: not context_of(server).running)
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_defect_costs_its_own_answers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    handler = Handler()

    def fail(*_: object) -> int:
        raise RuntimeError("a defect")

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b"])
        await until(lambda: bool(handler.batches))
        monkeypatch.setattr(handler, "observed", None)  # so that the observer fails
        handler.batches[0].succeed(0, b"sent")
        assert await client.answer(streams[0]) == ("200", b"sent")
        handler.batches[0].succeed(1, b"sent")
        await until(lambda: not context_of(server).running)
        assert "answers were lost" in caplog.text
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())
    failing = Batches("/feed/", fail, handler.observe)

    async def test_failing(server: HttpServer) -> None:
        client = await opened(server)
        (stream,) = await ask(client, [b"a"])
        assert await client.answer(stream) == ("200", b"alone a")
        client.close()

    serve_for(test_failing, handler.handle, LIMIT_BYTES, batches=failing)
    assert "could not be begun together" in caplog.text


def test_requests_wait_for_their_turn_as_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no time is left for a connection, its requests are begun one by one."""
    monkeypatch.setattr(limits, "HTTP_TURN_SECONDS", 0.0)
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b"])
        assert [await client.answer(stream) for stream in streams] == [("200", b"alone a"), ("200", b"alone b")]
        assert not handler.batches
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_long_answers_are_compressed_for_who_takes_that() -> None:
    handler = Handler()
    body = b"a" * limits.HTTP_COMPRESSED_LEAST_BYTES

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b"], accept_encoding="gzip")
        await until(lambda: bool(handler.batches))
        handler.batches[0].succeed(0, body)
        handler.batches[0].succeed(1, b"short")
        head = await client.event(streams[0], ResponseReceived)
        assert isinstance(head, ResponseReceived)
        assert "gzip" in str(head.headers)
        assert await client.answer(streams[1]) == ("200", b"short")
        assert not context_of(server).running
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_a_server_that_stops_waits_for_what_it_has_taken() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b"])
        await until(lambda: bool(handler.batches))
        stopping = asyncio.create_task(server.stop())
        await until(lambda: connections_of(server)[0].is_draining)
        assert not stopping.done()
        for number in (0, 1):
            handler.batches[0].succeed(number, b"done")
        assert [await client.answer(stream) for stream in streams] == [("200", b"done")] * 2
        await asyncio.wait_for(stopping, 10)
        client.close()

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())


def test_answers_to_a_client_that_is_gone_go_nowhere_and_are_counted() -> None:
    handler = Handler()

    async def test(server: HttpServer) -> None:
        client = await opened(server)
        streams = await ask(client, [b"a", b"b"])
        await until(lambda: bool(handler.batches))
        client.h2.reset_stream(streams[0], 8)
        client.ask("GET", "/")
        await client.send()
        await until(lambda: bool(handler.alone))  # the reset has come before it
        handler.batches[0].succeed(0, b"unread")
        linger = struct.pack("ii", 1, 0)
        client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        client.writer.transport.abort()
        await until(lambda: not connections_of(server))
        assert context_of(server).running
        handler.batches[0].succeed(1, b"unread")
        await until(lambda: not context_of(server).running)
        assert len(handler.observed) == 2 and context_of(server).budget.held_bytes == 0

    serve_for(test, handler.handle, LIMIT_BYTES, batches=handler.port())
