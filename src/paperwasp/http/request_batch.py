"""Requests of a feed that came together on one connection, answered without an exchange, a future or a task for each.

    one read of a connection → whole requests that are alike → RequestBatch → a handler takes the first ones of it
        → an answer to each, in any order, now or later → all that were given in a round go out in one call

Alike are requests that differ in nothing but the last part of the path and the body. What a handler does not take goes
the general way, behind what it took: an `Exchange` each. So does an answer that is no plain success, so that errors are
written, compressed and observed in one place.

Everything here runs on the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from paperwasp.http.messages import Request
from paperwasp.http.pending import Given
from paperwasp.records import frozen


class BatchLine(Protocol):
    """The connection of a batch."""

    protocol: str

    def note_answers(self, batch: RequestBatch) -> None:
        """Has `batch.send` called with the next flush."""

    def answer_alone(self, batch: RequestBatch, number: int, given: Given) -> None:
        """Answers one request of the batch as an exchange does."""

    def send_answers(self, batch: RequestBatch, numbers: Sequence[int], bodies: Sequence[bytes]) -> None:
        """Sends whole answers: successes with these bodies."""

    def finish_batch(self, batch: RequestBatch) -> None:
        """All that was taken of the batch is answered."""


class RequestBatch:
    """Requests that are alike, in the order in which they came."""

    __slots__ = ("_bodies", "_left", "_line", "_numbers", "bodies", "head", "names", "since_ns", "streams")

    def __init__(
        self, line: BatchLine, head: Request, streams: Sequence[int], names: Sequence[str], bodies: Sequence[bytes]
    ) -> None:
        self._line = line
        self.head: Final = head
        """What they have in common: its path ends with a slash, and it has no body; no header says how long one is."""
        self.streams: Final = streams
        self.names: Final = names
        """What stands behind that path, as it came."""
        self.bodies: Final = bodies
        """None of them empty; inflated."""
        self.since_ns: Final = time.monotonic_ns()
        self._left = len(names)
        self._numbers: list[int] = []
        self._bodies: list[bytes] = []

    def succeed(self, number: int, body: bytes) -> None:
        """Answers a request with 200 and this body; which number of the batch it has counts from 0. Once each."""
        if not self._numbers:
            self._line.note_answers(self)
        self._numbers.append(number)
        self._bodies.append(body)

    def answer(self, number: int, given: Given) -> None:
        """Answers a request with what is no plain success. Once each."""
        self._line.answer_alone(self, number, given)
        self._end(1)

    def send(self) -> None:
        """Sends the successes that were given since the last call."""
        numbers, bodies = self._numbers, self._bodies
        self._numbers, self._bodies = [], []
        self._line.send_answers(self, numbers, bodies)
        self._end(len(numbers))

    def take(self, count: int) -> None:
        """Only the first `count` are answered by way of this batch."""
        self._left = count

    def _end(self, count: int) -> None:
        self._left -= count
        if self._left == 0:
            self._line.finish_batch(self)


@frozen
class Batches:
    """What a port does with requests that come together."""

    start: str
    """How their paths begin."""
    content_type: str
    """Of successes."""
    begin: Callable[[RequestBatch], int]
    """Takes the first requests of a batch, and returns how many: `succeed` or `answer` is called once for each of them,
    later. It must not raise."""
    observe: Callable[[RequestBatch, Sequence[int], Sequence[bytes], int], None]
    """(batch, numbers, bodies that were sent, nanoseconds), after successes were sent. It must not raise."""
