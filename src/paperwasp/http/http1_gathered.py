"""The puts and updates of an HTTP/1.1 connection that are answered together with those of other connections.

A connection has one request under way. One of a feed that has come whole, as nearly all do, is given to
`http.port_batches` instead of becoming an exchange, which is made only where the answer is no plain success. After the
first of them a thread reads those that follow and writes their answers (`http.feed_reader`), where they are alike.

Everything here runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, Protocol

from paperwasp.core.http.http2 import BatchEvent
from paperwasp.http import http1
from paperwasp.http.connection import Connection
from paperwasp.http.exchange import Exchange
from paperwasp.http.feed_reader import Form
from paperwasp.http.http1 import Head, RequestReader
from paperwasp.http.pending import Given
from paperwasp.http.port_batches import PortBatches
from paperwasp.http.request_batch import RequestBatch
from paperwasp.http.watch import Watch

_METHODS: Final = frozenset(("POST", "PUT"))


class AnsweringLine(Protocol):
    """HTTP/1.1 on a connection, which waits for the answer to one request: `http.http1_line.Http1Line`."""

    def receive(self, data: bytes) -> None:
        """More has come."""

    def make_exchange(self, target: tuple[str, str, str], host: str, headers: Mapping[str, str]) -> Exchange:
        """The exchange of a request."""

    def send_whole(self, start: bytes, body: bytes) -> None:
        """Writes an answer with this body, and a head that starts so."""

    def note_read(self, *, waits: bool) -> None:
        """A request that the thread of feeds has read waits for its answer, which that writes; or no more."""

    @property
    def is_free(self) -> bool:
        """Whether nothing is under way, or left to be read or written."""


class GatheredRequest:
    """The request of one connection that is gathered, one after the other: the connection as batches know it."""

    protocol: ClassVar[str] = "http1"
    version: ClassVar[str] = "HTTP/1.1"

    __slots__ = ("_batches", "_connection", "_is_known", "_line", "_reading", "_watch")

    def __init__(self, batches: PortBatches, connection: Connection, watch: Watch) -> None:
        self._batches = batches
        self._connection = connection
        self._watch = watch
        self._line: AnsweringLine | None = None
        """Whose request waits for its answer. Not longer: the line has this object, and two that hold each other stay
        until a collection of garbage."""
        self._is_known = False
        """Whether the thread of feeds takes requests like the last one."""
        self._reading: AnsweringLine | None = None
        """The line, while the thread of feeds reads the socket, for which the transport has paused."""

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits to be begun, or for its answer."""
        return self._line is not None

    def take(self, head: Head, reader: RequestReader, line: AnsweringLine) -> bool:
        """Has the request begun with others, if it is one of a feed whose body has come. Not any other: False."""
        method, raw_path, query, fields, host, is_old = head
        batches = self._batches
        if method not in _METHODS or not raw_path.startswith(batches.start) or raw_path[-1] == "/":
            return False
        if is_old or not 0 < fields.length_bytes <= reader.waiting_bytes or fields.host_problem or host != fields.host:
            return False
        self._line = line
        at, body = raw_path.rindex("/") + 1, reader.read_body()
        start, coding = raw_path[:at], fields.headers.get("content-encoding")
        form = Form(method, self.scheme, host, start, query, fields.common, coding)
        is_usual = not (fields.closes or fields.expects_continue) and self._connection.answer_socket is not None
        self._is_known = is_usual and batches.reader.learn(reader.whole, form)
        event: BatchEvent = ("batch", [1], *form[:6], [raw_path[at:]], [body], [coding])
        batches.add(self, event)
        return True

    # For the thread of feeds

    def expect_answer(self) -> None:
        """A request has come, and is begun with others."""
        self._line = self._reading
        if self._line is not None:
            self._line.note_read(waits=True)

    def take_back(self, came: bytes, unsent: bytes) -> None:
        """The thread reads the socket no more: what has come on it, and what is left to be sent."""
        line, self._reading = self._reading, None
        self._connection.hold_reading(False)
        if unsent:
            self._connection.write(unsent)
        if came and line is not None and not self._connection.is_closing:
            self._connection.deliver(line.receive, came)

    def _begin_reading(self, line: AnsweringLine) -> None:
        """Has the thread read the next requests, and write their answers."""
        if self._batches.reader.watch(self._connection.socket_number, self):
            self._reading = line
            self._connection.hold_reading(True)

    def end_reading(self) -> bytes:
        """Has the transport read again. Returns what the thread has read that nobody has begun."""
        if self._reading is None:
            return b""
        self._reading = None
        came, unsent = self._batches.reader.unwatch(self._connection.socket_number)
        if unsent:
            self._connection.write(unsent)
        self._connection.hold_reading(False)
        return came

    # For batches

    @property
    def peer(self) -> Connection:
        return self._connection

    @property
    def scheme(self) -> str:
        return self._connection.scheme

    def begin_alone(self, number: int, target: tuple[str, str, str], headers: dict[str, str], body: bytes) -> None:
        if (exchange := self._make_exchange(target, headers)) is not None:
            error = exchange.expect_body(len(body)) or exchange.receive(body)
            exchange.begin() if error is None else exchange.refuse(error)

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        request = batch.request(number)
        target = (request.method, request.raw_path, request.query)
        if (exchange := self._make_exchange(target, request.headers)) is not None:
            exchange.answer(request, given, batch.since_ns, batch.received_bytes[number])

    @staticmethod
    def respond_all(
        lines: Sequence[GatheredRequest], streams: Sequence[int], content_type: str, bodies: list[bytes]
    ) -> Sequence[GatheredRequest]:
        """Writes successes with these bodies, each over its connection, or has the thread of feeds write them."""
        start = http1.start_of_head(200, content_type, is_old=False) + http1.SERVER
        sockets: list[int] = []
        for_thread: list[bytes] = []
        for each, body in zip(lines, bodies, strict=True):
            line, each._line = each._line, None
            if line is None:
                continue
            if each._reading is not None:
                line.note_read(waits=False)
                sockets.append(each._connection.socket_number)
                for_thread.append(body)
            else:
                line.send_whole(start, body)
                if each._is_known and line.is_free and not each._watch.is_on:
                    each._begin_reading(line)
        if sockets:
            lines[0]._batches.reader.answer(sockets, start, for_thread)
        return ()

    def _make_exchange(self, target: tuple[str, str, str], headers: Mapping[str, str]) -> Exchange | None:
        """The exchange of the request, which is answered by it."""
        line, self._line = self._line, None
        self.end_reading()  # nothing has come: the thread reads nothing while a request waits
        return None if line is None else line.make_exchange(target, headers["host"], headers)

    def note_batched(self, count: int) -> None:
        """A connection knows by itself whether its one request is under way."""

    def flush_now(self) -> None:
        self._connection.flush_now()

    def flush_soon(self) -> None:
        self._connection.flush_soon()
