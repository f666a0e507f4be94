"""A server on a free port for as long as one test takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from paperwasp.container.server import Handler, HttpServer

HOST = "127.0.0.1"


def serve_for(test: Callable[[HttpServer], Awaitable[None]], handler: Handler, limit_bytes: int) -> None:
    """Runs the test against a server whose bodies have at most `limit_bytes`, and ends the server."""

    async def run() -> None:
        server = HttpServer(handler, HOST, 0, body_limit_bytes=lambda _: limit_bytes)
        server.start()
        try:
            await test(server)
        finally:
            await asyncio.wait_for(server.stop(), 10)

    asyncio.run(run())
