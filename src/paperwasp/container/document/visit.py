"""Visiting: GET for many documents, answered whole or as a stream.

    request → path and parameters → content cluster, chunk by chunk → JSON

The content cluster keeps nothing between chunks, and the container nothing between requests: a continuation says where
to go on, after a restart too. Streaming, the next chunk is read while one is sent, and no more: a client that reads
slowly, or goes away, costs nothing but two chunks.

Runs on the event loop and never blocks it.
Vespa: https://docs.vespa.ai/en/writing/visiting.html
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import Final

from msgspec import structs

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.container.document.visit_parameters import Visit
from paperwasp.container.document.visit_rendering import (
    JSON,
    ObjectRendering,
    Rendering,
    VisitEnd,
    rendering,
    stream_form,
)
from paperwasp.coordination.messages.documents import VisitedDocument, VisitResponse
from paperwasp.coordination.messenger import Messenger
from paperwasp.errors import Overload, PaperwaspError, Timeout
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse

_NANOS_PER_MS: Final = 1_000_000


class Visitor:
    """One request's part of a visit: asks for chunks, and knows where the visit is."""

    def __init__(self, visit: Visit, messenger: Messenger, environment: Environment) -> None:
        self.visit = visit
        self.token = visit.start.token
        """Where the last chunk ended."""
        self.is_done = False
        self.count = 0
        """Documents that were visited."""
        self.progress = 0.0
        self._chunks = 0
        self._messenger = messenger
        self._environment = environment
        began_ns = environment.monotonic_ns()
        self.deadline_ns = began_ns + int(visit.visit_ms * _NANOS_PER_MS)
        self._doom_ns = began_ns + int(visit.timeout_ms * _NANOS_PER_MS)

    @property
    def has_moved(self) -> bool:
        """Whether there is any progress."""
        return self._chunks > 0

    @property
    def is_late(self) -> bool:
        """Whether the time for the visit is over. A little is left for the answer."""
        return self._environment.monotonic_ns() >= self.deadline_ns

    @property
    def left_seconds(self) -> float:
        """The seconds that are left for the whole request; 0: its time is over."""
        return max(0.0, (self._doom_ns - self._environment.monotonic_ns()) / 1e9)

    @property
    def continuation(self) -> str | None:
        """For the next request; None: the visit is at its end."""
        return None if self.is_done else str(replace(self.visit.start, token=self.token))

    def end(self, message: str | None = None) -> VisitEnd:
        """How the part ends, now."""
        trace: tuple[str, ...] = ()
        if self.visit.trace_level > 0:
            cluster = self.visit.cluster.id
            trace = (f"Visited {self.count} documents in {self._chunks} chunks of content cluster '{cluster}'",)
        return VisitEnd(self.count, self.continuation, self.progress, message, trace)

    async def next(self, documents: int = limits.VISIT_DOCUMENTS) -> tuple[VisitedDocument, ...]:
        """The next chunk. Errors: as VisitRequest; Overload; Timeout."""
        return self._take(await self._ask(self.token, documents))

    async def chunks(self) -> AsyncGenerator[tuple[VisitedDocument, ...], None]:
        """All chunks until the end, or until the time is over; the next is requested before one is given.

        Errors: as `next`; but after the first chunk, an overloaded cluster is asked again.
        """
        asked: asyncio.Future[VisitResponse] | None = asyncio.ensure_future(self._ask(self.token))
        try:
            while asked is not None:
                response, asked = await asked, None
                if response.token is not None:
                    asked = asyncio.ensure_future(self._ask_again(response.token))
                yield self._take(response)
                if self.is_late:
                    return
        finally:
            if asked is not None:
                asked.cancel()
                with suppress(asyncio.CancelledError, PaperwaspError):
                    await asked

    def _take(self, response: VisitResponse) -> tuple[VisitedDocument, ...]:
        self._chunks += 1
        self.is_done = response.token is None
        self.token = response.token or self.token
        self.progress = response.progress
        self.count += len(response.documents)
        return response.documents

    async def _ask(self, token: bytes, documents: int = limits.VISIT_DOCUMENTS) -> VisitResponse:
        request = structs.replace(
            self.visit.documents,
            token=token,
            documents=documents,
            size_bytes=limits.VISIT_BYTES,
            deadline_ns=self.deadline_ns,
        )
        try:
            async with asyncio.timeout(self.left_seconds):
                response = await self._messenger.request(self.visit.cluster.address, request)
        except TimeoutError:
            raise Timeout(f"Timeout after {self.visit.timeout_ms:.0f}ms") from None
        assert isinstance(response, VisitResponse)
        return response

    async def _ask_again(self, token: bytes) -> VisitResponse:
        while True:
            try:
                return await self._ask(token)
            except Overload:
                if self.is_late:
                    raise
            await asyncio.sleep(limits.VISIT_RETRY_SECONDS)


