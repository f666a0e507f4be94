"""Puts and updates of plain fields, read in few steps: nearly all that a feed sends.

Requests with one method, one start of the path and one query string are alike: where they lead and what they ask for
is looked up once, and of each request only the document's name and its fields are read. Whatever is otherwise goes
the general way (`container.document.operation`), which gives the same for what is taken here, and says what is wrong.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.container.document.operation import Call, route_of_change
from paperwasp.container.document.request import DOCID, Options, plain_names, read_options
from paperwasp.container.document.routes import DocumentRoute, DocumentRoutes
from paperwasp.coordination.messages.documents import ApplyRequest
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Update
from paperwasp.document.plain_fields import PlainPut
from paperwasp.errors import PaperwaspError
from paperwasp.http.messages import Request
from paperwasp.http.request_batch import RequestBatch


class PlainCall(NamedTuple):
    """A request that is right, as `operation.Call`, for a change that the core has read."""

    change: PlainChange
    address: str
    """Of the content cluster."""
    timeout_ms: float


class ChangesTogether(NamedTuple):
    """Requests that are right, one behind the other, for changes that the core has read."""

    changes: list[PlainChange]
    id_start: str
    """How their ids begin; behind it stand the names as they are in the paths."""
    address: str
    timeout_ms: float


class PlainChanges:
    """Reads the plain changes of an application. One event loop."""

    def __init__(self, routes: DocumentRoutes) -> None:
        self._routes = routes
        self._known: Final[dict[tuple[str, str, str], _Alike | None]] = {}
        """By method, start of the path and query string; None: those go the general way."""

    def read(self, request: Request) -> PlainCall | Call | None:
        """As `operation.read_call` reads the request; None where it is for the general way."""
        start, _, name = request.raw_path.partition(DOCID)
        key = (request.method, start, request.query)
        alike = self._known[key] if key in self._known else self._look_up(*key)
        return alike.read(name, request.body) if alike is not None and _is_plain(name) else None

    def read_batch(self, batch: RequestBatch) -> ChangesTogether | list[PlainCall | Call]:
        """As `read` of each of the first requests, up to one for the general way, or of another kind than the first."""
        head = batch.head
        start = head.raw_path.removesuffix(DOCID)
        key = (head.method, start, head.query)
        alike = self._known[key] if key in self._known else self._look_up(*key)
        return [] if alike is None or start == head.raw_path else alike.read_batch(batch.names, batch.bodies)

    def _look_up(self, method: str, start: str, query: str) -> _Alike | None:
        if method not in ("POST", "PUT") or len(start) + len(query) > limits.ALIKE_CHANGE_CHARACTERS:
            return None
        if len(self._known) >= limits.ALIKE_CHANGES:
            self._known.clear()
        found = self._known[method, start, query] = self._alike(method, start, query)
        return found

    def _alike(self, method: str, start: str, query: str) -> _Alike | None:
        if (names := plain_names(start)) is None:
            return None
        try:
            options = read_options(query, method)
            route = route_of_change(names[1], options, self._routes)
        except PaperwaspError:
            return None
        asks_more = options.dry_run or options.trace_level or options.condition
        if asks_more or not route.is_direct:
            return None
        return _Alike(method == "PUT", names, options, route)


def _is_plain(name: str) -> bool:
    """Whether the last part of a path is a document's name as it stands."""
    return bool(name) and "%" not in name and "+" not in name and name.isascii() and name.isprintable()


class _Alike:
    """Requests that are alike."""

    __slots__ = ("_address", "_has_vectors", "_id_start", "_is_update", "_names", "_options", "_route")

    def __init__(self, is_update: bool, names: tuple[str, str], options: Options, route: DocumentRoute) -> None:
        self._is_update = is_update
        self._names = names
        self._options = options
        self._route = route
        namespace, document_type = names
        start = f"id:{namespace}:{document_type}::"
        self._id_start = start if start.isascii() and not options.create else ""
        """How the ids begin; empty: no change of these is for the core."""
        self._address = route.targets[0].address
        self._has_vectors = False
        """Whether the last request of a batch had some: they are read one by one, and the next will have some."""

    def read_batch(self, names: list[str], bodies: list[bytes]) -> ChangesTogether | list[PlainCall | Call]:
        """Read the first ones."""
        start = self._id_start
        if start and not self._has_vectors:
            changes = self._route.plain.read_changes(start, names, bodies, self._is_update)
            if changes:
                return ChangesTogether(changes, start, self._address, self._options.timeout_ms)
        calls: list[PlainCall | Call] = []
        for name, body in zip(names, bodies, strict=False):
            if not _is_plain(name) or (call := self.read(name, body)) is None:
                break
            calls.append(call)
        self._has_vectors = bool(calls) and isinstance(calls[-1], Call)
        return calls

    def read(self, name: str, body: bytes) -> PlainCall | Call | None:
        """The document's name as it is in the path; None where the body is not plain."""
        start, plain, is_update = self._id_start, self._route.plain, self._is_update
        if start and len(start) + len(name) <= limits.DOCUMENT_ID_BYTES:
            read = plain.read_change(start, name, body, is_update)
            if isinstance(read, PlainChange):
                return PlainCall(read, self._address, self._options.timeout_ms)
        else:
            read = plain.read_update(body) if is_update else plain.read_put(body)
        if read is None:
            return None
        document_id, create, type_ = DocumentId(*self._names, name), bool(self._options.create), self._route.type
        operation: Put | Update
        if isinstance(read, PlainPut):
            operation = Put(document_id, read.fields, None, create, read.json, type_)
        else:
            operation = Update(document_id, read.updates, create, json=read.json, read_as=type_)
        return Call(document_id, self._route.targets, ApplyRequest(operation, len(body)), self._options)
