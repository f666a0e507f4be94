"""Reindexing: indexes the documents of a type again, a chunk at a time, through the log like any other operation.

A chunk is the next documents in the order of the store. Nothing is kept between chunks: where the last one ended is the
asker's to remember. What a document is when its turn comes is decided by applying, so that no write is lost that comes
between. A chunk is small and waits its turn among the operations of clients.

Where the schema makes fields of documents, its scripts run here, before the log, on the documents as they are read:
what they make is part of the operation, `now` and `random` included. A document that was changed before its turn came
keeps what the change made, and is read and processed again.

Scripts that call components, such as a language model, may take seconds for a document: a thread of its own processes
several of a chunk at a time, and the chunk ends with those that are done when its time is over.

Earlier versions stored no empty values: of such documents what is missing counts as empty where else nothing can be
made (`_with_missing`), and goes on to do so until they are put again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Thread
from time import monotonic
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.threads import ThreadPool
from paperwasp.components.registry import components_of
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.log.records import Reindex
from paperwasp.content.views.reader import Reader
from paperwasp.content.views.view import View
from paperwasp.coordination.messages.documents import ReindexRequest, ReindexResponse
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Refusal, Value
from paperwasp.errors import InvalidInput, Overload, PaperwaspError, failure
from paperwasp.indexing import Processor, processor_of
from paperwasp.storage.documents.document_store import GID_BYTES, DocumentStore, StoredDocument, StoredForm

_QUEUE_SHARE: Final = 4
"""Reindexing waits while more than this part of the queue is taken."""


class Chunk(Struct, frozen=True):
    """Documents to be indexed again, and where the next chunk begins."""

    documents: tuple[StoredDocument, ...]
    token: bytes | None

    @property
    def progress(self) -> float:
        """The share of the space of global ids up to the end of the chunk."""
        return 1.0 if self.token is None else int.from_bytes(self.token, "big") / (1 << 8 * GID_BYTES)

    def first(self, count: int) -> Chunk:
        """The chunk that ends after this number of its documents."""
        if count == len(self.documents):
            return self
        return Chunk(self.documents[:count], DocumentId.parse(self.documents[count - 1].id).gid)


def reindex(
    reader: Reader, operations: OperationQueue, request: ReindexRequest, reply: Callable[[object], None]
) -> None:
    """Begin with the next chunk; `reply` gets the ReindexResponse when it is applied, or an error.

    Errors, raised here: Overload while many operations wait; InvalidInput, also of a document that cannot be processed.
    """
    view = reader.view()
    if request.document_type not in view.layout.types:
        raise InvalidInput(f"Document type {request.document_type} does not exist")
    if operations.waiting() > limits.OPERATION_QUEUE_LENGTH // _QUEUE_SHARE:
        raise Overload("many operations are waiting: reindexing waits")
    chunk = next_chunk(view.store, request)
    schema = view.schemas.get(request.document_type)
    processor = None if schema is None else processor_of(schema, components_of(schema))
    _Answers(reader, operations, chunk, processor, reply).begin(view)


def next_chunk(store: DocumentStore, request: ReindexRequest) -> Chunk:
    """The next documents of the type after the request's token."""
    if len(request.token) not in (0, GID_BYTES):
        raise InvalidInput(f"a token of {len(request.token)} bytes was never given out")
    wanted = min(max(request.documents, 1), limits.REINDEX_DOCUMENTS)
    documents: list[StoredDocument] = []
    size_bytes = 0
    start = request.token + b"\0" if request.token else b""
    for scanned, (gid, document) in enumerate(store.scan(start, in_passing=True), 1):
        if type_of_id(document.id) == request.document_type:
            documents.append(document)
            size_bytes += len(document.fields)
        if len(documents) == wanted or size_bytes >= limits.REINDEX_BYTES or scanned == limits.REINDEX_SCANNED:
            return Chunk(tuple(documents), gid)
    return Chunk(tuple(documents), None)


