"""Feeds documents: many connections, one document in flight on each."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from queue import Queue
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import orjson
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from paperwasp.client.connection import Connection
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput, PaperwaspError

_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}
_QUEUED: Final = 1000
_ERRORS_SHOWN: Final = 10
_RETRIED: Final = frozenset((429, 503))
_RETRIES: Final = 10
_RETRY_SECONDS: Final = 0.2


class FeedOperation(NamedTuple):
    """One line of a feed, as a request."""

    id: str
    method: str
    path: str
    body: bytes | None


@dataclass(slots=True)
class FeedResult:
    """The result of a feed: how many operations succeeded and failed, and the first errors."""

    ok: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    """The first few errors, in words."""
    seconds: float = 0.0

    def add(self, error: str | None) -> None:
        if error is None:
            self.ok += 1
        else:
            self.failed += 1
            if len(self.errors) < _ERRORS_SHOWN:
                self.errors.append(error)


def read_operation(line: bytes, place: str) -> FeedOperation:
    """The request that a line of a feed stands for. Errors: InvalidInput naming the place."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"{place}: not JSON: {error}") from None
    kind = next((kind for kind in _METHODS if isinstance(content, dict) and kind in content), None)
    if kind is None:
        raise InvalidInput(f'{place}: expected an object with "put", "update" or "remove"')
    id_text = str(content[kind])
    path = document_path(DocumentId.parse(id_text))
    if kind == "remove":
        return FeedOperation(id_text, _METHODS[kind], path, None)
    members = {name: content[name] for name in ("fields", "create", "condition") if name in content}
    return FeedOperation(id_text, _METHODS[kind], path, orjson.dumps(members))


def document_path(document_id: DocumentId) -> str:
    """The path of a document in the document API."""
    if document_id.number is not None:
        modifier = f"number/{document_id.number}"
    elif document_id.group is not None:
        modifier = f"group/{quote(document_id.group, safe='')}"
    else:
        modifier = "docid"
    start = f"/document/v1/{quote(document_id.namespace, safe='')}/{quote(document_id.document_type, safe='')}"
    return f"{start}/{modifier}/{quote(document_id.user_specified, safe='')}"


def feed(url: str, operations: Iterable[FeedOperation], connections: int, report: Any = None) -> FeedResult:
    """Sends all operations; calls `report(result)` after each answer. Errors: what reading the operations raises."""
    result, lock = FeedResult(), threading.Lock()
    queue: Queue[FeedOperation | None] = Queue(_QUEUED)
    started = time.monotonic()

    def work() -> None:
        connection = Connection(url)
        while (operation := queue.get()) is not None:
            error = _send(connection, operation)
            with lock:
                result.add(error)
                if report is not None:
                    report(result)
        connection.close()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    try:
        for operation in operations:
            queue.put(operation)
    finally:
        for _ in threads:
            queue.put(None)
        for thread in threads:
            thread.join()
        result.seconds = time.monotonic() - started
    return result


def _send(connection: Connection, operation: FeedOperation) -> str | None:
    """None, or what went wrong. Overload is waited out."""
    for attempt in range(_RETRIES):
        try:
            status, body = connection.request(operation.method, operation.path, operation.body)
        except PaperwaspError as error:
            return f"{operation.id}: {error.message}"
        if status == 200:
            return None
        if status not in _RETRIED:
            break
        time.sleep(_RETRY_SECONDS * (attempt + 1))
    return f"{operation.id}: status {status}: {_message(body)}"


def _message(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return body.decode(errors="replace")


def progress_bar(console: Console) -> Progress:
    """A bar with counts and times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)