async def answer_visit(request: Request, visit: Visit, messenger: Messenger, environment: Environment) -> Answer:
    """The answer to a GET for many documents, which asks for `visit`. Errors: as VisitRequest; Overload; Timeout."""
    visitor = Visitor(visit, messenger, environment)
    if not visit.stream:
        return await _whole(request, visitor)
    form = stream_form(request)
    chunks = _stream(visitor, rendering(form, request.raw_path))
    first = await anext(chunks)  # an error at the beginning is answered by the status
    return StreamedResponse(200, _Begun(first, chunks), form.content_type)


async def _whole(request: Request, visitor: Visitor) -> Response:
    written = ObjectRendering(request.raw_path)
    pieces = [written.start()]
    size_bytes, status, message = 0, 200, None
    try:
        while not visitor.is_done and not _is_enough(visitor, size_bytes):
            pieces.append(written.documents(await visitor.next(_documents(visitor))))
            size_bytes += len(pieces[-1])
    except Timeout:
        if not visitor.has_moved:
            status, message = 504, f"No buckets visited within timeout of {visitor.visit.visit_ms:.0f}ms"
    except PaperwaspError as error:
        if not visitor.has_moved:
            raise
        if not isinstance(error, Overload):
            status, message = 500, error.message
    end = visitor.end(message)
    pieces.append(written.end(end if status == 200 else replace(end, continuation=None)))
    return Response(status, b"".join(pieces), JSON)


def _is_enough(visitor: Visitor, size_bytes: int) -> bool:
    """Whether there is an answer: at least one document, where the request does not say how many it wants."""
    wanted = min(visitor.visit.wanted or 1, limits.VISIT_ANSWER_DOCUMENTS)
    return visitor.count >= wanted or size_bytes >= limits.VISIT_ANSWER_BYTES or (visitor.has_moved and visitor.is_late)


def _documents(visitor: Visitor) -> int:
    """How many to ask for next."""
    wanted = visitor.visit.wanted
    return limits.VISIT_DOCUMENTS if wanted is None else min(wanted - visitor.count, limits.VISIT_DOCUMENTS)


async def _stream(visitor: Visitor, written: Rendering) -> AsyncGenerator[bytes, None]:
    """The pieces of the answer. Errors: only those of the first chunk; later ones stand at the end of the answer."""
    message = None
    try:
        async with aclosing(visitor.chunks()) as chunks:
            head = written.start()
            async for documents in chunks:
                continuation = visitor.continuation
                place = b"" if continuation is None else written.place(continuation, visitor.progress)
                yield head + written.documents(documents) + place
                head = b""
    except PaperwaspError as error:
        if not visitor.has_moved:
            raise
        message = None if isinstance(error, Timeout | Overload) else error.message
    yield written.end(visitor.end(message))


class _Begun:
    """A stream whose first piece has been looked at already."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        self._first: bytes | None = first
        self._rest = rest

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return await anext(self._rest)

    async def aclose(self) -> None:
        """Ends the visit."""
        await self._rest.aclose()
