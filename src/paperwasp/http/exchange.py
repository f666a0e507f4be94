"""One request and its answer, from the head of the one to the end of the other; whichever protocol carries them.

The line of a connection makes an exchange of each head, gives it the body as it comes, and begins it when that is over.
The exchange holds the body within its limits, has it inflated, calls the handler and sends the answer back. What is
wrong becomes an answer here: bodies that are too large, announced or not; compressed bodies that explode; broken
encodings; handlers that fail. A client never sees a stack trace; the log does.

A handler is called while its request is read, and a coroutine that it returns runs up to its first wait, without a task
of its own. So all requests of one wake-up of the event loop reach their handlers before anything runs that these
schedule with `loop.call_soon`: work that is to be done for many requests at once can be gathered until then. A handler
that returns a `PendingAnswer` has ended: nothing but the exchange waits for the answer.

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import InternalError, InvalidInput, PaperwaspError
from paperwasp.http.bodies import BodyBudget, is_too_slow, too_slow
from paperwasp.http.compression import (
    as_gzip,
    compress,
    compressed,
    compressed_stream,
    gzipped,
    inflated,
    inflated_at_once,
    is_compressed,
    takes_gzip,
    too_large,
)
from paperwasp.http.eager import run_eagerly
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse
from paperwasp.http.observing import Exchanged, Peer, Spoken
from paperwasp.http.pending import Begun, Given, PendingAnswer
from paperwasp.http.port_batches import PortBatches
from paperwasp.http.request_batch import Batches, RequestBatch
from paperwasp.http.streaming import ClientGone, Unread, closed_after, make_room, send_chunks, unread
from paperwasp.http.traffic import Traffic
from paperwasp.http.turns import Turns

Handler = Callable[[Request], Begun]
ErrorResponse = Callable[[Request, PaperwaspError], Response]
BodyLimit = Callable[[str], int]
"""raw path → how large a body may be, in bytes."""
Observer = Callable[[Exchanged, Request, Answer, int], None]
"""(how it went, request, the answer that was sent, nanoseconds), after each answer. It must not raise."""

_LOG: Final = logging.getLogger("paperwasp.http")


class PortContext(Struct, eq=False):
    """The state that the connections of one port share."""

    handler: Handler
    error_response: ErrorResponse
    body_limit_bytes: BodyLimit
    observe: Observer | None
    budget: BodyBudget
    return_memory: Callable[[], None]
    """Called after each large request."""
    loop: asyncio.AbstractEventLoop
    turns: Turns
    traffic: Traffic = field(default_factory=Traffic)
    inflating: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Who has it inflates a large body; all of them hold no more than one beyond the budget."""
    running: set[Exchange | RequestBatch] = field(default_factory=set)
    """The exchanges and batches whose handlers, or answers, are waited for."""
    streams: set[Exchange] = field(default_factory=set)
    """The exchanges that send streamed answers."""
    became_idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever nothing runs any more."""
    together: Batches | None = None
    """Takes requests that come together; None: they are handled as all others."""
    batches: PortBatches | None = None

    def __post_init__(self) -> None:
        if self.together is not None:
            self.batches = PortBatches(self, self.together)

    def note_running(self, each: Exchange | RequestBatch) -> None:
        """It waits for a handler, or for its answer to be sent."""
        self.running.add(each)

    def end_running(self, each: Exchange | RequestBatch) -> None:
        """It runs no more."""
        if each in self.running:
            self.running.discard(each)
            if not self.running:
                self.became_idle.set()


class ResponseLine(Spoken, Protocol):
    """The connection of an exchange, in its protocol. All of it does nothing where the client is gone."""

    @property
    def is_closing(self) -> bool:
        """Whether nothing more is sent. The exchanges learn of it a moment later, by `lose`."""

    def respond(self, exchange: Exchange, answer: Response) -> None:
        """Sends a whole answer."""

    def open_stream(self, exchange: Exchange, answer: StreamedResponse) -> None:
        """Sends the head of a streamed answer."""

    def send(self, exchange: Exchange, chunk: bytes) -> None:
        """Sends a piece of the body of a streamed answer."""

    def end_stream(self, exchange: Exchange) -> None:
        """Says that the body of a streamed answer was whole; the exchange is over with `finish`."""

    def break_off(self, exchange: Exchange) -> None:
        """Ends the answer so that the client sees that it is not whole."""

    def unsent_bytes(self, exchange: Exchange) -> int:
        """How much of what was sent has not left; 0 where the next chunk may be made."""

    def finish(self, exchange: Exchange) -> None:
        """Lets go of the exchange, which is over, whether it was answered or not."""


class Exchange:
    """One request and its answer: made by the line of a connection, it calls the handler of the port."""

    __slots__ = (
        "_body",
        "_context",
        "_has_begun",
        "_held_bytes",
        "_limit_bytes",
        "_task",
        "_waiter",
        "headers",
        "host",
        "is_cut",
        "is_gone",
        "line",
        "method",
        "number",
        "peer",
        "query",
        "raw_path",
        "received_bytes",
        "scheme",
        "sent_bytes",
        "since_ns",
        "unread_since",
    )

    def __init__(
        self,
        context: PortContext,
        line: ResponseLine,
        number: int,
        target: tuple[str, str, str],
        origin: tuple[str, str],
        headers: Mapping[str, str],
        peer: Peer,
    ) -> None:
        """`number`: its stream; `target`: method, raw path and query; `origin`: scheme and host."""
        self._context = context
        self.line = line
        self.number = number
        self.method, self.raw_path, self.query = target
        self.scheme, self.host = origin
        self.headers = headers
        self.peer = peer
        self.since_ns = time.monotonic_ns()
        self._has_begun = False
        """Whether it is answered, or being answered."""
        self.is_cut = False
        self.is_gone = False
        """Whether nobody reads the answer any more."""
        self.sent_bytes = 0
        """Of the answer's body, as it was sent: compressed where it was."""
        self._body: list[bytes] = []
        self.received_bytes = 0
        """Of the request's body, as it came: compressed where it was."""
        self._held_bytes = 0
        self._limit_bytes = 0
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.unread_since = 0.0
        """Of a streamed answer: when it began to wait for its client to read; 0.0: it does not."""

    @property
    def has_handler(self) -> bool:
        """Whether a handler waits for something, to answer it."""
        return self in self._context.running and self not in self._context.streams

    # The request

    def expect_body(self, length_bytes: int | None) -> PaperwaspError | None:
        """A body is to come, of that length if it was announced. Returns the reason to refuse it, if there is one."""
        self._limit_bytes = self._context.body_limit_bytes(self.raw_path)
        if length_bytes is not None and length_bytes > self._limit_bytes:
            return too_large(length_bytes, self._limit_bytes)
        return None

    def receive(self, piece: bytes) -> PaperwaspError | None:
        """More of the body has come. Returns the reason to refuse it, if there is one."""
        size_bytes = self.received_bytes = self.received_bytes + len(piece)
        if size_bytes > self._limit_bytes:
            return too_large(size_bytes, self._limit_bytes)
        try:
            self._hold(len(piece))
        except PaperwaspError as error:
            return error
        self._body.append(piece)
        return None

    def slowness(self) -> PaperwaspError | None:
        """The reason to refuse a body that has taken longer than it may until now."""
        seconds = (time.monotonic_ns() - self.since_ns) / 1e9
        return too_slow(self.received_bytes, seconds) if is_too_slow(self.received_bytes, seconds) else None

    def refuse(self, error: PaperwaspError) -> None:
        """Answers the request with what is wrong with it. No more of its body is wanted."""
        self._has_begun = True
        self._body.clear()
        self._finish(self._request(b""), error)

    def answer(self, request: Request, given: Given, since_ns: int, received_bytes: int) -> None:
        """Answers a request that came in a batch, then and with so large a body."""
        self._has_begun = True
        self.since_ns, self.received_bytes = since_ns, received_bytes
        self._finish(request, given)

    def begin(self) -> None:
        """The whole request is there: has it answered."""
        self._has_begun = True
        body = b"".join(self._body)
        self._body.clear()
        if body and "content-encoding" in self.headers:
            small = inflated_at_once(body, self.headers["content-encoding"], self._limit_bytes)
            if small is None:
                self._run(self._serve_inflated(body))
                return
            try:
                self._hold(len(small))
            except PaperwaspError as error:
                self.refuse(error)
                return
            body = small
        request = self._request(body)
        begun = self._call(request)
        if isinstance(begun, PendingAnswer):
            self._wait_for(request, begun)
        elif isinstance(begun, Response):
            self._finish(request, begun)
        else:
            self._run(self._serve(request, begun))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = run_eagerly(self._context.loop, work)
        if self._task is not None:
            self._context.note_running(self)

    def _hold(self, size_bytes: int) -> None:
        """Errors: Overload."""
        budget = self._context.budget
        budget.check(size_bytes, self._held_bytes)
        budget.held_bytes += size_bytes
        self._held_bytes += size_bytes

    def _request(self, body: bytes) -> Request:
        certificate, address = self.peer.certificate, self.peer.address
        return Request(
            self.method, self.raw_path, self.query, self.headers, body, self.scheme, self.host, certificate, address
        )

    def _call(self, request: Request) -> Begun:
        try:
            return self._context.handler(request)
        except Exception as error:
            return self._failure(request, error)

    def _wait_for(self, request: Request, answer: PendingAnswer) -> None:
        self._context.note_running(self)
        answer.hand_to(partial(self._finish, request))

    def _finish(self, request: Request, given: Given) -> None:
        """Sends a whole answer, which ends the exchange."""
        answer = self._failure(request, given) if isinstance(given, Exception) else given
        if is_compressed(request, answer):
            if len(answer.body) > limits.HTTP_INLINE_GZIP_BYTES:
                self._context.note_running(self)
                self._task = self._context.loop.create_task(self._serve(request, answer))
                return
            answer = as_gzip(answer, compress(answer.body))
        try:
            sent = self._respond(request, answer)
        finally:
            self._end()
        self._note(request, sent)

    async def _serve(self, request: Request, begun: Begun) -> None:
        """Runs what a handler has begun, and sends the answer, unless that is still to come."""
        answer: Answer | PendingAnswer | None = None
        try:
            answer = await self._run_handler(request, begun)
            if not isinstance(answer, PendingAnswer):
                sent = await self._send(request, answer)
        finally:
            if not isinstance(answer, PendingAnswer):
                self._end()
        if isinstance(answer, PendingAnswer):
            self._wait_for(request, answer)
        else:
            self._note(request, sent)

    async def _run_handler(self, request: Request, begun: Begun) -> Answer | PendingAnswer:
        if isinstance(begun, Response | StreamedResponse | PendingAnswer):
            return begun
        try:
            return await begun
        except Exception as error:
            return self._failure(request, error)

    async def _serve_inflated(self, body: bytes) -> None:
        """Inflates the body, and does all the rest."""
        try:
            body = await inflated(body, self.headers["content-encoding"], self._limit_bytes, self._context.inflating)
            self._hold(len(body))
        except PaperwaspError as error:
            self._finish(self._request(b""), error)
        except Exception as error:
            self._finish(self._request(b""), InvalidInput(f"The request body could not be read: {error}"))
        except BaseException:
            self._end()
            raise
        else:
            request = self._request(body)
            await self._serve(request, self._call(request))

    def _note(self, request: Request, sent: Answer) -> None:
        """The request was answered, and the exchange is over."""
        context = self._context
        if len(request.body) >= limits.LARGE_REQUEST_BYTES:
            context.return_memory()
        if context.observe is not None:
            context.observe(self, request, sent, time.monotonic_ns() - self.since_ns)

    def _end(self) -> None:
        """Gives back what the exchange holds, and has the line let go of it."""
        context = self._context
        context.budget.held_bytes -= self._held_bytes
        self._held_bytes = 0
        context.end_running(self)
        self.line.finish(self)

    def move(self, line: ResponseLine, number: int) -> None:
        """Goes on as a stream of an upgraded connection."""
        self.line, self.number = line, number

    # The answer

    async def _send(self, request: Request, answer: Answer) -> Answer:
        """The answer that was sent."""
        if isinstance(answer, StreamedResponse):
            return await self._stream(request, answer)
        if is_compressed(request, answer):
            answer = as_gzip(answer, await compressed(answer.body))
        return self._respond(request, answer)

    def _respond(self, request: Request, answer: Response) -> Response:
        """As `_send`, of an answer as it is."""
        try:
            self.line.respond(self, answer)
        except ValueError as error:  # a header field that may not be sent
            return self._respond_failure(request, error)
        if self.method != "HEAD":
            self.sent_bytes = len(answer.body)
        return answer

    async def _stream(self, request: Request, answer: StreamedResponse) -> Answer:
        """The answer that was sent. What fails before the first chunk still has an answer; later it cuts the answer."""
        streams = self._context.streams
        async with closed_after(answer.chunks) as chunks:
            try:
                make_room(streams)
            except PaperwaspError as error:
                return self._respond_failure(request, error)
            if takes_gzip(request, answer):
                chunks = compressed_stream(chunks)
                answer = replace(answer, chunks=chunks, headers=gzipped(answer.headers))
            streams.add(self)
            try:
                if request.method == "HEAD":
                    self.line.open_stream(self, answer)
                    return answer
                try:
                    first = await anext(chunks, b"")
                except Exception as error:
                    return self._respond_failure(request, error)
                self.line.open_stream(self, answer)
                await self._send_stream(first, chunks)
            except asyncio.CancelledError:
                if not (self.is_cut or self.is_gone):
                    raise
                self.break_off()
            finally:
                streams.discard(self)
        return answer

    async def _send_stream(self, first: bytes, chunks: AsyncIterator[bytes]) -> None:
        try:
            await send_chunks(self, first, chunks)
        except ClientGone:
            _LOG.debug("%s %s: the client is gone", self.method, self.raw_path)
        except Unread as error:
            _LOG.warning("%s %s: the answer is broken off, since %s", self.method, self.raw_path, error)
        except Exception:
            _LOG.exception("%s %s failed while its answer was sent", self.method, self.raw_path)

    async def write(self, chunk: bytes) -> None:
        """Sends a chunk, and waits until most of it has left. Errors: ClientGone, Unread."""
        self._check_client()
        if chunk:
            self.sent_bytes += len(chunk)
            self.line.send(self, chunk)
        while unsent_bytes := self.line.unsent_bytes(self):
            waiter = self._waiter = self._context.loop.create_future()
            self.unread_since = self.unread_since or time.monotonic()
            try:
                async with asyncio.timeout(limits.HTTP_UNREAD_SECONDS):
                    await waiter
            except TimeoutError:
                if self.line.unsent_bytes(self) >= unsent_bytes:
                    raise unread() from None
            finally:
                self._waiter = None
            self._check_client()
        self.unread_since = 0.0

    def give_up(self, reason: Unread) -> None:
        """Breaks off a streamed answer that waits for its client."""
        self.unread_since = 0.0
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(reason)

    def _check_client(self) -> None:
        """Errors: ClientGone."""
        if self.is_gone or self.line.is_closing:
            raise ClientGone

    def end(self) -> None:
        """Says that the body of the streamed answer was whole. `http.streaming.send_chunks` calls it."""
        self.line.end_stream(self)

    def break_off(self) -> None:
        self.line.break_off(self)

    def go_on(self) -> None:
        """The last chunk has left: the next one may be made."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def lose(self) -> None:
        """The client is gone. A handler goes on, since what it does may be half done; a streamed answer ends."""
        self.is_gone = True
        if self in self._context.streams:
            if self._waiter is not None:
                self.go_on()
            elif self._task is not None:
                self._task.cancel()
        elif not self._has_begun:
            self._end()

    def cut(self) -> None:
        """Breaks off a streamed answer, since the server stops."""
        self.is_cut = True
        if self._task is not None:
            self._task.cancel()

    def _respond_failure(self, request: Request, error: Exception) -> Response:
        failed = self._failure(request, error)
        self.line.respond(self, failed)
        self.sent_bytes = len(failed.body)
        return failed

    def _failure(self, request: Request, error: Exception) -> Response:
        if isinstance(error, PaperwaspError):
            return self._context.error_response(request, error)
        _LOG.error("%s %s failed", request.method, request.raw_path, exc_info=error)
        return self._context.error_response(request, InternalError("Internal server error"))
