"""Operations as bytes: the payload of a log record. The format: docs/formats/operations.md.

A record says all that applying it depends on: the documents' ids, the time, the processed fields.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from paperwasp.content.documents import DocumentCodec
from paperwasp.content.layout import TypeLayout
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.document.operations import Operation, Put, Update, Value
from paperwasp.document.updates import Assign
from paperwasp.errors import Corruption, InvalidInput

_VERSION: Final = 1
_START: Final = struct.Struct("<BI")
_ENTRY: Final = struct.Struct("<BBHIQ12s")
_CREATE: Final = 1


class EntryKind(IntEnum):
    """What an entry does. The numbers are on disk."""

    PUT = 1
    UPDATE = 2
    REMOVE = 3
    REINDEX = 4


_PUT, _UPDATE, _REMOVE, _REINDEX = EntryKind


@dataclass(frozen=True, slots=True)
class Reindex:
    """Writes a document anew, as it is, under the layout in force. One that is not there is no error."""

    id: DocumentId


@dataclass(slots=True, eq=False)
class Entry:
    """One operation, ready to be logged and applied. `body` is the JSON of `fields`; only puts and updates have them.

    `fields` are typed values; for an update, None clears a field. None stands for "not decoded yet".
    """

    kind: EntryKind
    id: str
    gid: bytes
    document_type: str
    timestamp_us: int
    body: bytes
    create: bool
    fields: dict[str, Any] | None

    @property
    def partition(self) -> int:
        return partition_of(self.gid)


def entry_of(operation: Operation | Reindex, layout: TypeLayout, codec: DocumentCodec, timestamp_us: int) -> Entry:
    """The entry of an operation. Errors: InvalidInput for values that its document type does not have."""
    document_id = operation.id
    identity = (document_id.text, document_id.gid, document_id.document_type, timestamp_us)
    if isinstance(operation, Put):
        layout.check(operation.fields)
        return Entry(_PUT, *identity, codec.encode(operation.fields), False, dict(operation.fields))
    if isinstance(operation, Update):
        assigned: dict[str, Value | None] = _assigned(operation)
        layout.check({name: value for name, value in assigned.items() if value is not None})
        layout.check({name: value for name, value in assigned.items() if name not in layout.fields})
        return Entry(_UPDATE, *identity, codec.encode_assigned(assigned), operation.create, assigned)
    kind = _REINDEX if isinstance(operation, Reindex) else _REMOVE
    return Entry(kind, *identity, b"", False, None)


def _assigned(update: Update) -> dict[str, Value | None]:
    assigned: dict[str, Value | None] = {}
    for found in update.updates:
        if not isinstance(found.action, Assign) or found.path:
            raise InvalidInput(f"{update.id}: only whole fields can be assigned yet")
        assigned[found.field] = found.action.value
    return assigned


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """The payload of one record."""
    parts = [_START.pack(_VERSION, len(entries))]
    pack = _ENTRY.pack
    for entry in entries:
        id_bytes, body = entry.id.encode(), entry.body
        flags = _CREATE if entry.create else 0
        parts.append(pack(entry.kind, flags, len(id_bytes), len(body), entry.timestamp_us, entry.gid))
        parts.append(id_bytes)
        parts.append(body)
    return b"".join(parts)


def decode_entries(payload: bytes, where: Callable[[], str]) -> Iterator[Entry]:
    """The entries of a payload, their fields not decoded. Errors: Corruption that says `where`."""
    try:
        version, count = _START.unpack_from(payload)
        if version != _VERSION:
            raise Corruption(f"{where()}: operations of version {version}; known is {_VERSION}")
        offset = _START.size
        for _ in range(count):
            kind, flags, id_length, body_length, timestamp_us, gid = _ENTRY.unpack_from(payload, offset)
            id_end = offset + _ENTRY.size + id_length
            id_text = payload[id_end - id_length : id_end].decode()
            offset = id_end + body_length
            body, document_type = payload[id_end:offset], id_text.split(":", 3)[2]
            yield Entry(EntryKind(kind), id_text, gid, document_type, timestamp_us, body, bool(flags & _CREATE), None)
        if offset != len(payload):
            raise Corruption(f"{where()}: operations of {offset} bytes in a payload of {len(payload)}")
    except (struct.error, ValueError, IndexError) as error:
        raise Corruption(f"{where()}: damaged operations: {error}") from error
