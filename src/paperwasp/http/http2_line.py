"""HTTP/2 on a connection: the kernel reads and makes frames, this gives its streams to exchanges.

    request whose body has come       begun at once, all of one read together; those of a feed in batches
    request whose body is to come     given pieces, then begun, or refused; of a refused body the rest is thrown away
    more unread than there may be     requests wait to be begun until the client has read

Source: RFC 9113. Everything here runs on the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import ClassVar

from paperwasp import limits
from paperwasp.core.http.http2 import BatchEvent, Http2Connection, Http2Error, http2_respond_all
from paperwasp.errors import PaperwaspError
from paperwasp.http import http1
from paperwasp.http.connection import Connection
from paperwasp.http.exchange import Exchange
from paperwasp.http.http2_heads import CONTINUE, answer_head, length_field
from paperwasp.http.messages import Response, StreamedResponse
from paperwasp.http.pending import Given
from paperwasp.http.request_batch import RequestBatch


class _Body:
    """A body that is to come."""

    __slots__ = ("exchange", "left_bytes", "since")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Exchange | None = exchange
        """None: it was refused."""
        self.left_bytes = limits.HTTP_DISCARDED_BYTES
        """Of a refused body, how much more is thrown away before the client is asked to stop."""
        self.since = monotonic()


class Http2Line:
    """HTTP/2 on one connection."""

    protocol: ClassVar[str] = "http2"

    __slots__ = (
        "_batched",
        "_bodies",
        "_connection",
        "_exchanges",
        "_is_ended",
        "_is_held",
        "_refilled",
        "_turn_ends",
        "_waiting",
        "kernel",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        batches = connection.context.batches
        self.kernel = Http2Connection(
            limits.HTTP_STREAMS,
            limits.HTTP_HEADERS_BYTES,
            limits.HTTP_STREAM_WINDOW_BYTES,
            limits.HTTP_CONNECTION_WINDOW_BYTES,
            batch_start="" if batches is None else batches.start,
        )
        self._batched = 0
        """Requests that are waited for, or will be begun, together with others."""
        self._exchanges: dict[int, Exchange] = {}
        self._bodies: dict[int, _Body] = {}
        self._waiting: deque[Exchange] = deque()
        """Requests that are whole, and begun when the client has read more of what it has asked before."""
        self._turn_ends = 0.0
        """When the requests of this read have taken long enough: others wait in line."""
        self._refilled = monotonic()
        self._is_ended = False
        """Whether the client sends no more, and so gives no window either."""
        self._is_held = False
        """Whether answers wait until the client of an upgrade has begun to speak HTTP/2."""

    def upgrade(self, exchange: Exchange, settings: bytes) -> bool:
        """Goes on for HTTP/1.1, whose request becomes stream 1. Returns False where the settings are broken."""
        if not self.kernel.upgrade(settings):
            return False
        exchange.move(self, 1)
        self._exchanges[1] = exchange
        self._connection.write(http1.SWITCHING + self.kernel.take_output())
        self._is_held = True  # since curl takes no more than 32 KiB together with the end of HTTP/1.1
        return True

    # From the connection

    def receive(self, data: bytes) -> None:
        asks = self._is_held = False
        turns, began = self._connection.context.turns, monotonic()
        self._turn_ends = 0.0 if turns.spent_seconds >= limits.HTTP_ROUND_SECONDS else began + limits.HTTP_TURN_SECONDS
        for event in self.kernel.receive(data):
            if self._batched and event[0] != "batch":
                self._begin_batched()
            if event[0] == "request":
                asks = True
                _, number, method, _, authority, path, query, headers, body, ended = event
                exchange = self._new_exchange(number, (method, path, query), authority or headers["host"], headers)
                if ended and not body:
                    self._begin(exchange)
                else:
                    self._expect_body(exchange, body, ended)
            elif event[0] == "batch":
                asks = True
                self._begin_batch(event)
            elif event[0] == "data":
                self._receive_body(event[1], event[2], event[3])
            elif event[0] == "reset":
                self._lose(event[1])
            else:
                self.lose()
        turns.spend(monotonic() - began)
        if asks:
            self._connection.has_asked = True
            if self._connection.is_draining:
                self.kernel.go_away()

    def receive_end(self) -> None:
        for number in list(self._bodies):
            self.kernel.reset(number, Http2Error.CANCEL)
            self._lose(number)
        self.kernel.go_away()
        self._is_ended = True
        self._is_held = False  # a client that has asked for an upgrade and gone will not speak HTTP/2

    def advance(self) -> None:
        for exchange in list(self._exchanges.values()):
            exchange.go_on()
        turns, began = self._connection.context.turns, monotonic()
        until = began + limits.HTTP_TURN_SECONDS
        while self._waiting and not self._is_unread() and turns.spent_seconds < limits.HTTP_ROUND_SECONDS:
            exchange = self._waiting.popleft()
            if not exchange.is_gone:
                exchange.begin()
                if monotonic() >= until:
                    break
        turns.spend(monotonic() - began)

    def flush(self) -> None:
        kernel, connection = self.kernel, self._connection
        if self._is_held:
            return
        while not connection.is_choked and (data := kernel.take_output()):
            connection.write(data)
        for number in kernel.take_drained():
            if (exchange := self._exchanges.get(number)) is not None:
                exchange.go_on()
        if self._waiting and not self._is_unread():
            connection.advance_soon()
        if not connection.is_choked and (kernel.is_over or (self._is_ended and kernel.unsent_bytes())):
            connection.close()

    def drain(self) -> None:
        """Says that no more requests are taken when those under way are answered, or when more come: some clients
        (httpcore) give up everything at the first word of the end."""
        if self.is_idle:
            self.kernel.go_away()

    def lose(self) -> None:
        self._waiting.clear()
        for number in list(self._exchanges):
            self._lose(number)

    @property
    def has_handler(self) -> bool:
        return self._batched > 0 or any(exchange.has_handler for exchange in self._exchanges.values())

    @property
    def is_idle(self) -> bool:
        return not (self._exchanges or self._batched)

    @property
    def held_back_bytes(self) -> int:
        return self.kernel.unsent_bytes()

    def is_overdue(self, now: float) -> bool:
        if now - self._refilled > limits.HTTP_BUDGET_SECONDS:
            self._refilled = now
            self.kernel.refill_budgets()
        for number, body in list(self._bodies.items()):
            if body.exchange is None:
                if now - body.since > limits.HTTP_DISCARD_SECONDS:
                    self._stop_body(number)
            elif (error := body.exchange.slowness()) is not None:
                self._refuse(body, error)
                self._stop_body(number)
        self._connection.flush()
        return self.is_idle and now - self._connection.since > limits.HTTP_IDLE_MS / 1000

    # Requests

    def _new_exchange(
        self, number: int, target: tuple[str, str, str], host: str, headers: Mapping[str, str]
    ) -> Exchange:
        connection = self._connection
        exchange = Exchange(connection.context, self, number, target, (self.scheme, host), headers, connection)
        self._exchanges[number] = exchange
        return exchange

    def _begin_batch(self, event: BatchEvent) -> None:
        """Has the requests begun with others; behind what waits here, where something does."""
        batches = self._connection.context.batches
        assert batches is not None
        if self._must_wait():
            batches.begin_each(self, event)
        else:
            batches.add(self, event)

    def _begin_batched(self) -> None:
        """Begin the requests that were gathered, so that others come behind them."""
        if (batches := self._connection.context.batches) is not None:
            batches.begin_all()

    # For batches

    @property
    def peer(self) -> Connection:
        return self._connection

    @property
    def scheme(self) -> str:
        return self._connection.scheme

    def begin_alone(self, number: int, target: tuple[str, str, str], headers: dict[str, str], body: bytes) -> None:
        self._expect_body(self._new_exchange(number, target, headers["host"], headers), body, ended=True)

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        request = batch.request(number)
        target = (request.method, request.raw_path, request.query)
        exchange = self._new_exchange(batch.streams[number], target, request.host, request.headers)
        exchange.answer(request, given, batch.since_ns, batch.received_bytes[number])

    @staticmethod
    def respond_all(
        lines: Sequence[Http2Line], streams: Sequence[int], content_type: str, bodies: list[bytes]
    ) -> Sequence[Http2Line]:
        """Makes frames of successes with these bodies, each for its line."""
        http2_respond_all([line.kernel for line in lines], list(streams), answer_head(200, content_type, {}), bodies)
        return lines

    def note_batched(self, count: int) -> None:
        self._batched += count
        if not self._batched:
            self._connection.since = monotonic()
            if self._connection.is_draining:
                self.drain()
                self._connection.flush_soon()

    def flush_now(self) -> None:
        self._connection.flush_now()

    def flush_soon(self) -> None:
        self._connection.flush_soon()

    def _begin(self, exchange: Exchange) -> None:
        """Has a request answered, or wait until the client has read other answers, or others had their turn."""
        if self._must_wait():
            self._waiting.append(exchange)
        else:
            exchange.begin()

    def _must_wait(self) -> bool:
        return bool(self._waiting) or self._is_unread() or monotonic() >= self._turn_ends

    def _is_unread(self) -> bool:
        return self._connection.is_choked or self.kernel.unsent_bytes() > limits.HTTP_UNSENT_BYTES

    def _expect_body(self, exchange: Exchange, body: bytes, ended: bool) -> None:
        number, headers = exchange.number, exchange.headers
        length = headers.get("content-length")
        error = exchange.expect_body(None if length is None else int(length))
        if error is None and body:
            error = exchange.receive(body)
        if ended:
            self._begin(exchange) if error is None else exchange.refuse(error)
            return
        coming = self._bodies[number] = _Body(exchange)
        if body:
            self.kernel.consume(number, len(body))
        if error is not None:
            self._refuse(coming, error)
            if _waits(headers):
                self._stop_body(number)
        elif not body and _waits(headers):
            self.kernel.inform(number, CONTINUE)

    def _receive_body(self, number: int, piece: bytes, ended: bool) -> None:
        body = self._bodies.get(number)
        if body is None:
            return
        if piece and not ended:
            self.kernel.consume(number, len(piece))
        exchange = body.exchange
        if exchange is not None:
            if piece and (error := exchange.receive(piece)) is not None:
                self._refuse(body, error)
            elif ended:
                self._begin(exchange)
        else:
            body.left_bytes -= len(piece)
            if body.left_bytes < 0:
                self._stop_body(number)
        if ended:
            self._bodies.pop(number, None)

    def _refuse(self, body: _Body, error: PaperwaspError) -> None:
        """Answers a request whose body is not wanted, and is thrown away from now on."""
        exchange, body.exchange, body.since = body.exchange, None, monotonic()
        if exchange is not None:
            exchange.refuse(error)

    def _stop_body(self, number: int) -> None:
        """Says that no more of a refused body is read."""
        del self._bodies[number]
        self.kernel.reset(number, Http2Error.NO_ERROR)

    def _lose(self, number: int) -> None:
        self._bodies.pop(number, None)
        exchange = self._exchanges.get(number)
        if exchange is not None:
            exchange.lose()

    # Answers

    @property
    def is_closing(self) -> bool:
        return self._connection.sends_no_more

    @property
    def version(self) -> str:
        return "HTTP/2.0"

    def respond(self, exchange: Exchange, answer: Response) -> None:
        is_head, body = exchange.method == "HEAD", answer.body
        block = answer_head(answer.status, answer.content_type, answer.headers)
        if is_head or not body:
            block += length_field(answer.status, len(body))
        self.kernel.respond(exchange.number, block, b"" if is_head else body, True)

    def open_stream(self, exchange: Exchange, answer: StreamedResponse) -> None:
        block = answer_head(answer.status, answer.content_type, answer.headers)
        self.kernel.respond(exchange.number, block, b"", exchange.method == "HEAD")

    def send(self, exchange: Exchange, chunk: bytes) -> None:
        self.kernel.send_data(exchange.number, chunk, False)
        self.flush()

    def end_stream(self, exchange: Exchange) -> None:
        self.kernel.send_data(exchange.number, b"", True)

    def break_off(self, exchange: Exchange) -> None:
        self.kernel.reset(exchange.number, Http2Error.INTERNAL_ERROR)
        self._connection.flush_soon()

    def unsent_bytes(self, exchange: Exchange) -> int:
        unsent_bytes = self.kernel.unsent_bytes(exchange.number)
        return unsent_bytes or (self._connection.unread_bytes if self._connection.is_choked else 0)

    def finish(self, exchange: Exchange) -> None:
        self._exchanges.pop(exchange.number, None)
        if self._connection.is_draining and self.is_idle:
            self.kernel.go_away()
        self._connection.since = monotonic()
        self._connection.flush_soon()


def _waits(headers: Mapping[str, str]) -> bool:
    """Whether the client waits to be asked for the body."""
    return headers.get("expect", "").lower() == "100-continue"
