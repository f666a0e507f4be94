"""Requests of a feed that came together, answered without an exchange, a future or a task for each.

    reads of connections → whole requests that are alike → RequestBatch → a handler takes the first ones of it
        → an answer to each, in any order, later → all that are given in one round of the event loop go out in one call

Alike are requests that differ in nothing but the connection, the last part of the path and the body. What a handler
does not take goes the general way, behind what it took: an `Exchange` each. So does an answer that is no plain success,
so that errors are written, compressed and observed in one place.

Everything here runs on the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.http.messages import Request
from paperwasp.http.observing import ExchangedInBatch, Peer, Spoken
from paperwasp.http.pending import Given

_LOG: Final = logging.getLogger("paperwasp.http")


class BatchLine(Spoken, Protocol):
    """The connection of a request. All of it does nothing where the client is gone."""

    @property
    def peer(self) -> Peer: ...

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        """Answers one request of a batch as an exchange does."""


class BatchPort(Protocol):
    """Where batches come from."""

    def note_successes(self, batch: RequestBatch) -> None:
        """Has `batch.send` called in the next round of the event loop."""

    def send(self, batch: RequestBatch, numbers: list[int], bodies: list[bytes]) -> None:
        """Sends successes with these bodies."""

    def finish(self, batch: RequestBatch) -> None:
        """All that was taken of the batch is answered."""


class RequestBatch:
    """Requests that are alike: those of one connection in the order in which they came."""

    __slots__ = (
        "_given",
        "_left",
        "_numbers",
        "_port",
        "bodies",
        "content_type",
        "head",
        "lines",
        "names",
        "received_bytes",
        "since_ns",
        "streams",
    )

    def __init__(
        self,
        port: BatchPort,
        head: Request,
        lines: Sequence[BatchLine],
        streams: Sequence[int],
        names: list[str],
        bodies: list[bytes],
        received_bytes: Sequence[int],
        since_ns: int,
    ) -> None:
        """`since_ns`: when the first of them came, by the monotonic clock."""
        self._port = port
        self.head: Final = head
        """The head that they share: its path ends with a slash, and it has no body; no header says how long one is. The
        client's address and certificate are not in it."""
        self.lines: Final = lines
        self.streams: Final = streams
        self.names: Final = names
        """The rest of each path behind that of the head, as it came."""
        self.bodies: Final = bodies
        """None of them empty; inflated. The first requests have one here; those behind them cannot be taken."""
        self.received_bytes: Final = received_bytes
        """Of each body, as it came."""
        self.since_ns: Final = since_ns
        self.content_type = ""
        """Of successes: the handler says it."""
        self._left = 0
        self._numbers: list[int] = []
        self._given: list[bytes] = []

    def request(self, number: int) -> Request:
        """One of them as a request of its own."""
        head, peer = self.head, self.lines[number].peer
        path, body = head.raw_path + self.names[number], self.bodies[number]
        return replace(head, raw_path=path, body=body, client=peer.certificate, address=peer.address)

    def exchanged(self, number: int, sent_bytes: int) -> ExchangedInBatch:
        """How one of them came and its answer went."""
        line = self.lines[number]
        return ExchangedInBatch(line, line.peer, self.head.scheme, sent_bytes, self.received_bytes[number])

    def take(self, count: int) -> None:
        """The first `count` are to be answered by way of this batch."""
        self._left = count

    def succeed(self, number: int, body: bytes) -> None:
        """Answers the request of that number, which counts from 0, with 200 and this body. Once each."""
        self.succeed_all(number, [body])

    def succeed_all(self, first: int, bodies: Sequence[bytes]) -> None:
        """As `succeed` of as many as there are bodies, from that number on."""
        if not self._numbers:
            self._port.note_successes(self)
        self._numbers += range(first, first + len(bodies))
        self._given += bodies

    def answer(self, number: int, given: Given) -> None:
        """Answers a request with what is no plain success. Once each."""
        try:
            self.lines[number].answer_alone(self, number, given)
        except Exception:  # a defect costs its own answer, and not those that come with it
            _LOG.exception("an answer was lost")
        self._note_answered(1)

    def send(self) -> None:
        """Sends the successes that were given since the last call."""
        numbers, bodies = self._numbers, self._given
        self._numbers, self._given = [], []
        try:
            self._port.send(self, numbers, bodies)
        except Exception:  # a defect costs these answers, and not those of others
            _LOG.exception("%d answers were lost", len(numbers))
        self._note_answered(len(numbers))

    def _note_answered(self, count: int) -> None:
        self._left -= count
        if self._left == 0:
            self._port.finish(self)


class Batches(Struct, frozen=True):
    """Takes the requests of a port that come together."""

    start: str
    """How their paths begin."""
    begin: Callable[[RequestBatch], int]
    """Takes the first requests of a batch that have bodies there, and returns how many: `succeed` or `answer` is called
    once for each of them, later. Where it raises, a defect, it has taken none."""
    observe: Callable[[RequestBatch, Sequence[int], Sequence[bytes], int], None]
    """(batch, numbers, bodies that were sent, nanoseconds), after successes were sent. It must not raise."""
