"""Feeds files: reads their operations, sends them, shows how far it is, and says how it went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, Protocol

import orjson
from msgspec import Struct, field
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.client import (
    FeedClient,
    FeedOperation,
    FeedStatistics,
    OperationParameters,
    OperationType,
    Outcome,
    Result,
)
from paperwasp.client.connection import ANYBODY, Access, Connection, Unreachable
from paperwasp.client.feeding.operations import NO_PARAMETERS, document_path
from paperwasp.client.feeding.settings import FeedOptions
from paperwasp.client.sources.operations import BadInput, Item, SourceOperation
from paperwasp.client.sources.read import ReadOptions, read_file
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, InvalidInput, PaperwaspError

# Sends the operations of files to a service, by the feed client.


_ANSWERED: Final = "answered the handshake"
_OF_TYPE: Final = compile_later(r"of type '(byte|int|long)'")
"""The message of a service about a text that is none of the field's whole numbers."""
_TYPES: Final = {kind.value: kind for kind in OperationType}


class SendOptions(Struct, frozen=True):
    """How operations are sent."""

    url: str
    access: Access = ANYBODY
    connections: int = 8
    streams: int = 128
    compression: str = "auto"
    timeout_seconds: float | None = None
    route: str | None = None
    trace: int | None = None
    condition: str | None = None
    """Of operations that bring none."""
    create: bool = False
    """Of all operations."""

    def parameters(self, condition: str | None, create: bool) -> OperationParameters:
        """The parameters of an operation that has this condition, or this `create`, of its own."""
        found = OperationParameters(
            create or self.create, self.timeout_seconds, self.route, self.trace, condition or self.condition
        )
        return NO_PARAMETERS if found == NO_PARAMETERS else found


class Sent(NamedTuple):
    """The outcome of one operation. `error` is None where it was done, or had a condition that did not hold."""

    error: str | None
    is_met: bool = True
    trace: object = None


Done = Callable[[SourceOperation, Sent], None]
"""Called once for each operation, by any thread."""


class Sender(Protocol):
    """The part of a client that a feed needs."""

    def send(self, operation: SourceOperation, done: Done) -> None:
        """Sends an operation; waits while as many as may be are under way."""

    def type_of(self, document_id: DocumentId, field: str) -> str | None:
        """The type of a field of whole numbers; "" of another field, None where the service does not say it."""

    def statistics(self) -> FeedStatistics: ...

    def close(self, graceful: bool = True) -> None:
        """Returns when all operations are done, or are given up."""


class ClientSender:
    """Sends by a feed client. Operations of one document are done in their order."""

    def __init__(self, options: SendOptions) -> None:
        """Connects. Errors: Unreachable, InvalidInput."""
        self._options = options
        self._usual = options.parameters(None, False)
        self._usual.check()
        try:
            self._client = FeedClient(options.url, **_client_options(options))
        except FeedError as error:
            raise _refusal(options.url, error) from None

    def send(self, operation: SourceOperation, done: Done) -> None:
        body = None if operation.fields is None else b'{"fields":' + operation.fields + b"}"
        parameters = self._usual
        if operation.condition is not None or operation.create:
            parameters = self._options.parameters(operation.condition, operation.create)
        if operation.kind == "remove" and parameters.create_if_non_existent:
            parameters = parameters._replace(create_if_non_existent=False)
        ready = FeedOperation(_TYPES[operation.kind], operation.document_id, body, parameters)
        self._client.submit(ready).add_done_callback(lambda future: done(operation, _sent(future)))

    def type_of(self, document_id: DocumentId, field: str) -> str | None:
        # No interface of Vespa's containers tells types. An update that nothing is changed by is read all the same.
        connection = Connection(self._options.url, access=self._options.access)
        body = orjson.dumps({"fields": {field: {"assign": "0.5"}}})
        try:
            status, content = connection.request("PUT", f"{document_path(document_id)}?condition=false", body)
        except Unreachable:
            return None
        finally:
            connection.close()
        refused = _OF_TYPE.search(content.decode(errors="replace")) if status == HTTPStatus.BAD_REQUEST else None
        if refused is not None:
            return refused[1]
        return "" if status in (HTTPStatus.OK, HTTPStatus.PRECONDITION_FAILED) else None

    def statistics(self) -> FeedStatistics:
        return self._client.statistics()

    def close(self, graceful: bool = True) -> None:
        self._client.close(graceful)


