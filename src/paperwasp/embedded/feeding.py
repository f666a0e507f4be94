"""Feeding many documents: as many at a time as the content clusters take, in the order in which they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol

import orjson

from paperwasp.embedded.addresses import NoPlace, Place, path_of
from paperwasp.embedded.lent_loop import Given, Take
from paperwasp.embedded.requests import json_request
from paperwasp.errors import InvalidInput
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun

_BATCH: Final = 256
_IN_FLIGHT: Final = 4096
"""Fewer than a container lets wait in line, so that none is refused."""
_ERRORS_KEPT: Final = 100
_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}
_MEMBERS: Final = ("fields", "condition", "create")

Source = Iterable[Mapping[str, Any]]
"""Rows, or operations of Vespa's feed format."""
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


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a feed as the request that it is."""

    id: str
    request: Request


@dataclass(frozen=True, slots=True)
class RowMapping:
    """How rows become documents."""

    place: Place | NoPlace
    id: str | None = None
    """The column that an id is in, or a text with columns in braces: `{isbn}-{edition}`. None: `id`."""
    columns: Mapping[str, str] | None = None
    """Column → field, of those that are to have another name, or to be left out (an empty one)."""
    kind: str = "put"


def rows_of(source: Source) -> Iterable[Mapping[str, Any]]:
    """The rows of a source. Errors: InvalidInput for what has none."""
    if isinstance(source, Mapping | str | bytes):
        raise InvalidInput(f"A feed is a sequence of rows or operations; this is one {type(source).__name__}")
    return source


def operation_of(row: Mapping[str, Any], mapping: RowMapping) -> Operation:
    """What a row means: an operation of Vespa's feed format, `{"id", "fields"}`, or a row whose columns are fields.

    Errors: InvalidInput.
    """
    for kind in _METHODS:
        if kind in row and (kind == "remove" or "fields" in row):
            return _operation(kind, row[kind], {name: row[name] for name in _MEMBERS if name in row}, mapping)
    if "fields" in row and "id" in row and mapping.id is None:
        return _operation(mapping.kind, row["id"], {name: row[name] for name in _MEMBERS if name in row}, mapping)
    columns = mapping.columns or {}
    named = {columns.get(name, name): value for name, value in row.items() if value is not None}
    identity = _identity(row, mapping)
    if mapping.id is None and "id" not in columns:
        named.pop("id", None)
    named.pop("", None)
    fields = {name: {"assign": value} for name, value in named.items()} if mapping.kind == "update" else named
    return _operation(mapping.kind, identity, {"fields": fields}, mapping)


def _identity(row: Mapping[str, Any], mapping: RowMapping) -> object:
    name = mapping.id or "id"
    try:
        return name.format_map(row) if "{" in name else row[name]
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        columns = ", ".join(map(str, row))
        raise InvalidInput(
            f"A row without what its id is made of ({name}: {error}): it has the columns {columns}"
        ) from None


def _operation(kind: str, identity: object, members: Mapping[str, Any], mapping: RowMapping) -> Operation:
    document_id = mapping.place.id_of(identity)
    content = None if kind == "remove" else members
    condition = members.get("condition") if kind == "remove" else None
    return Operation(document_id.text, json_request(_METHODS[kind], path_of(document_id), content, condition=condition))


def feed(
    start_all: Starter, begin: Callable[[Request], Begun], operations: Iterable[Operation], report: Report | None = None
) -> FeedResult:
    """Does all operations, and waits until each is done. `report` is called now and then.

    Errors: what reading the operations raises, after those before it are done.
    """
    run = _Run()
    started = time.monotonic()
    source = iter(operations)
    try:
        while batch := list(islice(source, _BATCH)):
            run.wait_for_room(_IN_FLIGHT - _BATCH)
            start_all([(_bound(begin, each.request), run.taker(each.id)) for each in batch])
            if report is not None:
                report(run.result)
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
        self._begun += 1
        return lambda given: self._take(identity, given)

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
