"""The puts and updates of an HTTP/1.1 connection that are answered together with those of other connections.

A connection has one request under way. One of a feed that has come whole, as nearly all do, is given to
`http.port_batches` instead of becoming an exchange, which is made only where the answer is no plain success.

Everything here runs on the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Protocol

from paperwasp.core.http2 import BatchEvent
from paperwasp.http import http1
from paperwasp.http.connection import Connection
from paperwasp.http.exchange import Exchange
from paperwasp.http.http1 import Head, Reader
from paperwasp.http.pending import Given
from paperwasp.http.port_batches import PortBatches
from paperwasp.http.request_batch import RequestBatch

_METHODS: Final = frozenset(("POST", "PUT"))


class AnsweringLine(Protocol):
    """HTTP/1.1 on a connection, which waits for the answer to one request."""

    def make_exchange(self, head: Head) -> Exchange:
        """The exchange of a request with this head."""

    def send_whole(self, start: bytes, body: bytes) -> None:
        """Writes an answer with this body, and a head that starts so."""


class GatheredRequest:
    """The request of one connection that is gathered, one after the other: the connection as batches know it."""

    protocol: ClassVar[str] = "http1"
    version: ClassVar[str] = "HTTP/1.1"

    __slots__ = ("_batches", "_connection", "_head", "_line")

    def __init__(self, batches: PortBatches, connection: Connection) -> None:
        self._batches = batches
        self._connection = connection
        self._line: AnsweringLine | None = None
        """Whose request waits for its answer. Not longer: the line has this object, and two that hold each other stay
        until a collection of garbage."""
        self._head: Head | None = None
        """Of that request."""

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits to be begun, or for its answer."""
        return self._line is not None

    def take(self, head: Head, reader: Reader, line: AnsweringLine) -> bool:
        """Has the request begun with others, if it is one of a feed whose body has come. Not any other: False."""
        method, raw_path, query, fields, host, is_old = head
        batches = self._batches
        if method not in _METHODS or not raw_path.startswith(batches.start) or raw_path[-1] == "/":
            return False
        if is_old or not 0 < fields.length_bytes <= reader.waiting_bytes or fields.host_problem is not None:
            return False
        self._head, self._line = head, line
        at, body = raw_path.rindex("/") + 1, reader.read_body()
        name, start, coding = raw_path[at:], raw_path[:at], fields.headers.get("content-encoding")
        event: BatchEvent
        event = ("batch", [1], method, self.scheme, host, start, query, fields.common, [name], [body], [coding])
        batches.add(self, event)
        return True

    # For batches

    @property
    def peer(self) -> Connection:
        return self._connection

    @property
    def scheme(self) -> str:
        return "https" if self._connection.is_tls else "http"

    def begin_alone(self, number: int, target: tuple[str, str, str], headers: dict[str, str], body: bytes) -> None:
        if (exchange := self._make_exchange()) is not None:
            error = exchange.expect_body(len(body)) or exchange.receive(body)
            exchange.begin() if error is None else exchange.refuse(error)

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        if (exchange := self._make_exchange()) is not None:
            exchange.answer(batch.request(number), given, batch.since_ns, batch.received_bytes[number])

    @staticmethod
    def respond_all(
        lines: Sequence[GatheredRequest], streams: Sequence[int], content_type: str, bodies: list[bytes]
    ) -> Sequence[GatheredRequest]:
        """Writes successes with these bodies, each over its connection."""
        start = http1.start_of_head(200, content_type, is_old=False) + http1.SERVER
        for each, body in zip(lines, bodies, strict=True):
            line, each._line = each._line, None
            if line is not None:
                line.send_whole(start, body)
        return ()

    def _make_exchange(self) -> Exchange | None:
        """The exchange of the request, which is answered by it."""
        line, self._line = self._line, None
        return None if line is None or self._head is None else line.make_exchange(self._head)

    def note_batched(self, count: int) -> None:
        """A connection knows by itself whether its one request is under way."""

    def flush_now(self) -> None:
        self._connection.flush_now()

    def flush_soon(self) -> None:
        self._connection.flush_soon()
