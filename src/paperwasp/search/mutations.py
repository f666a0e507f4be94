"""`mutate` of rank profiles: counters of documents that are changed when queries come across them.

A search notes which documents reached which phase. What the rank profile says of them then goes the way of all changes,
through the log: one operation for all documents of a partition. The query is answered when that is applied, or when it
cannot be: a query is worth more than its counters.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#mutate
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.log.records import Mutate
from paperwasp.document.ids import DocumentId
from paperwasp.errors import PaperwaspError
from paperwasp.schema.model import Mutation
from paperwasp.search.query import SearchResponse

ON_MATCH: Final = "on-match"
ON_FIRST_PHASE: Final = "on-first-phase"
ON_SECOND_PHASE: Final = "on-second-phase"
ON_SUMMARY: Final = "on-summary"

Lids = NDArray[np.uint32]


class Touched(Struct, frozen=True):
    """The documents of one type that reached the phases in which the rank profile changes them."""

    mutations: Sequence[Mutation]
    _lids: dict[str, Lids] = field(default_factory=dict)

    def wants(self, *phases: str) -> bool:
        return any(mutation.phase in phases for mutation in self.mutations)

    def note(self, phase: str, lids: Lids) -> None:
        """These are the documents of the phase. What was noted of it before does not count."""
        if self.wants(phase):
            self._lids[phase] = lids

    def operations(self, document_type: str, gids: NDArray[np.uint8]) -> Iterator[Mutate]:
        """Yield the changes that are to be logged. `gids`: the global ids by lid."""
        for phase, lids in self._lids.items():
            changes = tuple((m.attribute, m.operation, m.value) for m in self.mutations if m.phase == phase)
            found = gids[np.unique(lids)]
            partitions = found[:, 0] & (limits.PARTITIONS - 1)
            for partition in np.unique(partitions).tolist():
                own = found[partitions == partition]
                yield Mutate(DocumentId("-", document_type, "-", number=partition), changes, own.tobytes())


class Operations(Protocol):
    """Takes operations that are to be logged and applied."""

    def submit(self, operation: Mutate, reply: Callable[[object], None], size_bytes: int = 0) -> None: ...


def mutate(operations: Operations, response: SearchResponse, reply: Callable[[object], None]) -> None:
    """Gives the answer, without its mutations, when these are applied or refused."""
    waiting = _Waiting(len(response.mutations), lambda: reply(replace(response, mutations=())))
    for operation in response.mutations:
        try:
            operations.submit(operation, waiting.done, len(operation.gids))
        except PaperwaspError as error:
            waiting.done(error)


class _Waiting:
    """Calls back when all of some operations are done. From any threads."""

    def __init__(self, count: int, end: Callable[[], None]) -> None:
        self._count = count
        self._end = end
        self._lock = threading.Lock()

    def done(self, outcome: object) -> None:
        with self._lock:
            self._count -= 1
            is_last = self._count == 0
        if is_last:
            self._end()
