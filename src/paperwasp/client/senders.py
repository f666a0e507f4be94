"""Sends the operations of files to a service."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from queue import Queue
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import orjson

from paperwasp.client.access import ANYBODY, Access
from paperwasp.client.connection import Connection
from paperwasp.client.feed import document_path
from paperwasp.client.sources.operations import SourceOperation
from paperwasp.document.ids import DocumentId
from paperwasp.errors import PaperwaspError

_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}
_RETRIED: Final = frozenset((429, 503))
_RETRIES: Final = 10
_RETRY_SECONDS: Final = 0.2
_QUEUED: Final = 64


@dataclass(frozen=True, slots=True)
class SendOptions:
    """How operations are sent."""

    url: str
    access: Access = ANYBODY
    connections: int = 8
    timeout_seconds: float | None = None
    route: str | None = None
    trace: int | None = None
    condition: str | None = None
    """Of operations that bring none."""
    create: bool = False
    """Of all operations."""


class Outcome(NamedTuple):
    """The result of one operation. `error` is None where it was done, or had a condition that did not hold."""

    error: str | None
    is_met: bool = True
    trace: object = None


class Figures(NamedTuple):
    """Counts of requests, for the summary."""

    requests: int
    request_bytes: int
    response_bytes: int
    exceptions: int
    in_flight: int
    codes: dict[int, int]
    least_ms: float
    mean_ms: float
    most_ms: float


Done = Callable[[SourceOperation, Outcome], None]
"""Called once for each operation, by any thread."""


class Sender(Protocol):
    """What a feed needs of a client."""

    def send(self, operation: SourceOperation, done: Done) -> None:
        """Sends an operation; waits while as many as may be are under way."""

    def figures(self) -> Figures: ...

    def close(self) -> None:
        """Returns when all operations are done."""


class _Request(NamedTuple):
    operation: SourceOperation
    done: Done


class ThreadSender:
    """A thread a connection. Operations of one document are done in their order."""

    def __init__(self, options: SendOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._codes: Counter[int] = Counter()
        self._exceptions = self._sent_bytes = self._received_bytes = self._waiting = 0
        self._seconds: list[float] = [float("inf"), 0.0, 0.0]
        self._queues: list[Queue[_Request | None]] = [Queue(_QUEUED) for _ in range(options.connections)]
        connections = [Connection(options.url, access=options.access) for _ in self._queues]
        work = zip(connections, self._queues, strict=True)
        self._threads = [threading.Thread(target=self._work, args=each, daemon=True) for each in work]
        for thread in self._threads:
            thread.start()

    def send(self, operation: SourceOperation, done: Done) -> None:
        with self._lock:
            self._waiting += 1
        self._queues[hash(operation.id) % len(self._queues)].put(_Request(operation, done))

    def figures(self) -> Figures:
        with self._lock:
            least, total, most = self._seconds
            answers = self._codes.total()
            mean = total / answers if answers else 0.0
            return Figures(
                answers + self._exceptions,
                self._sent_bytes,
                self._received_bytes,
                self._exceptions,
                self._waiting,
                dict(self._codes),
                least * 1000 if answers else 0.0,
                mean * 1000,
                most * 1000,
            )

    def close(self) -> None:
        for queue in self._queues:
            queue.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self, connection: Connection, queue: Queue[_Request | None]) -> None:
        while (request := queue.get()) is not None:
            try:
                outcome = self._send(connection, request.operation)
            except PaperwaspError as error:
                outcome = Outcome(error.message)
                with self._lock:
                    self._exceptions += 1
            with self._lock:
                self._waiting -= 1
            request.done(request.operation, outcome)
        connection.close()

    def _send(self, connection: Connection, operation: SourceOperation) -> Outcome:
        """Sends one operation. Overload is waited out. Errors: those of the connection."""
        path = document_path(DocumentId.parse(operation.id)) + self._query(operation)
        body = None if operation.fields is None else b'{"fields":' + operation.fields + b"}"
        for attempt in range(_RETRIES):
            started = time.monotonic()
            status, content = connection.request(_METHODS[operation.kind], path, body)
            self._count(status, len(body or b""), len(content), time.monotonic() - started)
            if status not in _RETRIED:
                break
            time.sleep(_RETRY_SECONDS * (attempt + 1))
        message, trace = _read(content)
        if status in (200, 412):
            return Outcome(None, status == 200, trace)
        return Outcome(f"status {status}: {message}")

    def _count(self, status: int, sent: int, received: int, seconds: float) -> None:
        with self._lock:
            self._codes[status] += 1
            self._sent_bytes += sent
            self._received_bytes += received
            least, total, most = self._seconds
            self._seconds = [min(least, seconds), total + seconds, max(most, seconds)]

    def _query(self, operation: SourceOperation) -> str:
        options = self._options
        parameters = {
            "timeout": None if options.timeout_seconds is None else f"{round(options.timeout_seconds * 1000)}ms",
            "route": options.route,
            "tracelevel": options.trace,
            "condition": operation.condition or options.condition,
            "create": "true" if (operation.create or options.create) and operation.kind != "remove" else None,
        }
        given = {name: value for name, value in parameters.items() if value is not None}
        return f"?{urlencode(given, quote_via=quote)}" if given else ""


def _read(content: bytes) -> tuple[str, object]:
    """The message of an answer, or all of it, and its trace."""
    try:
        answer = orjson.loads(content)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict):
        return content.decode(errors="replace"), None
    return str(answer.get("message", content.decode(errors="replace"))), answer.get("trace")
