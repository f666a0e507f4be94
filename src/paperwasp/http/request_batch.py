"""Requests of a feed that came together on one connection, answered without an exchange, a future or a task for each.

    one read of a connection → whole requests that are alike → RequestBatch → a handler takes the first ones of it
        → an answer to each, in any order, later → all that are given in one round of the event loop go out in one call

Alike are requests that differ in nothing but the last part of the path and the body. What a handler does not take goes
the general way, behind what it took: an `Exchange` each. So does an answer that is no plain success, so that errors are
written, compressed and observed in one place.

Everything here runs on the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, Protocol

from paperwasp.http.messages import Request
from paperwasp.http.observing import ExchangedInBatch, Peer, Spoken
from paperwasp.http.pending import Given
from paperwasp.records import frozen


class BatchLine(Spoken, Protocol):
    """The connection of a batch. All of it does nothing where the client is gone."""

    def note_successes(self, batch: RequestBatch) -> None:
        """Has `batch.send` called in the next round of the event loop."""

    def send(self, batch: RequestBatch, numbers: list[int], bodies: list[bytes]) -> None:
        """Sends successes with these bodies."""

    def finish(self, batch: RequestBatch) -> None:
        """All that was taken of the batch is answered."""


AnswerAlone = Callable[["RequestBatch", int, Given], None]
"""Answers one request of a batch as an exchange does."""


class RequestBatch:
    """Requests that are alike, in the order in which they came."""

    __slots__ = (
        "_given",
        "_left",
        "_numbers",
        "_peer",
        "answer_alone",
        "bodies",
        "content_type",
        "head",
        "line",
        "names",
        "received_bytes",
        "since_ns",
        "streams",
    )

    def __init__(
        self,
        line: BatchLine,
        peer: Peer,
        answer_alone: AnswerAlone,
        head: Request,
        streams: Sequence[int],
        names: list[str],
        bodies: list[bytes],
        received_bytes: Sequence[int],
    ) -> None:
        self.line: Final = line
        self._peer = peer
        self.answer_alone: Final = answer_alone
        self.head: Final = head
        """What they have in common: its path ends with a slash, and it has no body; no header says how long one is."""
        self.streams: Final = streams
        self.names: Final = names
        """What stands behind that path, as it came."""
        self.bodies: Final = bodies
        """None of them empty; inflated."""
        self.received_bytes: Final = received_bytes
        """Of each body, as it came."""
        self.since_ns: Final = time.monotonic_ns()
        self.content_type = ""
        """Of successes: the handler says it."""
        self._left = 0
        self._numbers: list[int] = []
        self._given: list[bytes] = []

    def request(self, number: int) -> Request:
        """One of them as a request of its own."""
        return replace(self.head, raw_path=self.head.raw_path + self.names[number], body=self.bodies[number])

    def exchanged(self, number: int, sent_bytes: int) -> ExchangedInBatch:
        """How one of them came and its answer went."""
        return ExchangedInBatch(self.line, self._peer, self.head.scheme, sent_bytes, self.received_bytes[number])

    def take(self, count: int) -> None:
        """The first `count` are to be answered by way of this batch."""
        self._left = count

    def succeed(self, number: int, body: bytes) -> None:
        """Answers the request of that number, which counts from 0, with 200 and this body. Once each."""
        self.succeed_all(number, [body])

    def succeed_all(self, first: int, bodies: Sequence[bytes]) -> None:
        """As `succeed` of as many as there are bodies, from that number on."""
        if not self._numbers:
            self.line.note_successes(self)
        self._numbers += range(first, first + len(bodies))
        self._given += bodies

    def answer(self, number: int, given: Given) -> None:
        """Answers a request with what is no plain success. Once each."""
        self.answer_alone(self, number, given)
        self._note_answered(1)

    def send(self) -> None:
        """Sends the successes that were given since the last call."""
        numbers, bodies = self._numbers, self._given
        self._numbers, self._given = [], []
        self.line.send(self, numbers, bodies)
        self._note_answered(len(numbers))

    def _note_answered(self, count: int) -> None:
        self._left -= count
        if self._left == 0:
            self.line.finish(self)


@frozen
class Batches:
    """What a port does with requests that come together."""

    start: str
    """How their paths begin."""
    begin: Callable[[RequestBatch], int]
    """Takes the first requests of a batch, and returns how many: `succeed` or `answer` is called once for each of them,
    later. It must not raise."""
    observe: Callable[[RequestBatch, Sequence[int], Sequence[bytes], int], None]
    """(batch, numbers, bodies that were sent, nanoseconds), after successes were sent. It must not raise."""
