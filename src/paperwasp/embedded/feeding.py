"""Feeding many documents: as many at a time as the content clusters take, in the order in which they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

import orjson

from paperwasp.client.sources.operations import SourceOperation
from paperwasp.embedded.addresses import path_of
from paperwasp.embedded.lent_loop import Given, Take
from paperwasp.embedded.requests import json_text_request
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun

_BATCH: Final = 256
_IN_FLIGHT: Final = 4096
"""Fewer than a container lets wait in line, so that none is refused."""
_ERRORS_KEPT: Final = 100
_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}

Begin = Callable[[], Begun]
Report = Callable[["FeedResult"], None]


class Starter(Protocol):
    """What begins many requests: `LentLoop.start_all`."""

    def __call__(self, begins: list[tuple[Begin, Take]]) -> None: ...


@dataclass(frozen=True, slots=True)
class FeedProblem:
    """An operation that failed."""

    id: str
    status: int
    message: str


@dataclass(slots=True)
class FeedResult:
    """How a feed went."""

    ok: int = 0
    failed: int = 0
    problems: list[FeedProblem] = field(default_factory=list)
    """The first of the operations that failed."""
    seconds: float = 0.0

    def __repr__(self) -> str:
        rate = self.ok / self.seconds if self.seconds else 0.0
        first = f"; first: {self.problems[0].id}: {self.problems[0].message}" if self.problems else ""
        return f"<FeedResult: {self.ok} fed in {self.seconds:.2f} s ({rate:.0f}/s), {self.failed} failed{first}>"


def request_of(operation: SourceOperation) -> Request:
    """The request that an operation is."""
    options: dict[str, object] = {}
    if operation.condition is not None:
        options["condition"] = operation.condition
    if operation.create:
        options["create"] = True
    body = b"" if operation.fields is None else b'{"fields":%s}' % operation.fields
    return json_text_request(_METHODS[operation.kind], path_of(operation.document_id), body, options)


def feed(
    start_all: Starter,
    begin: Callable[[Request], Begun],
    operations: Iterable[SourceOperation],
    report: Report | None = None,
) -> FeedResult:
    """Does all operations, and waits until each is done. `report` is called now and then.

    Errors: what reading the operations raises, after those before it are done.
    """
    run = _Run()
    started = time.monotonic()
    batch: list[tuple[Begin, Take]] = []

    def send() -> None:
        run.wait_for_room(_IN_FLIGHT - _BATCH)
        start_all(batch)
        run.note_begun(len(batch))
        batch.clear()
        if report is not None:
            report(run.result)

    try:
        try:
            for each in operations:
                batch.append((_bound(begin, request_of(each)), run.taker(each.id)))
                if len(batch) == _BATCH:
                    send()
        finally:
            send()
    finally:
        run.wait_for_room(0)
        run.result.seconds = time.monotonic() - started
    if report is not None:
        report(run.result)
    return run.result


def _bound(begin: Callable[[Request], Begun], request: Request) -> Begin:
    return lambda: begin(request)


class _Run:
    """What is under way. Answers come on the loop's thread, one at a time."""

    def __init__(self) -> None:
        self.result = FeedResult()
        self._begun = 0
        self._ended = 0
        self._room = threading.Condition()
        self._wanted: int | None = None

    def taker(self, identity: str) -> Take:
        return lambda given: self._take(identity, given)

    def note_begun(self, count: int) -> None:
        """So many more are under way."""
        self._begun += count

    def _take(self, identity: str, given: Given) -> None:
        result = self.result
        if isinstance(given, Response) and given.status == 200:
            result.ok += 1
        else:
            result.failed += 1
            if len(result.problems) < _ERRORS_KEPT:
                result.problems.append(_problem(identity, given))
        self._ended += 1
        if self._wanted is not None and self._begun - self._ended <= self._wanted:
            with self._room:
                self._room.notify()

    def wait_for_room(self, in_flight: int) -> None:
        """Waits until no more are under way than that."""
        if self._begun - self._ended <= in_flight:
            return
        with self._room:
            self._wanted = in_flight
            self._room.wait_for(lambda: self._begun - self._ended <= in_flight)
            self._wanted = None


def _problem(identity: str, given: Given) -> FeedProblem:
    if isinstance(given, Exception):
        return FeedProblem(identity, getattr(given, "http_status", 500), str(given))
    body = given.body if isinstance(given, Response) else b"{}"
    return FeedProblem(identity, given.status, str(orjson.loads(body).get("message", "")))
