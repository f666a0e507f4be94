"""Operations as bytes: the payload of a log record. The format: docs/internals/formats/operations.md.

A record says all that applying it depends on: the documents' ids, the time, the processed fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.content.layouts.codec import DocumentCodec
from paperwasp.content.layouts.layout import Layout, TypeLayout
from paperwasp.content.layouts.selected import matcher
from paperwasp.content.log.moved_records import operations_in
from paperwasp.coordination.operation_log import Mark, NewRecord, RecordKind
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Put, Update, Value
from paperwasp.document.plain_fields import assignments, operation_of
from paperwasp.document.selection import check_condition_length
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import Corruption, InvalidInput, OtherVersion
from paperwasp.storage.documents.document_store import StoredForm

_VERSION: Final = 4
_FORMS: Final = {2: StoredForm.BARE, 3: StoredForm.BARE, _VERSION: StoredForm.WHOLE}
"""By the version of a record: the form of the documents that its puts store, and that its reindexing was made of. Of
version 2 are the same operations as of 3, where no tensor is in hex."""
_START: Final = struct.Struct("<BI")
NO_OPERATIONS: Final = _START.pack(_VERSION, 0)
"""The payload of a record without any."""
_ENTRY: Final = struct.Struct("<BBHIQ12s")
_CONDITION: Final = struct.Struct("<I")
_TIME_US: Final = struct.Struct("<Q")
_REFUSAL: Final = struct.Struct("<Q")
"""Of a refusal: the sequence of a record of its partition. The places of entries in it follow, 4 bytes each."""
_CHANGES: Final = struct.Struct("<I")
_CREATE: Final = 1
_CONDITIONAL: Final = 2
_REQUIRED_TIME: Final = 4


class EntryKind(IntEnum):
    """The kinds of entries. The numbers are on disk."""

    PUT = 1
    UPDATE = 2
    REMOVE = 3
    REINDEX = 4
    MUTATE = 5


_PUT, _UPDATE, _REMOVE, _REINDEX, _MUTATE = EntryKind


class Reindex(Struct, frozen=True):
    """Writes a document again under the layout in force: as it is, but for the fields that indexing makes. One that is
    not there is no error."""

    id: DocumentId
    derived: Mapping[str, Value | None] | None = None
    """The fields that indexing now makes of the document, None where it makes no value. None: its schema makes none."""
    read_us: int = 0
    """When the document was changed last that this was made of. If it was changed since, nothing is written."""


class Mutate(Struct, frozen=True):
    """Changes numbers of many documents of one type and partition, and not their times. A document that is not there
    is no error."""

    id: DocumentId
    """An id of the documents' type and partition, which is no document's."""
    changes: tuple[tuple[str, str, float], ...]
    """(attribute, `=`, `+=` or `-=`, operand)."""
    gids: bytes
    """Their global ids behind each other."""


AnyOperation = Operation | PlainChange | Reindex | Mutate


class Entry(Struct, eq=False):
    """One operation, ready to be logged and applied. Puts and updates have a `body`, and reindexing where it makes
    fields: the time of the document that they are made of, then what an update that assigns them has.

    `fields`, of a put, and `updates` are what the body says, typed. None: not decoded yet.
    """

    kind: EntryKind
    id: str
    gid: bytes
    document_type: str
    timestamp_us: int
    body: bytes = b""
    create: bool = False
    condition: str | None = None
    fields: dict[str, Any] | None = None
    updates: tuple[FieldUpdate, ...] | None = None
    required_us: int = 0
    form: StoredForm = StoredForm.WHOLE
    """The form of the document that a put stores, or that reindexing was made of: what it may lack."""
    is_refused: bool = False
    """Whether a later record refuses it."""


Logged = Entry | PlainChange
"""An operation as it is logged and applied: a plain change is its own entry, once it has its time."""


class LoggedBatch(NamedTuple):
    """Entries that were logged together, the records that have them, and the mark of each record. Whoever applies the
    entries does what reading the records would do."""

    entries: Sequence[Logged]
    records: Sequence[NewRecord]
    marks: Sequence[Mark]


class LoggedLayout(NamedTuple):
    """A layout, and the records that say it with their marks. No records: it has the types of the one before."""

    layout: Layout
    records: Sequence[NewRecord]
    marks: Sequence[Mark]


def refusals_of(batch: LoggedBatch, places: Collection[int]) -> list[NewRecord]:
    """The records that refuse the entries at these places of a batch."""
    refusals, first = [], 0
    for record, mark in zip(batch.records, batch.marks, strict=True):
        _, count = _START.unpack_from(operations_in(record))
        numbers = [place - first for place in sorted(places) if first <= place < first + count]
        if numbers:
            payload = _REFUSAL.pack(mark.sequence) + struct.pack(f"<{len(numbers)}I", *numbers)
            refusals.append(NewRecord(record.partition, payload, RecordKind.REFUSED))
        first += count
    return refusals


def read_refusal(payload: bytes, where: Callable[[], str]) -> tuple[int, tuple[int, ...]]:
    """The sequence of the record whose entries are refused, and their places in it. Errors: Corruption that says
    `where`."""
    try:
        (sequence,) = _REFUSAL.unpack_from(payload)
        numbers = struct.unpack(f"<{(len(payload) - _REFUSAL.size) // 4}I", payload[_REFUSAL.size :])
    except struct.error as error:
        raise Corruption(f"{where()}: a damaged refusal") from error
    return sequence, numbers


def without(payload: bytes, places: Collection[int]) -> bytes:
    """Return the payload of a record without the operations at these places."""
    version, count = _START.unpack_from(payload)
    kept, begin = [], _START.size
    for place in range(count):
        _, _, id_length, body_length, _, _ = _ENTRY.unpack_from(payload, begin)
        end = begin + _ENTRY.size + id_length + body_length
        if place not in places:
            kept.append(payload[begin:end])
        begin = end
    return _START.pack(version, len(kept)) + b"".join(kept)


def entry_of_change(change: PlainChange) -> Entry:
    """A plain change as the entry that it would be otherwise."""
    kind, fields = (_UPDATE, None) if change.is_update else (_PUT, change.fields)
    identity = (change.id, change.gid, change.document_type, change.timestamp_us)
    updates = assignments(change.fields) if change.is_update else None
    return Entry(kind, *identity, change.body, fields=fields, updates=updates)


def logged_of(operation: AnyOperation, layout: TypeLayout, codec: DocumentCodec, timestamp_us: int) -> Logged:
    """Return what is logged of an operation. Errors: those of `entry_of`."""
    if not isinstance(operation, PlainChange):
        return entry_of(operation, layout, codec, timestamp_us)
    if not layout.has_all(operation.read_as):
        return entry_of(operation_of(operation), layout, codec, timestamp_us)
    operation.timestamp_us = timestamp_us  # its JSON is what is stored: it has no fields of other kinds
    return operation


def entry_of(
    operation: Operation | Reindex | Mutate, layout: TypeLayout, codec: DocumentCodec, timestamp_us: int
) -> Entry:
    """The entry of an operation. Errors: InvalidInput for values that its document type does not have, and for a
    condition that is no selection."""
    document_id = operation.id
    identity = (document_id.text, document_id.gid, document_id.document_type, timestamp_us)
    if (size_bytes := len(document_id.text.encode())) > limits.DOCUMENT_ID_BYTES:
        raise InvalidInput(f"a document id of {size_bytes} bytes; at most {limits.DOCUMENT_ID_BYTES}")
    if isinstance(operation, Reindex):
        return Entry(_REINDEX, *identity, b"" if operation.derived is None else _encode_made(operation, layout, codec))
    if isinstance(operation, Mutate):
        changes = orjson.dumps(operation.changes)
        return Entry(_MUTATE, *identity, _CHANGES.pack(len(changes)) + changes + operation.gids)
    condition = operation.condition
    if condition is not None:
        condition.encode()
        check_condition_length(condition)
        matcher(condition)
    if isinstance(operation, Put):
        if operation.read_as is None or not layout.has_all(operation.read_as):
            layout.check(operation.fields)
        is_made = operation.json and codec.is_plain(operation.fields)
        body = operation.json if is_made else codec.encode(operation.fields)
        return Entry(_PUT, *identity, body, operation.create, condition, dict(operation.fields))
    if isinstance(operation, Update):
        body, updates = _encode_updates(operation, layout, codec)
        required_us = operation.required_us
        return Entry(_UPDATE, *identity, body, operation.create, condition, None, updates, required_us)
    return Entry(_REMOVE, *identity, condition=condition, required_us=operation.required_us)


def _encode_made(operation: Reindex, layout: TypeLayout, codec: DocumentCodec) -> bytes:
    """The body of reindexing that makes fields."""
    made = operation.derived or {}
    layout.check({name: value for name, value in made.items() if value is not None})
    layout.check({name: None for name in made if name not in layout.fields})
    return _TIME_US.pack(operation.read_us) + codec.encode_assigned(made)


def made_by(entry: Entry, codec: DocumentCodec) -> tuple[int, tuple[FieldUpdate, ...]]:
    """Decode an entry of reindexing that makes fields: the time in µs of the document that they are made of, and the
    assignments of these fields."""
    (read_us,) = _TIME_US.unpack_from(entry.body)
    return read_us, codec.decode_updates(entry.body[_TIME_US.size :])


def mutation_of(entry: Entry) -> tuple[list[tuple[str, str, float]], bytes]:
    """Decode an entry that changes numbers: the changes of fields, and the joined global ids of the documents."""
    (length,) = _CHANGES.unpack_from(entry.body)
    end = _CHANGES.size + length
    return orjson.loads(entry.body[_CHANGES.size : end]), entry.body[end:]


def _encode_updates(
    operation: Update, layout: TypeLayout, codec: DocumentCodec
) -> tuple[bytes, tuple[FieldUpdate, ...]]:
    """The body of an update, and the updates as whoever replays the log will read them."""
    updates = operation.updates
    if operation.json:
        if operation.read_as is None or not layout.has_all(operation.read_as):
            layout.check({u.field: u.action.value for u in updates if isinstance(u.action, Assign)})
        if codec.is_plain([update.field for update in updates]):
            return operation.json, updates
    assigned: dict[str, Value | None] = {}
    for update in updates:
        if update.path or type(update.action) is not Assign or update.field in assigned:
            break
        assigned[update.field] = update.action.value
    else:
        layout.check({name: value for name, value in assigned.items() if value is not None})
        if not assigned.keys() <= layout.fields.keys():
            layout.check({name: value for name, value in assigned.items() if name not in layout.fields})
        return codec.encode_assigned(assigned), updates
    layout.check({update.field: None for update in updates if update.field not in layout.fields})
    whole = (update for update in updates if not update.path)
    layout.check(
        {u.field: u.action.value for u in whole if isinstance(u.action, Assign) and u.action.value is not None}
    )
    body = codec.encode_updates(updates)
    decoded = codec.decode_updates(body)
    if len(decoded) != len(updates):
        raise InvalidInput("The same place and operation are given twice")
    return body, decoded


def decode_entries(payload: bytes, where: Callable[[], str]) -> Iterator[Entry]:
    """The entries of a payload, their fields not decoded. Errors: Corruption that says `where`."""
    try:
        version, count = _START.unpack_from(payload)
        form = _FORMS.get(version)
        if form is None:
            raise OtherVersion(f"{where()}: operations of version {version}; known are 2 to {_VERSION}")
        offset = _START.size
        for _ in range(count):
            kind, flags, id_length, body_length, timestamp_us, gid = _ENTRY.unpack_from(payload, offset)
            id_end = offset + _ENTRY.size + id_length
            id_text = payload[id_end - id_length : id_end].decode()
            offset = id_end + body_length
            body, document_type = payload[id_end:offset], id_text.split(":", 3)[2]
            condition, required_us = None, 0
            if flags & _REQUIRED_TIME:
                (required_us,) = _TIME_US.unpack_from(body)
                body = body[_TIME_US.size :]
            if flags & _CONDITIONAL:
                condition, body = _split(body)
            entry = Entry(EntryKind(kind), id_text, gid, document_type, timestamp_us, body, bool(flags & _CREATE))
            entry.condition, entry.required_us, entry.form = condition, required_us, form
            yield entry
        if offset != len(payload):
            raise Corruption(f"{where()}: operations of {offset} bytes in a payload of {len(payload)}")
    except (struct.error, ValueError, IndexError) as error:
        raise Corruption(f"{where()}: damaged operations: {error}") from error


def _split(body: bytes) -> tuple[str, bytes]:
    """The condition before a body, and the body."""
    (length,) = _CONDITION.unpack_from(body)
    end = _CONDITION.size + length
    if end > len(body):
        raise ValueError(f"a condition of {length} bytes in a body of {len(body)}")
    return body[_CONDITION.size : end].decode(), body[end:]


def records_of(entries: Sequence[Logged]) -> list[NewRecord]:
    """One record for each run of entries of one partition."""
    return [NewRecord(*each) for each in _core.operation_records(list(entries), _VERSION, limits.PARTITIONS)]


def markers_of(layout: Layout) -> list[NewRecord]:
    """The records that say that all after them is of this layout: one for each partition."""
    payload = layout.to_bytes()
    return [NewRecord(partition, payload, RecordKind.CONFIGURATION) for partition in range(limits.PARTITIONS)]
