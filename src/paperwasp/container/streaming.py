"""The bodies of streamed answers: from an iterator through a named pipe to the socket.

The HTTP library takes chunks without ever saying that they are sent, so a slow reader would have the whole answer wait
in memory. It does read files no faster than the client takes them; so the body goes to it as a file: a named pipe,
which holds 64 KiB, then lets us wait, and breaks when the client is gone. Nor can the library end an answer as broken;
so the connection is shut down below it.

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from paperwasp import limits
from paperwasp.errors import InternalError

Headers = list[tuple[bytes, bytes]]

_POLL_SECONDS: Final = 0.0005
_OWNER_ONLY: Final = 0o600


class ClientGone(Exception):
    """Nobody reads the answer any more."""


class Unread(Exception):
    """The client has not read for so long that it is given up."""


class Pipes:
    """Names for the pipes of one server, in a directory that is made when the first one is needed."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._numbers = count()

    @contextmanager
    def named(self) -> Iterator[str]:
        """The path of a new pipe, which loses its name at the end."""
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="paperwasp-")
        path = Path(self._directory.name) / str(next(self._numbers))
        os.mkfifo(path, _OWNER_ONLY)
        try:
            yield str(path)
        finally:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None


@asynccontextmanager
async def closed_after(chunks: AsyncIterator[bytes]) -> AsyncIterator[AsyncIterator[bytes]]:
    """Has the iterator's `finally` run, however far it was read."""
    try:
        yield chunks
    finally:
        if isinstance(chunks, AsyncGenerator):
            await chunks.aclose()


async def send_stream(
    pipes: Pipes,
    protocol: Any,
    head: tuple[int, Headers],
    first: bytes,
    chunks: AsyncIterator[bytes],
    cut: Callable[[], None],
) -> None:
    """Sends status, headers, `first` and all of `chunks`; asks for a chunk when the one before it is in the pipe.

    Errors: ClientGone; Unread, and what `chunks` raises, after `cut` has shut down the connection: once the pipe is
    closed, what was sent looks whole.
    """
    with pipes.named() as path:
        protocol.send({"type": "http.response.start", "status": head[0], "headers": head[1]})
        protocol.send({"type": "http.response.pathsend", "path": path})
        pipe = await _opened(path)
    with closing(_Writer(pipe)) as writer:
        try:
            await writer.write(first)
            async for chunk in chunks:
                await writer.write(chunk)
        except ClientGone:
            raise
        except BaseException:
            cut()
            raise


async def _opened(path: str) -> int:
    """The writing end, once the reader has opened its own. Errors: InternalError where it does not come."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.HTTP_STREAM_OPEN_SECONDS
    while loop.time() < deadline:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is no reader yet
                raise
        await asyncio.sleep(_POLL_SECONDS)
    raise InternalError("Nobody reads the answer")


class _Writer:
    """The writing end of a pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    async def write(self, chunk: bytes) -> None:
        """Returns when all of the chunk is in the pipe. Errors: ClientGone; Unread."""
        rest = memoryview(chunk)
        while rest:
            try:
                rest = rest[os.write(self._pipe, rest) :]
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                raise ClientGone from None

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._pipe, _wake, waiter)
        try:
            async with asyncio.timeout(limits.HTTP_STREAM_UNREAD_SECONDS):
                await waiter
        except TimeoutError:
            raise Unread(f"its client has read nothing for {limits.HTTP_STREAM_UNREAD_SECONDS:g} seconds") from None
        finally:
            loop.remove_writer(self._pipe)

    def close(self) -> None:
        os.close(self._pipe)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
