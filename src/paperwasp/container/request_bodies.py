"""Reading request bodies: each within its own limit, all of them within a common one, and none of them for ever.

    announced too long, or more than there is room for   refused before the rest is read
    too slow                                              `ConnectionGuard` ends the reading: 408
    broken chunks, or the client is gone                  400, for whoever still listens

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from paperwasp import limits
from paperwasp.container.connections import ConnectionGuard, Reading
from paperwasp.errors import InvalidInput, Overload, SlowRequest
from paperwasp.http.compression import inflated, too_large

_BODILESS_METHODS: Final = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))
_CONTINUE: Final = "100-continue"
_UNKNOWN: Final = -1


class BodyBudget:
    """The bytes of bodies that are held from their first byte until they are answered, of all ports together."""

    def __init__(self, limit_bytes: int = limits.HTTP_BODIES_BYTES) -> None:
        self.held_bytes = 0
        self._limit_bytes = limit_bytes

    def check(self, size_bytes: int, own_bytes: int) -> None:
        """Whether there is room for so much more of a body of which `own_bytes` are held. One that is alone may be
        as large as its own limit lets it be. Errors: Overload."""
        others_bytes = self.held_bytes - own_bytes
        if others_bytes > 0 and self.held_bytes + size_bytes > self._limit_bytes:
            raise Overload(
                f"The bodies of requests under way have {self.held_bytes} bytes together; at most {self._limit_bytes} "
                "(HTTP_BODIES_BYTES in paperwasp.limits): try again later, or send less at a time"
            )


BODIES: Final = BodyBudget()
"""The budget of this process."""


class RequestBody:
    """One body and its share of the budget, which `release` gives back."""

    def __init__(self, budget: BodyBudget, inflating: asyncio.Lock, limit_bytes: int) -> None:
        """`inflating`: who has it inflates a large body; all of them hold no more than one beyond the budget."""
        self._budget = budget
        self._inflating = inflating
        self._limit_bytes = limit_bytes
        self._held_bytes = 0

    def _hold(self, size_bytes: int) -> None:
        """Errors: Overload."""
        self._budget.check(size_bytes, self._held_bytes)
        self._budget.held_bytes += size_bytes
        self._held_bytes += size_bytes

    def release(self) -> None:
        """The body is answered."""
        self._budget.held_bytes -= self._held_bytes
        self._held_bytes = 0

    async def read(self, protocol: Any, headers: dict[str, str], guard: ConnectionGuard) -> bytes:
        """The whole body, inflated. `guard` ends it where the client is too slow; how long inflating takes is not the
        client's doing. Errors: TooLarge, InvalidInput, Overload, SlowRequest."""
        reading = guard.begin_reading()
        try:
            body = await self._read_sent(protocol, headers, reading)
        except asyncio.CancelledError:
            if not reading.is_overdue:
                raise
            raise SlowRequest(
                f"{reading.size_bytes} bytes of the body came in {reading.seconds():.0f} seconds, which is too slow "
                "(HTTP_BODY_SECONDS and HTTP_BODY_BYTES_A_SECOND in paperwasp.limits)"
            ) from None
        finally:
            guard.end_reading(reading)
        encoding = headers.get("content-encoding")
        if encoding is None:
            return body
        body = await inflated(body, encoding, self._limit_bytes, self._inflating)
        self._hold(len(body))
        return body

    async def _read_sent(self, protocol: Any, headers: dict[str, str], reading: Reading) -> bytes:
        """The body as it is sent. Stops at the announced length: to wait for the end is one more round of the loop."""
        length_bytes = int(headers.get("content-length", _UNKNOWN))
        if length_bytes > self._limit_bytes:
            await _discard(protocol, headers, length_bytes)
            raise too_large(length_bytes, self._limit_bytes)
        chunks, size_bytes, more = [], 0, True
        while more and size_bytes != length_bytes:
            message = await protocol.receive()
            if message["type"] != "http.request":
                raise InvalidInput(
                    "The request body could not be read: its chunks are broken, or the client went away before its end"
                )
            chunks.append(message["body"])
            more = message["more_body"]
            size_bytes += len(chunks[-1])
            reading.size_bytes = size_bytes
            try:
                if size_bytes > self._limit_bytes:
                    raise too_large(size_bytes, self._limit_bytes)
                self._hold(len(chunks[-1]))
            except (InvalidInput, Overload):
                chunks.clear()
                await _discard(protocol, headers, length_bytes, more)
                raise
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def has_body(method: str, headers: dict[str, str]) -> bool:
    """Whether a request has one, or may have one."""
    if "content-length" in headers:
        return headers["content-length"] != "0"
    return method not in _BODILESS_METHODS or "transfer-encoding" in headers


async def _discard(protocol: Any, headers: dict[str, str], length_bytes: int, more: bool = True) -> None:
    """Reads on for a while, so that a client that sends before it listens gets to see the refusal. One that asks
    before it sends sees it at once, and of one that would send much more than is read, the connection is closed."""
    if headers.get("expect", "").lower() == _CONTINUE or length_bytes > limits.HTTP_DISCARDED_MOST_BYTES:
        return
    size_bytes = 0
    try:
        async with asyncio.timeout(limits.HTTP_DISCARD_SECONDS):
            while more and size_bytes < limits.HTTP_DISCARDED_BYTES:
                message = await protocol.receive()
                if message["type"] != "http.request":
                    return
                size_bytes += len(message["body"])
                more = message["more_body"]
    except TimeoutError:
        return
