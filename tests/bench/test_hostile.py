"""Of the hostile benchmark: several requests at once over HTTP/2."""

from __future__ import annotations

import asyncio

from bench.attack import Attack
from bench.hostile_together import COPIES, send_together
from paperwasp.http.messages import Request, Response
from paperwasp.http.server import HttpServer
from tests.http.http_servers import serve_for


def test_requests_are_sent_together() -> None:
    """All are there before the first is answered; the worst status counts."""
    waiting: list[Request] = []
    all_there = asyncio.Event()

    async def answer(request: Request) -> Response:
        waiting.append(request)
        number = len(waiting)
        if number == COPIES:
            all_there.set()
        await all_there.wait()
        return Response(200 if number % 2 else 504, b"x" * 1_000_000)

    async def run(server: HttpServer) -> None:
        attack = Attack("", "POST", "/search/?a=1", b"y" * 90_000, {"Content-Type": "text/plain"})
        assert await asyncio.to_thread(send_together, server.port, attack) == 504

    serve_for(run, answer)
    assert [(each.method, each.raw_path, each.query, each.content_type) for each in waiting] == [
        ("POST", "/search/", "a=1", "text/plain")
    ] * COPIES
    assert all(each.body == b"y" * 90_000 for each in waiting)
