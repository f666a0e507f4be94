"""Garbage collection: documents that the selections of their cluster do not match are removed, once in an interval.

A round visits the documents that the negated selection matches, a chunk at a time, and removes each on the condition
that it still does: a change that came between wins. Where a selection looks at imported fields there is no such
condition, since those are no matter of the document. A document of which the selection cannot tell, since a field that
it compares is not there, stays. Removes go through the log like those of clients, and wait for them.

Vespa: https://docs.vespa.ai/en/schemas/documents.html#document-expiry
Differs: a round begins at a time and goes through at one pace; in Vespa it is spread over the interval.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.views.reader import Reader
from paperwasp.content.views.visiting import visit
from paperwasp.coordination.messages.documents import VisitRequest
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Remove
from paperwasp.errors import InternalError

_LOG: Final = logging.getLogger("paperwasp.content")
_QUEUE_SHARE: Final = 8
"""Collection waits while more than this part of the queue is taken."""


class Collection(Struct, frozen=True):
    """A garbage collection: it removes documents of these types that match the selection, at an interval in seconds."""

    document_types: tuple[str, ...]
    selection: str
    interval_s: int
    condition: str | None
    """The test-and-set condition of the removes; None: they have none."""


class GarbageCollector:
    """The chore of a content node. One thread."""

    def __init__(
        self, reader: Reader, operations: OperationQueue, collection: Collection, environment: Environment = SYSTEM
    ) -> None:
        self._reader = reader
        self._operations = operations
        self._collection = collection
        self._environment = environment
        first_s = min(limits.COLLECT_FIRST_SECONDS, collection.interval_s)
        self._next_round_ns = environment.monotonic_ns() + round(first_s * 1e9)
        self._round: VisitRequest | None = None
        self._removed = 0

    def __call__(self) -> float:
        """Collect the next chunk where a round is due; return the seconds to the one after it."""
        begun_ns = self._environment.monotonic_ns()
        if self._round is None:
            if begun_ns < self._next_round_ns:
                return (self._next_round_ns - begun_ns) / 1e9
            self._begin(begun_ns)
        if self._operations.waiting() <= limits.OPERATION_QUEUE_LENGTH // _QUEUE_SHARE:
            self._collect()
        elapsed_s = (self._environment.monotonic_ns() - begun_ns) / 1e9
        return max(limits.COLLECT_PAUSE_SECONDS, elapsed_s * (1 / limits.COLLECT_SHARE - 1))

    def _begin(self, begun_ns: int) -> None:
        self._next_round_ns = begun_ns + self._collection.interval_s * 10**9
        self._removed = 0
        self._round = VisitRequest(
            self._collection.document_types,
            self._collection.selection,
            documents=limits.COLLECT_DOCUMENTS,
            fields=frozenset(),
            now_us=self._environment.time_ns() // 1000,
        )

    def _collect(self) -> None:
        assert self._round is not None
        found = visit(self._reader.view().store, self._reader.view, self._round)
        self._removed += self._remove([document.id for document in found.documents])
        if found.token is not None:
            self._round = replace(self._round, token=found.token)
            return
        self._round = None
        if self._removed:
            _LOG.info("Garbage collection has removed %d documents", self._removed)

    def _remove(self, document_ids: Sequence[str]) -> int:
        """Remove those that still match; return how many did. Errors: what an operation was answered with."""
        answers: list[object] = []
        done = Event()

        def take(answer: object) -> None:
            answers.append(answer)
            if len(answers) == len(document_ids):
                done.set()

        for document_id in document_ids:
            self._operations.submit(Remove(DocumentId.parse(document_id), self._collection.condition), take)
        if document_ids and not done.wait(limits.COLLECT_ANSWER_SECONDS):
            raise InternalError("removes of garbage collection were not answered")
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return sum(isinstance(answer, Outcome) and answer.existed and answer.refusal is None for answer in answers)
