"""Answers that come when their handlers have ended: over both protocols, in whichever order they come."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct

import httpx
import pytest

from paperwasp import limits
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Answer, Request, Response
from paperwasp.http.pending import PendingAnswer, settled
from paperwasp.http.server import HttpServer
from tests.http.http_servers import HOST, connect, connections_of, context_of, get, serve_for, until, whole_answer

LIMIT_BYTES = 1000


class Pending:
    """A handler that promises an answer to each request; the test gives them."""

    def __init__(self) -> None:
        self.answers: dict[str, PendingAnswer] = {}

    async def handle(self, request: Request) -> Answer | PendingAnswer:
        answer = self.answers[request.raw_path] = PendingAnswer()
        return answer

    async def has(self, *paths: str) -> None:
        await until(lambda: all(path in self.answers for path in paths))


def url(server: HttpServer) -> str:
    return f"http://{HOST}:{server.port}"


@pytest.mark.parametrize("http2", [False, True])
def test_promised_answers_come_in_any_order_and_no_task_waits_for_them(http2: bool) -> None:
    pending = Pending()
    paths = ["/a", "/b", "/c"]

    async def test(server: HttpServer) -> None:
        async with httpx.AsyncClient(base_url=url(server), http1=not http2, http2=http2) as client:
            before = asyncio.all_tasks()
            asked = [asyncio.ensure_future(client.post(path, content=path)) for path in paths]
            await pending.has(*paths)
            assert asyncio.all_tasks() == before | {*asked}
            assert len(context_of(server).running) == 3
            for path in reversed(paths):
                pending.answers[path].give(Response(200, path.encode()))
            for path, answer in zip(paths, await asyncio.gather(*asked), strict=True):
                assert (answer.status_code, answer.text) == (200, path)
            assert not context_of(server).running and context_of(server).budget.held_bytes == 0

    serve_for(test, pending.handle, LIMIT_BYTES)


@pytest.mark.parametrize("http2", [False, True])
def test_a_defect_becomes_an_answer_and_a_long_answer_is_compressed(http2: bool) -> None:
    pending = Pending()

    async def test(server: HttpServer) -> None:
        async with httpx.AsyncClient(base_url=url(server), http1=not http2, http2=http2) as client:
            asked = [asyncio.ensure_future(client.get(path)) for path in ("/defect", "/wrong", "/long")]
            await pending.has("/defect", "/wrong", "/long")
            pending.answers["/defect"].give(RuntimeError("secret"))
            pending.answers["/wrong"].give(InvalidInput("so it is"))
            text = b"a" * limits.HTTP_COMPRESSED_LEAST_BYTES
            pending.answers["/long"].give(Response(200, text, "text/plain"))
            defect, wrong, long = await asyncio.gather(*asked)
            assert defect.status_code == 500 and "secret" not in defect.text
            assert wrong.status_code == 400 and wrong.json()["message"] == "so it is"
            assert long.headers["content-encoding"] == "gzip" and long.content == text
            assert len(gzip.compress(text)) < len(text)
            assert not context_of(server).running

    serve_for(test, pending.handle, LIMIT_BYTES)


def test_a_client_that_is_gone_takes_nothing_with_it() -> None:
    pending = Pending()

    async def test(server: HttpServer) -> None:
        _, writer = await connect(server)
        writer.write(get("/gone"))
        await pending.has("/gone")
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()
        await until(lambda: not connections_of(server))
        assert len(context_of(server).running) == 1
        pending.answers["/gone"].give(Response(200, b"unread"))
        assert not context_of(server).running

    serve_for(test, pending.handle, LIMIT_BYTES)


def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    pending = Pending()

    async def test(server: HttpServer) -> None:
        reader, writer = await connect(server)
        writer.write(get("/1") + get("/2"))
        await pending.has("/1")
        assert "/2" not in pending.answers
        pending.answers["/1"].give(Response(200, b"one"))
        await pending.has("/2")
        pending.answers["/2"].give(Response(200, b"two"))
        assert [(await whole_answer(reader))[1] for _ in range(2)] == [b"one", b"two"]
        writer.close()

    serve_for(test, pending.handle, LIMIT_BYTES)


def test_stopping_waits_for_answers_that_are_promised() -> None:
    pending = Pending()

    async def run() -> None:
        server = HttpServer(pending.handle, HOST, 0)
        server.start()
        reader, writer = await connect(server)
        writer.write(get("/last"))
        await pending.has("/last")
        stopping = asyncio.ensure_future(server.stop())
        for _ in range(10):
            await asyncio.to_thread(lambda: None)
        assert not stopping.done()
        pending.answers["/last"].give(Response(200, b"done"))
        assert (await whole_answer(reader))[1] == b"done"
        await asyncio.wait_for(stopping, 10)
        writer.close()

    asyncio.run(run())


def test_a_promise_can_be_awaited_before_and_after_it_is_kept() -> None:
    async def run() -> None:
        early, late, broken = PendingAnswer(), PendingAnswer(), PendingAnswer()
        early.give(Response(200, b"early"))
        waiting = asyncio.ensure_future(settled(late))
        await asyncio.to_thread(lambda: None)
        late.give(Response(200, b"late"))
        assert await settled(early) == Response(200, b"early") and await waiting == Response(200, b"late")
        assert await settled(Response(204)) == Response(204)
        broken.give(InvalidInput("wrong"))
        with pytest.raises(InvalidInput, match="wrong"):
            await settled(broken)
        given_up = PendingAnswer()
        forgotten = asyncio.ensure_future(settled(given_up))
        await asyncio.to_thread(lambda: None)
        forgotten.cancel()
        with pytest.raises(asyncio.CancelledError):
            await forgotten
        given_up.give(Response(200))  # which nobody takes

    asyncio.run(run())
