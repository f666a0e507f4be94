"""Operations on documents, and what else names a document, as messages.

The fields of a document cross as values, whichever way they were read; what a container keeps of them to apply them
sooner (the JSON of plain fields, the type that they were checked by) does not: the node checks and writes them.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from paperwasp.coordination.messages.documents import (
    ApplyChanges,
    ApplyRequest,
    GetRequest,
    GetResponse,
    HealthRequest,
    HealthResponse,
    ReindexRequest,
    ReindexResponse,
    StampRequest,
    StatusRequest,
    StatusResponse,
    VisitRequest,
    VisitResponse,
)
from paperwasp.coordination.messages.failures import Refused, error_of, refused
from paperwasp.coordination.messages.message import Conversion, Message, Sent
from paperwasp.coordination.messages.trees import Tree, Trees, declared_in
from paperwasp.coordination.messages.values import plain
from paperwasp.core._core import PlainChange
from paperwasp.document import updates
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome, Put, Refusal, Remove, Update
from paperwasp.document.plain_fields import operation_of
from paperwasp.errors import InvalidInput, UnreadableMessage

UPDATES: Final = Trees(lambda: declared_in(updates))
"""Updates of fields as trees: what `document.updates` declares."""


class PutDocument(Message, frozen=True):
    """`document.operations.Put`."""

    id: str
    fields: dict[str, Any]
    condition: str | None = None
    create: bool = False


class UpdateDocument(Message, frozen=True):
    """`document.operations.Update`."""

    id: str
    updates: tuple[Tree, ...]
    create: bool = False
    condition: str | None = None
    required_us: int = 0


class RemoveDocument(Message, frozen=True):
    """`document.operations.Remove`."""

    id: str
    condition: str | None = None
    required_us: int = 0


Change = PutDocument | UpdateDocument | RemoveDocument


class Apply(Message, frozen=True):
    """`ApplyRequest`: answered with `Applied`, or `Refused`."""

    operation: Change
    size_bytes: int = 0


class ApplyAll(Message, frozen=True):
    """`ApplyChanges`: answered with `AppliedAll`, or one `Refused` for all."""

    operations: tuple[Change, ...]
    sizes_bytes: tuple[int, ...]


class Applied(Message, frozen=True):
    """`document.operations.Outcome`."""

    existed: bool
    refusal: str | None = None
    """The name of a `document.operations.Refusal`."""


class AppliedAll(Message, frozen=True):
    """The answers to several operations, one for each."""

    answers: tuple[Applied | Refused, ...]


class Get(Message, frozen=True):
    """`GetRequest`."""

    id: str
    fields: frozenset[str] | None = None
    tensor_form: str = "short"


class Stamp(Message, frozen=True):
    """The answer to a `StampRequest`."""

    stamp: int


def _change_of(operation: Operation | PlainChange) -> Change:
    """Errors: InvalidInput for a condition with what is no text."""
    if isinstance(operation, PlainChange):
        operation = operation_of(operation)
    if operation.condition is not None:
        try:
            operation.condition.encode()
        except UnicodeEncodeError:
            raise InvalidInput("A condition has half of a surrogate pair, which is no character") from None
    name = operation.id.text
    match operation:
        case Put():
            return PutDocument(name, plain(operation.fields), operation.condition, operation.create)
        case Update():
            trees = tuple(map(UPDATES.to_tree, operation.updates))
            return UpdateDocument(name, trees, operation.create, operation.condition, operation.required_us)
        case Remove():
            return RemoveDocument(name, operation.condition, operation.required_us)


def _operation_of(change: Change) -> Operation:
    document_id = _id_of(change.id)
    match change:
        case PutDocument():
            return Put(document_id, change.fields, change.condition, change.create)
        case UpdateDocument():
            found = tuple(map(_update_of, change.updates))
            return Update(document_id, found, change.create, change.condition, change.required_us)
        case RemoveDocument():
            return Remove(document_id, change.condition, change.required_us)


def _update_of(tree: Tree) -> updates.FieldUpdate:
    found = UPDATES.from_tree(tree)
    if not isinstance(found, updates.FieldUpdate):
        raise UnreadableMessage("an update of a message is none")
    return found


def _id_of(text: str) -> DocumentId:
    try:
        return DocumentId.parse(text)
    except InvalidInput as error:
        raise UnreadableMessage(error.message) from None


def _apply(request: ApplyRequest) -> Sent:
    return Sent(Apply(_change_of(request.operation), request.size_bytes))


def _apply_request(message: Apply, *_: object) -> ApplyRequest:
    return ApplyRequest(_operation_of(message.operation), message.size_bytes)


def _apply_all(request: ApplyChanges) -> Sent:
    return Sent(ApplyAll(tuple(map(_change_of, request.changes)), tuple(request.sizes_bytes)))


def _apply_changes(message: ApplyAll, *_: object) -> ApplyChanges:
    if len(message.operations) != len(message.sizes_bytes):
        raise UnreadableMessage("operations of a message do not all have a size")
    request = ApplyChanges()
    request.add([_operation_of(each) for each in message.operations], message.sizes_bytes)
    return request


def _applied(outcome: Outcome) -> Sent:
    return Sent(_applied_of(outcome))


def _applied_of(outcome: Outcome) -> Applied:
    return Applied(outcome.existed, None if outcome.refusal is None else outcome.refusal.name)


def _outcome(message: Applied, *_: object) -> Outcome:
    if message.refusal is None:
        return Outcome(message.existed)
    if message.refusal not in Refusal.__members__:
        raise UnreadableMessage(f"an answer has the unknown refusal '{message.refusal[:100]}'")
    return Outcome(message.existed, Refusal[message.refusal])


def _applied_all(answers: list[Outcome | Exception]) -> Sent:
    return Sent(
        AppliedAll(tuple([_applied_of(each) if isinstance(each, Outcome) else refused(each) for each in answers]))
    )


def _answers(message: AppliedAll, *_: object) -> list[Outcome | Exception]:
    return [_outcome(each) if isinstance(each, Applied) else error_of(each) for each in message.answers]


def _visit(request: VisitRequest) -> Sent:
    return Sent(replace(request, deadline_ns=0), request.deadline_ns)


def _status(response: StatusResponse) -> Sent:
    return Sent(replace(response, sizes_bytes=plain(response.sizes_bytes), metrics=plain(response.metrics)))


_AS_THEY_ARE: Final[tuple[type[Message], ...]] = (
    GetResponse,
    HealthRequest,
    HealthResponse,
    ReindexRequest,
    ReindexResponse,
    StampRequest,
    StatusRequest,
    VisitResponse,
)

CONVERSIONS: Final = (
    *(Conversion(kind, kind, Sent, lambda message, *_: message) for kind in _AS_THEY_ARE),
    Conversion(ApplyRequest, Apply, _apply, _apply_request),
    Conversion(ApplyChanges, ApplyAll, _apply_all, _apply_changes),
    Conversion(Outcome, Applied, _applied, _outcome),
    Conversion(list, AppliedAll, _applied_all, _answers),
    Conversion(
        GetRequest,
        Get,
        lambda request: Sent(Get(request.id.text, request.fields, request.tensor_form)),
        lambda message, *_: GetRequest(_id_of(message.id), message.fields, message.tensor_form),
    ),
    Conversion(VisitRequest, VisitRequest, _visit, lambda message, at_ns, _: replace(message, deadline_ns=at_ns)),
    Conversion(StatusResponse, StatusResponse, _status, lambda message, *_: message),
    Conversion(int, Stamp, lambda stamp: Sent(Stamp(stamp)), lambda message, *_: message.stamp),
)
"""All that cross of what is not about a query."""
