"""Reindexing: writes the documents of a type anew, a chunk at a time, through the log like any other operation.

A chunk is the next documents in the order of the store. Nothing is kept between chunks: where the last one ended is the
asker's to remember. What a document is when its turn comes is decided by applying, so that no write is lost that comes
between. A chunk is small and waits its turn among the operations of clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paperwasp import limits
from paperwasp.content.documents import type_of_id
from paperwasp.content.messages import ReindexRequest, ReindexResponse
from paperwasp.content.node import ContentNode
from paperwasp.content.records import Reindex
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome
from paperwasp.errors import InvalidInput, Overload
from paperwasp.store.document_store import GID_BYTES, DocumentStore

_QUEUE_SHARE: Final = 4
"""Reindexing waits while more than this part of the queue is taken."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Documents to be written anew, with their sizes, and where the next chunk begins."""

    documents: tuple[tuple[DocumentId, int], ...]
    token: bytes | None

    @property
    def progress(self) -> float:
        """How far into the space of global ids the chunk reaches."""
        return 1.0 if self.token is None else int.from_bytes(self.token, "big") / (1 << 8 * GID_BYTES)


def reindex(node: ContentNode, request: ReindexRequest, reply: Callable[[object], None]) -> None:
    """Begins with the next chunk; `reply` gets the ReindexResponse when it is applied, or an error.

    Errors, raised here: Overload while many operations wait; InvalidInput.
    """
    if request.document_type not in node.view().layout.types:
        raise InvalidInput(f"Document type {request.document_type} does not exist")
    if node.waiting() > limits.OPERATION_QUEUE_LENGTH // _QUEUE_SHARE:
        raise Overload("many operations are waiting: reindexing waits")
    chunk = next_chunk(node.view().store, request)
    if not chunk.documents:
        reply(ReindexResponse(chunk.token, chunk.progress, 0))
        return
    answers = _Answers(chunk, reply)
    for id, size_bytes in chunk.documents:
        node.submit(Reindex(id), answers.take, size_bytes)


def next_chunk(store: DocumentStore, request: ReindexRequest) -> Chunk:
    """The next documents of the type after the request's token."""
    if len(request.token) not in (0, GID_BYTES):
        raise InvalidInput(f"a token of {len(request.token)} bytes was never given out")
    wanted = min(max(request.documents, 1), limits.REINDEX_DOCUMENTS)
    documents: list[tuple[DocumentId, int]] = []
    size_bytes = 0
    start = request.token + b"\0" if request.token else b""
    for scanned, (gid, document) in enumerate(store.scan(start), 1):
        if type_of_id(document.id) == request.document_type:
            documents.append((DocumentId.parse(document.id), len(document.fields)))
            size_bytes += len(document.fields)
        if len(documents) == wanted or size_bytes >= limits.REINDEX_BYTES or scanned == limits.REINDEX_SCANNED:
            return Chunk(tuple(documents), gid)
    return Chunk(tuple(documents), None)


class _Answers:
    """Waits for the outcomes of a chunk. Only the writer thread calls `take`."""

    def __init__(self, chunk: Chunk, reply: Callable[[object], None]) -> None:
        self._chunk = chunk
        self._reply = reply
        self._waiting = len(chunk.documents)
        self._written = 0
        self._error: BaseException | None = None

    def take(self, answer: object) -> None:
        self._waiting -= 1
        if isinstance(answer, BaseException):
            self._error = answer
        elif isinstance(answer, Outcome) and answer.existed:
            self._written += 1
        if self._waiting == 0:
            response = ReindexResponse(self._chunk.token, self._chunk.progress, self._written)
            self._reply(self._error or response)
