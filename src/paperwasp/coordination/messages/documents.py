"""Requests to a content cluster, about documents and about itself, and the answers.

Records that are messages cross as they are; how the others do: `coordination.messages.operations`. Where a content
cluster is served: `content.addresses.address_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from paperwasp.coordination.messages.message import Message
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome


class ApplyRequest(Struct, frozen=True):
    """One operation to be made durable and applied. Answered with its Outcome, or an error of `paperwasp.errors`."""

    operation: Operation
    size_bytes: int = 0
    """The size of the body that it came in, which counts against the queue's limit."""


class ApplyChanges:
    """Plain changes that came together, in their order: as many `ApplyRequest`s.

    From another process they come as the operations that they are. Answered once: with a list of the answers to each,
    or with one error for all.
    """

    __slots__ = ("changes", "size_bytes", "sizes_bytes")

    def __init__(self) -> None:
        self.changes: list[PlainChange | Operation] = []
        self.sizes_bytes: list[int] = []
        """Of the body of each."""
        self.size_bytes = 0

    def add(self, changes: Sequence[PlainChange | Operation], sizes_bytes: Sequence[int]) -> None:
        self.changes += changes
        self.sizes_bytes += sizes_bytes
        self.size_bytes += sum(sizes_bytes)


class GetRequest(Struct, frozen=True):
    """Asks for one document."""

    id: DocumentId
    fields: frozenset[str] | None = None
    """Only these; None: all that were fed, but not what indexing has made of them."""
    tensor_form: str = "short"
    """One of `tensor.json_output.FORMS`."""


class GetResponse(Message, frozen=True):
    """`fields` is the JSON object of the document's fields, as document/v1 shows it; None: no such document."""

    fields: bytes | None


class VisitRequest(Message, frozen=True):
    """Asks for the next documents in the order of their global ids: one chunk of a visit. The node keeps nothing.

    Errors: InvalidInput, also LanguageError for the selection.
    """

    document_types: tuple[str, ...]
    selection: str = ""
    """A document selection; empty: all."""
    id_prefixes: tuple[str, ...] = ()
    """Only documents whose ids begin with one of these; empty: all of the types."""
    location: bytes = b""
    """The bytes that the global ids of the documents begin with, where they are of one number or group."""
    token: bytes = b""
    """Where the last answer ended; empty: from the start."""
    documents: int = 1024
    """The most documents; the node may take fewer, also none, without being at the end."""
    size_bytes: int = 1024 * 1024
    """About: the chunk ends with the document that reaches it."""
    fields: frozenset[str] | None = None
    """Only these; None: all."""
    tensor_form: str = "short"
    slices: int = 1
    slice: int = 0
    """Each document is in one of the slices 0..slices-1: equal ranges of the global ids."""
    from_us: int = 0
    to_us: int = 0
    """Documents that were changed last at from_us <= time < to_us; 0: no bound."""
    removes: bool = False
    """Whether removed documents are reported as well."""
    now_us: int = 0
    """The time of `now()` in the selection and of the age of tombstones, in microseconds since 1970; the same for all
    chunks of a visit."""
    deadline_ns: int = 0
    """On the monotonic clock: the chunk ends then, wherever it is; 0: none."""


class VisitedDocument(NamedTuple):
    """One document of a visit. A tuple, since many are made."""

    id: str
    fields: bytes | None
    """The JSON object of its fields; None: it was removed."""
    changed_us: int = 0
    """When it was changed last, or just before this: it is as it was then. In microseconds since 1970."""


class VisitResponse(Message, frozen=True):
    """`token` is for the next request; None: there are no more. `progress` is from 0 to 1."""

    documents: tuple[VisitedDocument, ...]
    token: bytes | None
    progress: float


class StampRequest(Message, frozen=True):
    """Asks for the stamp of the view that a query would search now: an int that no other view has, before or after.

    Answered at once. While the stamp is the same, so is what a query finds.
    """


class HealthRequest(Message, frozen=True):
    """Asks whether the cluster takes operations. Answered at once."""


class HealthResponse(Message, frozen=True):
    """Why the cluster takes no operations, since what was logged cannot be applied; None: it takes them."""

    fault: str | None


class StatusRequest(Message, frozen=True):
    """Asks how the cluster is doing."""


class StatusResponse(Message, frozen=True):
    """How much there is, and the generation that is served."""

    documents: int
    generation: int
    sizes_bytes: Mapping[str, int]
    metrics: Sequence[dict[str, Any]] = ()
    """How full it is, and what it does, by Vespa's names of metrics (`base.measurements.Metric`)."""


class ReindexRequest(Message, frozen=True):
    """Asks to index the next documents of a type again, under the layout in force. Answered when they are applied.

    Errors: Overload (ask again later), InvalidInput.
    """

    document_type: str
    token: bytes = b""
    """Where the last answer ended; empty: from the start."""
    documents: int = 1024
    """The most documents; the node may take fewer."""


class ReindexResponse(Message, frozen=True):
    """`token` is for the next request; None: there are no more. `progress` is from 0 to 1."""

    token: bytes | None
    progress: float
    documents: int
    """How many were indexed again."""


Request = (
    ApplyRequest
    | ApplyChanges
    | HealthRequest
    | GetRequest
    | VisitRequest
    | StampRequest
    | StatusRequest
    | ReindexRequest
)
Response = Outcome | HealthResponse | GetResponse | VisitResponse | StatusResponse | ReindexResponse
