"""The requests of a feed that come together on the connections of a port, on their way to a handler and back.

    add (each read of a connection) → gathered → in runs that are alike → begin → successes → sent together

What comes while nothing of before waits for its answer is begun in the same round of the event loop, with what other
connections bring in it. What comes while answers are waited for is gathered for up to HTTP_BATCH_SECONDS, or until all
of them are there: a feed would not have its next answer sooner.

A run is of one protocol: over HTTP/2 a connection brings many requests at once, over HTTP/1.1 one, so that there a run
is of many connections.

What a handler may not see in a batch is left to the line, which makes exchanges of it: a body that is too large, or is
compressed in a way that takes longer, or for which there is no room in the budget of bodies.

Everything here runs on the event loop.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic, monotonic_ns
from typing import Any, Final, NamedTuple, Protocol

from paperwasp import limits
from paperwasp.core.http.http2 import BatchEvent
from paperwasp.errors import Overload
from paperwasp.http.bodies import BodyBudget
from paperwasp.http.compression import inflated_at_once, takes_gzip
from paperwasp.http.feed_reader import FeedReader, Form
from paperwasp.http.messages import Request, Response
from paperwasp.http.request_batch import Batches, BatchLine, RequestBatch
from paperwasp.http.traffic import Traffic
from paperwasp.http.turns import Turns

_LOG: Final = logging.getLogger("paperwasp.http")


class Port(Protocol):
    """The state that the connections of the port share: an `exchange.PortContext`."""

    @property
    def loop(self) -> AbstractEventLoop: ...

    @property
    def budget(self) -> BodyBudget: ...

    @property
    def body_limit_bytes(self) -> Callable[[str], int]: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def traffic(self) -> Traffic: ...

    def note_running(self, each: RequestBatch) -> None: ...

    def end_running(self, each: RequestBatch) -> None: ...


class GatheredLine(BatchLine, Protocol):
    """The protocol of a connection."""

    @property
    def scheme(self) -> str: ...

    def begin_alone(self, number: int, target: tuple[str, str, str], headers: dict[str, str], body: bytes) -> None:
        """Begins a whole request as an exchange."""

    def note_batched(self, count: int) -> None:
        """So many requests more are waited for here; negative: less."""

    def respond_all(
        self, lines: Sequence[Any], streams: Sequence[int], content_type: str, bodies: list[bytes]
    ) -> Sequence[GatheredLine]:
        """Answers with successes over lines of this protocol, streams of these numbers. Returns those lines that have
        something to write now."""

    def flush_now(self) -> None:
        """Writes what it has to send."""

    def flush_soon(self) -> None:
        """As `flush_now`, in the next round of the event loop; what waits there has its turn then."""


class _Run:
    """Requests that are alike."""

    __slots__ = ("bodies", "codings", "common", "lines", "names", "protocol", "scheme", "since_ns", "streams")

    def __init__(self, lines: Sequence[GatheredLine], event: BatchEvent) -> None:
        line = lines[0]
        self.since_ns = monotonic_ns()
        self.protocol, self.scheme = line.protocol, line.scheme
        self.common = event[2:8]
        """Method, the scheme that the client has named, host, start of the path, query, headers."""
        self.lines: list[GatheredLine] = []
        self.streams: list[int] = []
        self.names: list[str] = []
        self.bodies: list[bytes] = []
        self.codings: list[str | None] = []
        self.add(lines, event)

    def is_like(self, line: GatheredLine, event: BatchEvent) -> bool:
        return self.common == event[2:8] and self.scheme == line.scheme and self.protocol == line.protocol

    def add(self, lines: Sequence[GatheredLine], event: BatchEvent) -> None:
        self.lines += lines
        self.streams += event[1]
        self.names += event[8]
        self.bodies += event[9]
        self.codings += event[10]

    def drop(self, count: int) -> None:
        """Only what is behind the first ones is left."""
        for each in (self.lines, self.streams, self.names, self.bodies, self.codings):
            del each[:count]

    def head(self) -> Request:
        method, _, host, start, query, headers = self.common
        return Request(method, start, query, headers, b"", self.scheme, host)

    def inflated(self, limit_bytes: int) -> list[bytes]:
        """The first bodies without their codings, up to one that is not for here; `bodies` where all are plain."""
        if not any(self.codings) and max(map(len, self.bodies)) <= limit_bytes:
            return self.bodies
        plain: list[bytes] = []
        for body, coding in zip(self.bodies, self.codings, strict=True):
            whole = body if coding is None else inflated_at_once(body, coding, limit_bytes)
            if not whole or max(len(body), len(whole)) > limit_bytes:
                break
            plain.append(whole)
        return plain


class _Begun(NamedTuple):
    """The requests of a batch that the handler has taken."""

    lines: list[GatheredLine]
    held_bytes: int
    """Of the bodies, which the budget counts."""


class PortBatches:
    """The requests of one port that came together and are not answered yet."""

    def __init__(self, port: Port, batches: Batches) -> None:
        self._port = port
        self._batches = batches
        self.start: Final = batches.start
        self.reader: Final = FeedReader(port.loop, port.traffic, self._add_read)
        self._runs: list[_Run] = []
        """The requests that are not begun, in the order in which they came."""
        self._count = 0
        """Of the requests in it."""
        self._is_due = False
        """Whether it will be begun in the next round of the event loop."""
        self._timer: TimerHandle | None = None
        """The timer that begins it at the latest, where it is gathered."""
        self._under_way: dict[RequestBatch, _Begun] = {}
        self._succeeded: list[RequestBatch] = []
        """The batches with successes that are not sent yet."""
        self._touched: set[GatheredLine] = set()
        """The lines with answers that are not written yet."""

    def add(self, line: GatheredLine, event: BatchEvent) -> None:
        """Has the requests of an event begun, soon and behind those that were added before."""
        line.note_batched(len(event[1]))
        self._add_all([line] * len(event[1]), event)

    def _add_read(self, form: Form, lines: list[GatheredLine], names: list[str], bodies: list[bytes]) -> None:
        """Has requests begun that the thread of feeds has read."""
        count = len(lines)
        method, scheme, host, start, query, headers, coding = form
        event: BatchEvent
        event = ("batch", [1] * count, method, scheme, host, start, query, headers, names, bodies, [coding] * count)
        self._add_all(lines, event)

    def _add_all(self, lines: Sequence[GatheredLine], event: BatchEvent) -> None:
        """Adds the requests of an event, each of its line."""
        if self._runs and self._runs[-1].is_like(lines[0], event):
            self._runs[-1].add(lines, event)
        else:
            self._runs.append(_Run(lines, event))
        self._count += len(event[1])
        if self._count >= limits.HTTP_BATCH_REQUESTS:
            self.begin_all()
        elif self._under_way:
            if self._timer is None:
                self._timer = self._port.loop.call_later(limits.HTTP_BATCH_SECONDS, self.begin_all)
        elif not self._is_due:
            self._is_due = True
            self._port.loop.call_soon(self._begin_due)

    def begin_each(self, line: GatheredLine, event: BatchEvent) -> None:
        """Begins each request of an event as an exchange, behind all that was added before."""
        self.begin_all()
        run = _Run([line] * len(event[1]), event)
        line.note_batched(len(run.lines))
        while run.lines:
            self._begin_alone(run)

    def close(self) -> None:
        """The port has no connections any more."""
        self.reader.close()

    def _begin_due(self) -> None:
        self._is_due = False
        self.begin_all()

    def begin_all(self) -> None:
        """Begins all that was added."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._runs:
            return
        runs, self._runs, self._count = self._runs, [], 0
        began = monotonic()
        for run in runs:
            self._begin_run(run)
        self._port.turns.spend(monotonic() - began)

    def _begin_run(self, run: _Run) -> None:
        """Begins requests that are alike: together as far as the handler takes them, then one alone, and so on."""
        while run.lines:
            taken = self._begin_together(run)
            run.drop(taken)
            for _ in range(min(1, len(run.lines)) if taken else len(run.lines)):
                self._begin_alone(run)

    def _begin_together(self, run: _Run) -> int:
        """Has the handler begin the first requests of a run. Returns how many it took."""
        port, head = self._port, run.head()
        bodies = run.inflated(port.body_limit_bytes(head.raw_path))
        if not bodies:
            return 0
        sizes_bytes = list(map(len, run.bodies[: len(bodies)]))
        held_bytes = sum(sizes_bytes) if bodies is run.bodies else sum(sizes_bytes) + sum(map(len, bodies))
        try:
            port.budget.check(held_bytes, 0)
        except Overload:
            return 0
        lines, streams, names = run.lines[:], run.streams[:], run.names[:]
        batch = RequestBatch(self, head, lines, streams, names, bodies[:], sizes_bytes, run.since_ns)
        try:
            count = self._batches.begin(batch)
        except Exception:
            _LOG.exception("%d requests could not be begun together", len(bodies))
            return 0
        if count:
            batch.take(count)
            port.budget.held_bytes += held_bytes
            port.note_running(batch)
            self._under_way[batch] = _Begun(lines[:count], held_bytes)
        return count

    def _begin_alone(self, run: _Run) -> None:
        """Begins the first request of a run as an exchange."""
        method, _, _, start, query, headers = run.common
        line, body, coding = run.lines[0], run.bodies[0], run.codings[0]
        own = {**headers, "content-length": str(len(body))}
        if coding is not None:
            own["content-encoding"] = coding
        line.begin_alone(run.streams[0], (method, start + run.names[0], query), own, body)
        line.note_batched(-1)
        line.flush_soon()
        run.drop(1)

    # For batches

    def note_successes(self, batch: RequestBatch) -> None:
        if not self._succeeded:
            self._port.loop.call_soon(self._send_all)
        self._succeeded.append(batch)

    def _send_all(self) -> None:
        succeeded, self._succeeded = self._succeeded, []
        for batch in succeeded:
            batch.send()
        touched, self._touched = self._touched, set()
        for line in touched:
            line.flush_now()

    def send(self, batch: RequestBatch, numbers: list[int], bodies: list[bytes]) -> None:
        content_type = batch.content_type
        if "accept-encoding" in batch.head.headers and takes_gzip(batch.head, Response(200, b"", content_type)):
            numbers, bodies = _answer_long(batch, numbers, bodies)
        begun, streams = self._under_way[batch], batch.streams
        lines = [begun.lines[number] for number in numbers]
        self._touched.update(
            begun.lines[0].respond_all(lines, [streams[number] for number in numbers], content_type, bodies)
        )
        self._batches.observe(batch, numbers, bodies, monotonic_ns() - batch.since_ns)

    def finish(self, batch: RequestBatch) -> None:
        """Begins what was added meanwhile, where no others are waited for."""
        port = self._port
        begun = self._under_way.pop(batch)
        port.budget.held_bytes -= begun.held_bytes
        port.end_running(batch)
        for line, count in Counter(begun.lines).items():
            line.note_batched(-count)
        if not self._under_way:
            self.begin_all()


def _answer_long(batch: RequestBatch, numbers: list[int], bodies: list[bytes]) -> tuple[list[int], list[bytes]]:
    """Answers as exchanges do what is to be compressed, and gives the rest."""
    left_numbers, left = [], []
    for number, body in zip(numbers, bodies, strict=True):
        if len(body) < limits.HTTP_COMPRESSED_LEAST_BYTES:
            left_numbers.append(number)
            left.append(body)
        else:
            batch.lines[number].answer_alone(batch, number, Response(200, body, batch.content_type))
    return left_numbers, left
