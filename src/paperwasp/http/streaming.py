"""The chunks of streamed answers: from an iterator to a connection, no faster than its client reads.

Everything here runs on the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Protocol

from paperwasp import limits
from paperwasp.errors import Overload


class ClientGone(Exception):
    """Nobody reads the answer any more."""


class Unread(Exception):
    """The client has not read for so long that it is given up."""


class Sink(Protocol):
    """Where the chunks go."""

    async def write(self, chunk: bytes) -> None:
        """Returns when most of what was written before is on its way. Errors: ClientGone, Unread."""

    def end(self) -> None:
        """The answer is whole."""

    def break_off(self) -> None:
        """The answer has no end, and the client is to see that."""


@asynccontextmanager
async def closed_after(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Has the iterator's `finally` run, however far it was read."""
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def send_chunks(sink: Sink, first: bytes, chunks: AsyncIterator[bytes]) -> None:
    """Sends `first` and all of `chunks`; asks for a chunk when the one before it is on its way.

    Errors: ClientGone; Unread, and what `chunks` raises, after the answer is broken off.
    """
    try:
        await sink.write(first)
        async for chunk in chunks:
            await sink.write(chunk)
    except ClientGone:
        raise
    except BaseException:
        sink.break_off()
        raise
    sink.end()


class Streaming(Protocol):
    """A streamed answer, as the others know it."""

    unread_since: float
    """When it began to wait for its client to read; 0.0: it does not."""

    def give_up(self, reason: Unread) -> None:
        """Breaks the answer off, which waits for its client."""


def make_room(streams: Collection[Streaming]) -> None:
    """Has one more streamed answer fit among these. Those that wait for their clients to read take nothing but memory,
    so they keep no place from others; where they are very many, the longest unread is broken off.

    Errors: Overload.
    """
    if len(streams) < limits.HTTP_STREAMED_ANSWERS:
        return
    unread = [each for each in streams if each.unread_since]
    if len(streams) - len(unread) >= limits.HTTP_STREAMED_ANSWERS:
        raise Overload(
            f"{limits.HTTP_STREAMED_ANSWERS} streamed answers are being made already "
            "(HTTP_STREAMED_ANSWERS in paperwasp.limits)"
        )
    if len(streams) >= limits.HTTP_STREAMED_ANSWERS_MOST:
        reason = "it is the longest unread of too many (HTTP_STREAMED_ANSWERS_MOST in paperwasp.limits)"
        min(unread, key=lambda each: each.unread_since).give_up(Unread(reason))


def unread() -> Unread:
    """The reason to give up a client."""
    return Unread(f"its client has read nothing for {limits.HTTP_UNREAD_SECONDS:g} seconds")