def _refusal(url: str, error: FeedError) -> PaperwaspError:
    """Return the error of a feed that cannot begin: nobody answers, or the service takes nothing from us."""
    if _ANSWERED in error.message:
        return InvalidInput(f"{url} takes no documents: {error.message}")
    return Unreachable(f"No answer from {url}: {error.message}. Is `paperwasp serve` running?")


def _sent(future: Future[Result]) -> Sent:
    try:
        result = future.result()
    except FeedError as error:
        return Sent(error.bare_message)
    return Sent(None, result.outcome is Outcome.SUCCESS, result.trace)


def _client_options(options: SendOptions) -> FeedOptions:
    found: FeedOptions = {
        "connections_per_endpoint": options.connections,
        "max_streams_per_connection": options.streams,
        "compression": options.compression,
        "headers": dict(options.access.headers),
    }
    if options.access.token is not None:
        found["token"] = options.access.token
    if options.url.startswith("https:"):
        found["ssl_context"] = options.access.make_tls()
    return found


_ERRORS_SHOWN: Final = 10
_OPERATIONS_SHOWN: Final = 3
_SHOWN_CHARACTERS: Final = 500
_REPORT_SECONDS: Final = 0.1
_MEGABYTE: Final = 1_000_000


class FeedPolicy(Struct, frozen=True):
    """How a feed goes on when something goes wrong."""

    keep_going: bool = False
    """Whether reading goes on behind what cannot be read."""
    max_errors: int = 0
    """Nothing more is sent once this number of operations has failed; 0: whatever fails."""
    errors_to: Path | None = None
    """A file that failed operations are written to, so that they can be fed again."""
    verbose: bool = False
    """Whether what the service tells of its work is shown."""

    def check_errors_to(self, files: Iterable[str]) -> None:
        """Errors: InvalidInput where failed operations would be written over a file that is fed."""
        if self.errors_to is not None and self.errors_to.resolve() in {Path(file).resolve() for file in files}:
            raise InvalidInput(f"--errors-to: '{self.errors_to}' is fed itself, and would be overwritten")


class Tally(Struct):
    """How operations ended. Many threads count."""

    console: Console
    policy: FeedPolicy
    failed_file: IO[bytes] | None = None
    ok: int = 0
    failed: int = 0
    not_met: int = 0
    unread: int = 0
    """Parts of files that are no operations."""
    shown: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def done(self, operation: SourceOperation, outcome: Sent) -> None:
        """Counts the result of an operation."""
        with self._lock:
            if outcome.trace is not None and self.policy.verbose:
                self.console.print_json(orjson.dumps({operation.id: outcome.trace}).decode())
            if outcome.error is not None:
                self.failed += 1
                self._show(f"{operation.place}: {operation.kind} of {operation.id}: {outcome.error}")
                if self.failed_file is not None:
                    self.failed_file.write(operation.to_line())
            elif outcome.is_met:
                self.ok += 1
            else:
                self.not_met += 1

    def refuse(self, bad: BadInput) -> None:
        """Counts a part of a file that is no operation."""
        with self._lock:
            self.unread += 1
            self._show(bad.message)

    @property
    def errors(self) -> int:
        return self.failed + self.unread

    def is_too_much(self) -> bool:
        """Whether so much failed that nothing more is to be sent."""
        return 0 < self.policy.max_errors <= self.errors

    def _show(self, message: str) -> None:
        self.shown += 1
        if self.shown <= _ERRORS_SHOWN:
            self.console.print(Text(message, "red"), soft_wrap=True)
        elif self.shown == _ERRORS_SHOWN + 1:
            self.console.print(Text("Further errors are counted, not shown", "red"))


def feed_files(
    files: Sequence[str], options: ReadOptions, sender: Sender, policy: FeedPolicy, *, as_json: bool = False
) -> bool:
    """Feeds files in their order, `-` for standard input. Prints what fails, and a summary. True: all was done.

    What could be read is sent, whatever stands behind it.
    """
    with ExitStack() as stack:
        progress = stack.enter_context(_progress_bar(Console(stderr=True)))
        tally = Tally(progress.console, policy)
        if policy.errors_to is not None:
            tally.failed_file = stack.enter_context(policy.errors_to.open("wb"))
        started = time.monotonic()
        interrupted = False
        asking = replace(options, type_of=sender.type_of)
        try:
            for operation in _read(files, asking, tally, _Shown(progress, sender, tally)):
                sender.send(operation, tally.done)
            sender.close()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sender.close(graceful=False)  # where something ended the feed: what is under way has failed
        seconds = time.monotonic() - started
    summary = _summary(tally, sender.statistics(), seconds)
    console = Console(highlight=False)
    if as_json:
        console.print(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode(), markup=False, soft_wrap=True)
    else:
        console.print(Text(_say(tally, seconds, policy)), soft_wrap=True)
    if interrupted:
        raise KeyboardInterrupt
    return tally.errors == 0


