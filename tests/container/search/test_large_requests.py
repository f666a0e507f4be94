"""Requests that take long to read are read outside the event loop, one at a time; small ones on it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from paperwasp import limits
from paperwasp.container.threads import read_in_turn
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request

SMALL = Request("PUT", "/", "a=b", body=b"{}")
LARGE = [
    Request("PUT", "/", body=bytes(limits.JSON_PIECE_BYTES + 1)),
    Request("PUT", "/", body=bytes(limits.LARGE_REQUEST_BYTES)),
    Request("GET", "/", "x" * (limits.DOCUMENT_INLINE_QUERY_CHARACTERS + 1)),
]


def test_small_ones_are_read_at_once() -> None:
    async def run() -> None:
        assert await read_in_turn(asyncio.Lock(), SMALL, threading.get_ident) == threading.get_ident()

    asyncio.run(run())


@pytest.mark.parametrize("request_", LARGE, ids=["a body", "a very large body", "a query string"])
def test_large_ones_are_read_on_a_thread_while_the_loop_goes_on(request_: Request) -> None:
    """Each waits until the loop has counted to three; together they are never two at a time."""
    counted = threading.Event()
    inside = threading.Semaphore(1)

    def read() -> int:
        assert inside.acquire(blocking=False), "one at a time"
        assert counted.wait(30), "the loop goes on"
        inside.release()
        return threading.get_ident()

    async def run() -> None:
        lock = asyncio.Lock()
        readings = [asyncio.ensure_future(read_in_turn(lock, request_, read)) for _ in range(3)]
        for _ in range(3):
            await asyncio.wait(readings, timeout=0)
        counted.set()
        assert threading.get_ident() not in await asyncio.gather(*readings)

    asyncio.run(run())


def test_what_is_wrong_is_raised_and_the_turn_passes_on() -> None:
    def fail() -> None:
        raise InvalidInput("wrong")

    async def run() -> None:
        lock = asyncio.Lock()
        with pytest.raises(InvalidInput, match="wrong"):
            await read_in_turn(lock, LARGE[0], fail)
        assert await read_in_turn(lock, LARGE[0], lambda: "right") == "right"

    asyncio.run(run())
