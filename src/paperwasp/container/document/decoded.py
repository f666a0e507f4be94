"""Puts of a program in this process, whose values need no JSON to be read from.

They go the way of `POST /document/v1/…` without options, from the fields on: the same routes, converters and queue, and
so the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Final

from paperwasp import limits
from paperwasp.container.document.answer import error_of
from paperwasp.container.document.queue import DocumentQueue
from paperwasp.container.document.routes import DocumentRoutes
from paperwasp.coordination.messages.documents import ApplyRequest
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Put

DecodedPut = tuple[DocumentId, Mapping[str, Any], int]
"""Id, the values of fields as JSON has them, none of them null, and about the bytes of that JSON."""
Take = Callable[[DocumentId, Exception | None], None]
"""Called with what has been put, and why not, on the event loop. It must not raise."""


class DecodedPuts:
    """Sends puts to content clusters. Runs on the event loop."""

    def __init__(self, routes: DocumentRoutes, queue: DocumentQueue) -> None:
        self._routes: Final = routes
        self._queue: Final = queue

    def can_take(self, document_types: Set[str]) -> bool:
        """Whether all documents of these types go to one content cluster, as they are, and without waiting."""
        return all(self._routes.is_direct(name) for name in document_types)

    def send(self, puts: Iterable[DecodedPut], take: Take) -> None:
        """Sends puts, in their order, whose types can be taken."""
        for document_id, fields, size_bytes in puts:
            try:
                self._send(document_id, fields, size_bytes, take)
            except Exception as error:
                take(document_id, error)

    def _send(self, document_id: DocumentId, fields: Mapping[str, Any], size_bytes: int, take: Take) -> None:
        route = self._routes.route(document_id.document_type)
        message = ApplyRequest(Put(document_id, route.read_put(document_id, fields)), size_bytes)

        def answer(found: Any) -> None:
            if isinstance(found, Outcome):
                found = None if found.refusal is None else error_of(found.refusal)
            take(document_id, found)

        self._queue.send(route.targets[0].address, message, limits.DOCUMENT_TIMEOUT_MS, answer)