def check_files(files: Sequence[str], options: ReadOptions, policy: FeedPolicy) -> bool:
    """Reads files without sending anything; shows their first operations and what is wrong with them."""
    console = Console(highlight=False)
    tally = Tally(Console(stderr=True), policy)
    counts: dict[str, int] = {}
    for operation in _read(files, options, tally, None):
        if sum(counts.values()) < _OPERATIONS_SHOWN:
            line = operation.to_line().decode().rstrip()
            cut = line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "…"
            console.print(Text(f"{operation.place}: {cut}"), soft_wrap=True)
        counts[operation.kind] = counts.get(operation.kind, 0) + 1
    found = ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items()) or "no operations"
    console.print(f"{found}; {tally.unread} could not be read; nothing was sent")
    return tally.errors == 0


class _Shown:
    """The progress of one file after the other."""

    def __init__(self, progress: Progress, sender: Sender, tally: Tally) -> None:
        self._progress = progress
        self._sender = sender
        self._tally = tally
        self._task: TaskID | None = None
        self._next = 0.0
        self._started = time.monotonic()

    def begin(self, path: str) -> None:
        self._task = self._progress.add_task(Path(path).name, total=None, counts="")

    def report(self, done_bytes: int, total_bytes: int | None) -> None:
        """Shows how far reading is, not more often than anybody can see."""
        now = time.monotonic()
        if now < self._next or self._task is None:
            return
        self._next = now + _REPORT_SECONDS
        tally = self._tally
        rate = tally.ok / max(now - self._started, 1e-9)
        in_flight = self._sender.statistics().inflight
        counts = f"{tally.ok} ok, {rate:.0f}/s, {tally.errors} errors, {in_flight} in flight"
        self._progress.update(self._task, completed=done_bytes, total=total_bytes, counts=counts)


def _read(files: Sequence[str], options: ReadOptions, tally: Tally, shown: _Shown | None) -> Iterator[SourceOperation]:
    for path in files:
        if shown is not None:
            shown.begin(path)
        item: Item
        for item in read_file(path, options, shown.report if shown else None):
            if isinstance(item, SourceOperation):
                yield item
            else:
                tally.refuse(item)
            if tally.is_too_much() or (isinstance(item, BadInput) and not tally.policy.keep_going):
                return


def _progress_bar(console: Console) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def _say(tally: Tally, seconds: float, policy: FeedPolicy) -> str:
    rate = tally.ok / seconds if seconds else 0.0
    parts = [f"{tally.ok} operations fed in {seconds:.1f} s ({rate:.0f}/s)", f"{tally.failed} failed"]
    if tally.unread:
        parts.append(f"{tally.unread} could not be read")
    if tally.not_met:
        parts.append(f"{tally.not_met} had a condition that did not hold")
    if tally.failed and policy.errors_to is not None:
        parts.append(f"those that failed are in {policy.errors_to}")
    return ", ".join(parts)


def _summary(tally: Tally, sent: FeedStatistics, seconds: float) -> dict[str, Any]:
    """The summary under the names of Vespa's `vespa feed`."""
    span = max(seconds, 1.0)
    return {
        "feeder.operation.count": tally.ok + tally.failed + tally.not_met,
        "feeder.seconds": round(seconds, 3),
        "feeder.ok.count": tally.ok,
        "feeder.ok.rate": round(tally.ok / span, 3),
        "feeder.error.count": tally.errors,
        "feeder.inflight.count": sent.inflight,
        "http.request.count": sent.requests,
        "http.request.bytes": sent.bytes_sent,
        "http.request.MBps": round(sent.bytes_sent / _MEGABYTE / span, 3),
        "http.exception.count": sent.exceptions,
        "http.response.count": sent.responses,
        "http.response.bytes": sent.bytes_received,
        "http.response.MBps": round(sent.bytes_received / _MEGABYTE / span, 3),
        "http.response.error.count": sent.responses - sent.successes,
        "http.response.latency.millis.min": round(sent.min_latency_ms or 0),
        "http.response.latency.millis.avg": round(sent.average_latency_ms or 0),
        "http.response.latency.millis.max": round(sent.max_latency_ms or 0),
        "http.response.code.counts": {str(code): count for code, count in sorted(sent.responses_by_code.items())},
    }
