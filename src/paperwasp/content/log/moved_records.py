"""Records of the log of another node, as the log of this one keeps them: docs/internals/formats/partition.md."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from paperwasp.coordination.operation_log import Mark, NewRecord, RecordKind
from paperwasp.errors import Corruption

_IMPORTED: Final = struct.Struct("<QI")
"""Sequence and CRC of the mark in the other log. The operations follow."""


class PartitionMark(NamedTuple):
    """How far documents of a partition have come: the last record of the log that they are from."""

    log: str
    """The identity of that log."""
    layout: str
    """The fingerprint of the layout there after that record."""
    mark: Mark

    @property
    def sequence(self) -> int:
        return self.mark.sequence


class MovedRecord(NamedTuple):
    """A record of the log of another node. `log`: the identity of that log."""

    log: str
    mark: Mark
    kind: int
    payload: bytes


def encode_imported(record: MovedRecord) -> bytes:
    """Return the payload of a record of kind IMPORTED: the mark in the other log, then the operations."""
    return _IMPORTED.pack(*record.mark) + record.payload


def read_imported(payload: bytes) -> tuple[Mark, bytes]:
    """Return the mark in the other log, and the operations. Errors: Corruption."""
    if len(payload) < _IMPORTED.size:
        raise Corruption(f"a record of operations from another log of {len(payload)} bytes")
    return Mark(*_IMPORTED.unpack_from(payload)), payload[_IMPORTED.size :]


def operations_in(record: NewRecord) -> bytes:
    """Return the operations of a record, as bytes: logged here first, or in the log of another node."""
    return record.payload[_IMPORTED.size :] if record.kind == RecordKind.IMPORTED else record.payload