class _Answers:
    """Submits a chunk and waits for the outcomes. Only the writer thread calls `_take`, after `_submit`."""

    def __init__(
        self,
        reader: Reader,
        operations: OperationQueue,
        chunk: Chunk,
        processor: Processor | None,
        reply: Callable[[object], None],
    ) -> None:
        self._reader = reader
        self._operations = operations
        self._chunk = chunk
        self._processor = processor
        self._reply = reply
        self._waiting = 0
        """Operations that were submitted, and are not answered yet."""
        self._written = 0
        self._tries = 0
        self._changed: list[DocumentId] = []
        self._error: BaseException | None = None
        self._is_slow = processor is not None and processor.is_slow

    def begin(self, view: View) -> None:
        """Submit the documents of the chunk; `view` is from before they were read, from its store.

        Errors: InvalidInput of a document that cannot be processed; Overload.
        """
        documents = self._chunk.documents
        if self._is_slow:
            self._process_beside(view, documents, self._shorten)
        else:
            self._submit([self._operation(view, document) for document in documents], documents, self._shorten)

    def _process_beside(
        self, view: View, documents: Sequence[StoredDocument], take_count: Callable[[int], None]
    ) -> None:
        """Process the first of some documents on another thread, and submit them.

        `take_count` is called with how many they are, and again where there is room for fewer.
        """

        def process() -> None:
            try:
                operations = _made_in_time(partial(self._operation, view), documents)
                take_count(len(operations))
                self._submit(operations, documents[: len(operations)], take_count)
            except Exception as error:
                self._error = error if isinstance(error, PaperwaspError) else failure(error)
                self._answer()

        Thread(target=process, name="reindexing", daemon=True).start()

    def _shorten(self, count: int) -> None:
        self._chunk = self._chunk.first(count)

    def _submit(
        self, operations: Sequence[Reindex], documents: Sequence[StoredDocument], take_count: Callable[[int], None]
    ) -> None:
        """Submit as many of the operations as there is room for: what was made of them may have been costly.

        Errors: Overload where there is room for none; those of `Adder`.
        """
        if not operations:
            self._answer()
            return
        self._waiting = len(operations)
        with self._operations.adding() as add:  # nothing is answered until all have been added
            for number, (operation, document) in enumerate(zip(operations, documents, strict=True)):
                try:
                    add(operation, partial(self._take, operation.id), len(document.fields))
                except Overload:
                    if number == 0:
                        raise
                    self._waiting = number
                    take_count(number)
                    break

    def _operation(self, view: View, document: StoredDocument) -> Reindex:
        document_id = DocumentId.parse(document.id)
        if self._processor is None:
            return Reindex(document_id)
        kind, codec = view.layout.types[document_id.document_type], view.codecs[document_id.document_type]
        stored, fed = codec.decode(view.fields_of(document)), kind.fed
        fields = {name: value for name, value in stored.items() if fed is None or name in fed}
        made = self._processor.derived(document_id, fields)
        if document.form is not StoredForm.WHOLE:
            made = self._with_missing(self._processor, document_id, fields, made, codec.empty_values)
        derived = {name: made.get(name) for name in self._processor.fields if name in kind.fields}
        read_us = view.timestamp_of(document)
        # What was changed in place after the view was made is to be read again.
        is_read = read_us <= view.timestamp_us or document.lid >= view.limit
        return Reindex(document_id, derived, read_us if is_read else 0)

    @staticmethod
    def _with_missing(
        processor: Processor,
        id: DocumentId,
        fields: Mapping[str, Value],
        made: dict[str, Value],
        empty_values: Mapping[str, Value],
    ) -> dict[str, Value]:
        """Add what is made of a document that was stored without its empty values. Where something cannot be made of
        what is there, a missing field counts as empty: it may have been, and words would be lost otherwise."""
        if processor.fields <= made.keys():
            return made
        try:
            return {**processor.derived(id, {**empty_values, **fields}), **made}
        except InvalidInput:
            return made

    def _take(self, id: DocumentId, answer: object) -> None:
        self._waiting -= 1
        if isinstance(answer, BaseException):
            self._error = answer
        elif isinstance(answer, Outcome) and answer.refusal is Refusal.NOT_MET:
            self._changed.append(id)
        elif isinstance(answer, Outcome) and answer.existed:
            self._written += 1
        if self._waiting == 0:
            self._try_again() if self._changed and self._error is None else self._answer()

    def _try_again(self) -> None:
        """Read again, and submit, the documents that were changed between reading and applying."""
        changed, self._changed = self._changed, []
        view = self._reader.view()
        found = [view.store.get(id.gid) for id in changed]
        documents = [document for document in found if document is not None and not document.is_removed]
        ids = [DocumentId.parse(document.id) for document in documents]
        self._tries += 1

        def take_count(count: int) -> None:
            self._changed = ids[count:]

        try:
            if self._tries > limits.REINDEX_TRIES:
                raise Overload("documents change faster than they are indexed again: reindexing waits")
            if self._is_slow:
                self._process_beside(view, documents, take_count)
            else:
                self._submit([self._operation(view, document) for document in documents], documents, take_count)
        except PaperwaspError as error:
            self._error = error
            self._answer()

    def _answer(self) -> None:
        response = ReindexResponse(self._chunk.token, self._chunk.progress, self._written)
        self._reply(self._error or response)


def _made_in_time(make: Callable[[StoredDocument], Reindex], documents: Sequence[StoredDocument]) -> list[Reindex]:
    """The operations of the first documents: of some at a time, which share runs of models, until the time is over."""
    made: list[Reindex] = []
    at_once, end = limits.embedding.DOCUMENT_THREADS, monotonic() + limits.REINDEX_SLOW_SECONDS
    with ThreadPool("reindexing", at_once) as pool:
        for start in range(0, len(documents), at_once):
            if start and monotonic() >= end:
                break
            made += pool.map(make, documents[start : start + at_once])
    return made
