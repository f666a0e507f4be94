"""HTTP/1.1 on an `http.connection.Connection`: one request after the other, each answered before the next is looked at.
What it waits for meanwhile is its `http.http1_state.State`.

What a client sends ahead waits as bytes; when there are many, no more is read until the answer is out. One of a
feed that has come whole is answered together with those of other connections (`http.http1_gathered`). One that is known
but for a text, or a vector, is answered by the core (`http.routed_requests`), which reads the next one from the socket
(`http.watch`); one that the core has left is read, and answered, as all others.

Everything here runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic, time
from typing import ClassVar, Final

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import InvalidInput, PaperwaspError
from paperwasp.http import http1
from paperwasp.http.connection import Connection
from paperwasp.http.exchange import Exchange
from paperwasp.http.http1 import UNKNOWN, BrokenRequest, Head, OtherProtocol, RequestReader
from paperwasp.http.http1_gathered import GatheredRequest
from paperwasp.http.http1_output import Output
from paperwasp.http.http1_state import State
from paperwasp.http.http2_line import Http2Line
from paperwasp.http.messages import Answer, Request, Response, StreamedResponse
from paperwasp.http.routed_requests import context_again
from paperwasp.http.watch import Watch

_ONLY_NUMBER: Final = 1
"""Of the exchange of an HTTP/1.1 connection; also the stream of the first request after an upgrade."""


class Http1Line:
    """HTTP/1.1, or 1.0, on one connection, which calls `receive` with the bytes that have come."""

    protocol: ClassVar[str] = "http1"

    __slots__ = (
        "_closes",
        "_connection",
        "_discarded_bytes",
        "_ends",
        "_exchange",
        "_gathered",
        "_has_begun",
        "_head",
        "_is_advancing",
        "_is_broken",
        "_is_ended",
        "_left",
        "_may_route",
        "_out",
        "_reader",
        "_rests",
        "_routed",
        "_since",
        "_state",
        "_watch",
        "is_paused",
    )

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader = RequestReader()
        self._state = State.HEAD
        self._exchange: Exchange | None = None
        self._head: Head | None = None
        self._routed: _core.RoutedText | None = None
        """The request that the core is answering."""
        self._may_route = False
        """Whether it is known that the core may write what comes next: nothing else is under way, or left."""
        self._left: _core.RoutedText | None = None
        """The one that the core has left, until it is read."""
        self._has_begun = False
        """Whether a part of the next head has come."""
        self._out = Output(connection)
        self._closes = False
        """Whether the connection ends with the answer that is being made."""
        self._ends = False
        """Whether it ends with what is to be written."""
        self._is_ended = False
        """Whether the client sends no more."""
        self._is_advancing = False
        self._is_broken = False
        """Whether what the client has sent last is no request."""
        self.is_paused = False
        self._watch = Watch(connection)
        batches = connection.context.batches
        self._gathered = None if batches is None else GatheredRequest(batches, connection, self._watch)
        self._rests = False
        """Whether other connections have their turn before its next request."""
        self._since = 0.0
        """When the state DISCARD or LINGER began."""
        self._discarded_bytes = 0

    # From the connection

    def receive(self, data: bytes) -> None:
        may_route = self._may_route or (self._connection.routed is not None and self.is_free)
        if may_route and self._begins_in_core(data):
            return
        if self._state is not State.LINGER:
            self._reader.feed(data)
            if self._rests:
                self._hold_reading(self._has_too_much_ahead())
            else:
                self.advance()

    def receive_end(self) -> None:
        self._is_ended, self._may_route = True, False
        if self._state in (State.DISCARD, State.LINGER):
            self._connection.close()
        elif self._state is State.BODY:
            self._refuse(InvalidInput(http1.BROKEN_CHUNKS), closes=True)
        else:
            self.advance()

    def advance(self) -> None:
        """Goes on for as long as nothing has to be waited for."""
        if self._is_advancing:
            return
        self._may_route = False
        turns = self._connection.context.turns
        self._rests = turns.spent_seconds >= limits.HTTP_ROUND_SECONDS
        if not self._rests:
            self._is_advancing = True
            began = monotonic()
            try:
                self._take_turn(began + limits.HTTP_TURN_SECONDS)
            except PaperwaspError as error:
                self._answer_broken(error)
            finally:
                self._is_advancing = False
                turns.spend(monotonic() - began)
        if self._rests:
            self._connection.advance_soon()
        if self.is_paused or self._reader.waiting_bytes >= limits.HTTP_RECEIVE_BYTES:
            self._hold_reading(self._has_too_much_ahead())

    def flush(self) -> None:
        if self._out.parts:
            self._out.flush()
        if self._ends:
            self._ends = False
            self._end()

    def drain(self) -> None:
        self._may_route = False
        if self._connection.answer_socket is not None:
            self._connection.answer_socket.end_soon()
        if self._gathered is not None and (came := self._gathered.end_reading()):
            self.receive(came)
        if self._watch.end() and self._state in (State.HEAD, State.DISCARD):
            self._ends = True

    def lose(self) -> None:
        self._watch.end()
        if self._gathered is not None:
            self._gathered.end_reading()
        if self._exchange is not None:
            self._exchange.lose()

    @property
    def has_handler(self) -> bool:
        if self._exchange is not None:
            return self._exchange.has_handler
        return not self.is_idle

    @property
    def is_idle(self) -> bool:
        is_gathered = self._gathered is not None and self._gathered.is_waiting
        return self._exchange is None and self._routed is None and not (is_gathered or self._watch.is_answering)

    @property
    def held_back_bytes(self) -> int:
        return 0

    def is_overdue(self, now: float) -> bool:
        state = self._state
        if state is State.BODY and self._exchange is not None:
            if (error := self._exchange.slowness()) is not None:
                self._refuse(error, closes=True)
                self.flush()
            return False
        if state is State.HEAD:
            seconds = limits.HTTP_HEAD_SECONDS if self._has_begun else limits.HTTP_IDLE_MS / 1000
            return now - self._connection.since > seconds
        return state is not State.ANSWER and now - self._since > limits.HTTP_DISCARD_SECONDS

    # Requests that the core answers

    @property
    def is_free(self) -> bool:
        """Whether the core may write the next answer: this one is of no other request, and all before have left."""
        connection = self._connection
        if connection.answer_socket is None or self._state is not State.HEAD:
            return False
        if self._reader.waiting_bytes or self._out.parts or self._rests or self._ends or self._is_ended:
            return False
        return connection.is_written and not connection.is_draining and not connection.sends_no_more

    def _begins_in_core(self, data: bytes) -> bool:
        """Has the core answer a request that is known but for its own values. False: it is to be read."""
        connection = self._connection
        assert connection.routed is not None and connection.answer_socket is not None
        routed = connection.routed.begin(data, connection.answer_socket, self.end_routed, connection)
        if routed is not None:
            self.wait_for(routed)
            if routed.is_here:
                self.end_routed(routed)
        return routed is not None

    def wait_for(self, routed: _core.RoutedText) -> None:
        """The core is answering a request."""
        self._connection.has_asked, self._may_route = True, False
        self._head, self._closes, self._state, self._routed = None, False, State.ANSWER, routed

    def end_routed(self, routed: _core.RoutedText) -> None:
        """The core has answered a request, or left it."""
        connection, self._routed = self._connection, None
        if connection.routed is None or not connection.routed.complete(routed):
            self._watch.expect_bytes()
            self._read_left(routed)
            return
        connection.routed.note_sent(routed, self, connection)
        if routed.is_unsent:
            self._out.add(routed.unsent)
        elif not (self._reader.waiting_bytes or self._is_ended or connection.is_draining or connection.is_closing):
            connection.since, self._state, self._may_route = monotonic(), State.HEAD, True
            if not self.is_paused:
                self._watch.expect_request(self)
            return
        self._watch.expect_bytes()
        self._go_on()

    def _read_left(self, routed: _core.RoutedText) -> None:
        """Has a request read, and answered, that the core has left."""
        self._left, self._state = routed, State.HEAD
        self._reader.feed_again(routed.request)
        if routed.is_here:
            self.advance()
        else:
            self._connection.advance_soon()

    # Requests

    def _take_turn(self, until: float) -> None:
        """Takes steps until it has to wait, or others have their turn. Errors: what is wrong with a head."""
        left = limits.HTTP_TURN_REQUESTS
        while not self._rests and self._step():
            if self._state is State.HEAD:
                left -= 1
                if self._reader.waiting_bytes:
                    self._rests = left == 0 or monotonic() >= until
                elif not self._is_ended:
                    break

    def _step(self) -> bool:
        """Takes one step. Returns False where it has to wait. Errors: what is wrong with a head."""
        state, connection = self._state, self._connection
        if connection.is_closing or self._ends:
            return False
        if state is State.HEAD:
            return not connection.is_choked and self._read_head()
        if state is State.BODY:
            return self._read_body()
        if state is State.ANSWER and self._exchange is not None:
            self._exchange.go_on()
        return state is State.DISCARD and self._discard()

    def _read_head(self) -> bool:
        connection = self._connection
        head = self._reader.read_head() if self._reader.waiting_bytes else None
        if head is None:
            self._wait_for_head()
            return False
        connection.has_asked, self._has_begun = True, False
        fields = head.fields
        self._head, self._closes, self._state = head, head.closes, State.ANSWER
        if self._gathered is not None and self._gathered.take(head, self._reader, self):
            return True
        exchange = self.make_exchange(head[:3], head.host, fields.headers)
        if fields.host_problem is not None and not head.is_old:
            self._refuse(InvalidInput(fields.host_problem))
        elif fields.length_bytes:
            self._expect_body(exchange, head)
        elif fields.h2_settings is not None and not head.is_old and not connection.is_tls:
            self._upgrade(exchange, fields.h2_settings)
        else:
            exchange.begin()
        return True

    def make_exchange(self, target: tuple[str, str, str], host: str, headers: Mapping[str, str]) -> Exchange:
        """The exchange of a request."""
        connection, left = self._connection, self._left
        context = connection.context if left is None else context_again(connection.context, left)
        self._left = None
        exchange = Exchange(context, self, _ONLY_NUMBER, target, (connection.scheme, host), headers, connection)
        self._exchange = exchange
        exchange.since_ns = exchange.since_ns if left is None else left.begun_ns
        return exchange

    def _wait_for_head(self) -> None:
        if self._is_ended:
            self._ends = True
        elif not self._has_begun and self._reader.waiting_bytes:
            self._has_begun = True
            if self._connection.has_asked:
                self._connection.since = monotonic()

    def _expect_body(self, exchange: Exchange, head: Head) -> None:
        length_bytes = head.fields.length_bytes
        waits = head.fields.expects_continue and not head.is_old and not self._reader.waiting_bytes
        self._state = State.BODY
        error = exchange.expect_body(None if length_bytes == UNKNOWN else length_bytes)
        if error is not None:  # who would wait, or send for ever, need not send what is not read
            self._refuse(error, closes=waits or length_bytes > limits.HTTP_DISCARDED_MOST_BYTES)
        elif waits:
            self._out.add(http1.CONTINUE)

    def _read_body(self) -> bool:
        exchange, reader = self._exchange, self._reader
        assert exchange is not None
        try:
            piece = reader.read_body()
        except BrokenRequest as broken:
            self._refuse(broken, closes=True)
            return False
        if piece and (error := exchange.receive(piece)) is not None:
            self._refuse(error)
        elif reader.is_body_over:
            self._state = State.ANSWER
            exchange.begin()
        else:
            self._rests = bool(piece) and reader.waiting_bytes > 0
            return False
        return True

    def _discard(self) -> bool:
        """Throws away what has come of a refused body."""
        try:
            piece = self._reader.read_body()
        except BrokenRequest:
            self._ends = True
            return False
        self._discarded_bytes += len(piece)
        if self._reader.is_body_over:
            self._state = State.HEAD
            return True
        self._rests = bool(piece) and self._reader.waiting_bytes > 0
        self._ends = self._discarded_bytes > limits.HTTP_DISCARDED_BYTES
        return False

    def _refuse(self, error: PaperwaspError, closes: bool = False) -> None:
        """Answers a request whose body is not wanted. `closes`: what follows cannot be read."""
        assert self._exchange is not None
        self._closes |= closes
        self._exchange.refuse(error)

    def _answer_broken(self, error: PaperwaspError) -> None:
        """Answers what is no request, and ends the connection. Who begins in another protocol gets no answer of this
        one: it may be a broken preface of HTTP/2."""
        connection = self._connection
        if isinstance(error, OtherProtocol) and not connection.has_asked:
            connection.close()
            return
        connection.has_asked = True
        self._head, self._closes, self._ends, self._is_broken = None, True, True, True
        answer = connection.context.error_response(Request("GET", "/"), error)
        self._send_head(answer, http1.length_line(answer.status, len(answer.body)))
        self._out.add(answer.body)

    def _upgrade(self, exchange: Exchange, settings: bytes) -> None:
        """Goes on in HTTP/2, where this request is the first stream."""
        self.flush()
        line = Http2Line(self._connection)
        if not line.upgrade(exchange, settings):
            self._refuse(InvalidInput("HTTP2-Settings are broken"), closes=True)
            return
        self._exchange = None
        self._watch.end()
        self._connection.line = line
        self._ends = False
        exchange.begin()
        if rest := self._reader.take_rest():
            line.receive(rest)
        line.flush()

    # Answers

    def respond(self, exchange: Exchange, answer: Response) -> None:
        self._send_head(answer, http1.length_line(answer.status, len(answer.body)))
        if answer.body and exchange.method != "HEAD":
            self._out.add_body(answer.body)

    def send_whole(self, start: bytes, body: bytes) -> None:
        """Writes an answer with this body, and a head that starts so."""
        closes = self._closes or self._connection.is_draining
        self._out.add(start + _core.last_lines(len(body), closes, int(time())) + body)
        self._connection.flush_now()
        self._go_on()

    def note_read(self, *, waits: bool) -> None:
        """A request that the thread of feeds has read waits for its answer, which that writes; or no more."""
        self._connection.since, self._may_route = monotonic(), False
        self._state = State.ANSWER if waits else State.HEAD

    def open_stream(self, exchange: Exchange, answer: StreamedResponse) -> None:
        if exchange.method == "HEAD":
            self._send_head(answer, b"")
        elif self._is_old:
            self._closes = True
            self._send_head(answer, b"")
        else:
            self._send_head(answer, http1.CHUNKED)

    def send(self, exchange: Exchange, chunk: bytes) -> None:
        self._out.add(chunk if self._is_old else http1.chunk(chunk))
        self.flush()

    def end_stream(self, exchange: Exchange) -> None:
        if not self._is_old:
            self._out.add(http1.LAST_CHUNK)

    def break_off(self, exchange: Exchange) -> None:
        self._out.clear()
        if self._is_old:  # whose bodies end with the connection
            self._connection.abort()
        else:
            self._connection.close()

    def unsent_bytes(self, exchange: Exchange) -> int:
        return self._connection.unread_bytes if self._connection.is_choked else 0

    def finish(self, exchange: Exchange) -> None:
        self._exchange = None
        self._go_on()

    def _go_on(self) -> None:
        """Goes on with what follows the answer that has ended."""
        connection = self._connection
        connection.since = self._since = monotonic()
        if connection.is_closing:
            return
        self._ends = self._closes or (connection.is_draining and not self._watch.is_ending)
        self._state = State.HEAD if self._reader.is_body_over else State.DISCARD
        self._discarded_bytes = 0
        if not self._is_advancing:
            if self._out.parts or self._ends:
                connection.flush_soon()
            if self._reader.waiting_bytes or self._is_ended:
                connection.advance_soon()

    @property
    def is_closing(self) -> bool:
        return self._connection.sends_no_more

    @property
    def version(self) -> str:
        return "HTTP/1.0" if self._is_old else "HTTP/1.1"

    @property
    def _is_old(self) -> bool:
        return self._head is not None and self._head.is_old

    def _send_head(self, answer: Answer, framing: bytes) -> None:
        self._out.add_head(answer, framing, closes=self._closes, is_old=self._is_old)

    # The end

    def _end(self) -> None:
        """Closes the connection. A client that may still send sees the answer first: what is closed while something
        comes in is reset, and the answer lost."""
        is_silent = self._reader.is_body_over and not self._is_broken
        if is_silent or not self._connection.end_writing():
            self._connection.close()
        else:
            self._state, self._since = State.LINGER, monotonic()
            self._hold_reading(False)

    def _has_too_much_ahead(self) -> bool:
        """Whether the client has sent so much that no more is read before an answer is out."""
        waits = self._state is State.ANSWER or self._rests or self._connection.is_choked
        return waits and self._reader.waiting_bytes >= limits.HTTP_RECEIVE_BYTES

    def _hold_reading(self, holds: bool) -> None:
        if holds != self.is_paused:
            self._watch.end()
            self.is_paused = holds
            self._connection.hold_reading(holds)
