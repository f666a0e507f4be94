"""The bytes of the embedded operation log: file headers, records, and how damage is distinguished from a torn tail.

The page docs/internals/formats/operation-log.md shows them with a worked example. Nothing here touches a file:
functions of bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from msgspec import Struct

from paperwasp import limits
from paperwasp.core import _core

Bytes = bytes | memoryview

FILE_MAGIC: Final = b"PWASPLOG"
FILE_VERSION: Final = 1
RECORD_MAGIC: Final = b"\xf1REC"
SECTOR_BYTES: Final = 512
"""The bytes that a disk writes whole or not at all."""

_FILE_START: Final = struct.Struct("<8sHHIQ")
_BASE: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
FILE_HEADER_BYTES: Final = _FILE_START.size + limits.PARTITIONS * _BASE.size + _CRC.size
_RECORD_START: Final = struct.Struct("<4sI")
_RECORD_REST: Final = struct.Struct("<IHHQQI")
RECORD_HEADER_BYTES: Final = _RECORD_START.size + _RECORD_REST.size


class RecordKind(IntEnum):
    """The kinds of payloads of records. The log itself does not look inside."""

    OPERATIONS = 1
    CONFIGURATION = 2
    IMPORTED = 3
    """Operations from the log of another node, with their mark there."""
    REFUSED = 4
    """Which operations of an earlier record of the partition are refused, since none could apply them."""


class Mark(NamedTuple):
    """The last record of one partition: its sequence (0: none yet) and the CRC that stands for its content."""

    sequence: int
    crc: int


START: Final = Mark(0, 0)


class RawRecord(NamedTuple):
    """One record as found in a file. `offset` is where its header starts, `batch_start` where its append started."""

    partition: int
    kind: int
    mark: Mark
    time_us: int
    offset: int
    end: int
    batch_start: int


class FileHeader(Struct, frozen=True):
    """The header of a log file: its number, and the last record of every partition before it."""

    number: int
    bases: tuple[Mark, ...]

    def encode(self) -> bytes:
        start = _FILE_START.pack(FILE_MAGIC, FILE_VERSION, limits.PARTITIONS, 0, self.number)
        content = start + b"".join(_BASE.pack(*base) for base in self.bases)
        return content + _CRC.pack(crc32(content))


def decode_file_header(data: Bytes) -> FileHeader | None:
    """The header at the start of `data`; None where it is cut or damaged."""
    if len(data) < FILE_HEADER_BYTES:
        return None
    content = bytes(data[:FILE_HEADER_BYTES])
    magic, version, partitions, _, number = _FILE_START.unpack_from(content)
    (crc,) = _CRC.unpack_from(content, FILE_HEADER_BYTES - _CRC.size)
    known = (magic, version, partitions) == (FILE_MAGIC, FILE_VERSION, limits.PARTITIONS)
    if not known or crc != crc32(content[: -_CRC.size]):
        return None
    bases = _BASE.iter_unpack(content[_FILE_START.size : -_CRC.size])
    return FileHeader(number, tuple(Mark(*base) for base in bases))


def version_of(data: Bytes) -> int | None:
    """The version in a whole header, also one that is not known; None where it is cut or damaged."""
    content = bytes(data[:FILE_HEADER_BYTES])
    if len(content) < FILE_HEADER_BYTES or content[: len(FILE_MAGIC)] != FILE_MAGIC:
        return None
    (crc,) = _CRC.unpack_from(content, FILE_HEADER_BYTES - _CRC.size)
    return int(_FILE_START.unpack_from(content)[1]) if crc == crc32(content[: -_CRC.size]) else None


def encode_records(
    records: Sequence[tuple[int, bytes, int]], marks: list[Mark], time_us: int
) -> tuple[bytes, list[Mark]]:
    """The bytes of records (partition, payload, kind) that are appended together, and the mark of each. `marks`: the
    last record of each partition, which it moves."""
    data, crcs = _core.log_records(RECORD_MAGIC, list(records), [mark.sequence for mark in marks], time_us)
    appended = []
    for (partition, _, _), crc in zip(records, crcs, strict=True):
        marks[partition] = Mark(marks[partition].sequence + 1, crc)
        appended.append(marks[partition])
    return data, appended


def decode_record(data: Bytes, offset: int) -> RawRecord | None:
    """The whole and undamaged record that starts at `offset`, or None."""
    start = offset + RECORD_HEADER_BYTES
    if start > len(data) or data[offset : offset + 4] != RECORD_MAGIC:
        return None
    _, crc = _RECORD_START.unpack_from(data, offset)
    length, partition, kind, sequence, time_us, batch_offset = _RECORD_REST.unpack_from(data, offset + 8)
    end = start + length
    if end > len(data) or partition >= limits.PARTITIONS or crc != crc32(data[offset + 8 : end]):
        return None
    return RawRecord(partition, kind, Mark(sequence, crc), time_us, offset, end, offset - batch_offset)


def scan(data: Bytes) -> Iterator[RawRecord]:
    """The whole records from the file header on, up to the end or the first damage."""
    offset = FILE_HEADER_BYTES
    while (record := decode_record(data, offset)) is not None:
        yield record
        offset = record.end


def first_gap(records: Sequence[RawRecord], marks: list[Mark]) -> RawRecord | None:
    """Moves `marks` over `records`; the first record that does not follow its partition's mark, or None."""
    for record in records:
        if record.mark.sequence != marks[record.partition].sequence + 1:
            return record
        marks[record.partition] = record.mark
    return None


def is_torn(data: bytes, damage: int) -> bool:
    """Return whether an interrupted last append left the damage at offset `damage`: nothing acknowledged is after it.

    So it is where no whole record follows; or where those that follow are of the same append and a sector between was
    never written, as a power cut may leave it. A flipped bit leaves no sector of zeros.
    """
    following = _next_record(data, damage + 1)
    if following is None:
        return True
    same_append = following.batch_start <= damage and _last_batch_start(data, following) <= damage
    return same_append and bytes(SECTOR_BYTES) in data[damage : following.offset]


def _next_record(data: bytes, offset: int) -> RawRecord | None:
    while (offset := data.find(RECORD_MAGIC, offset)) >= 0:
        if record := decode_record(data, offset):
            return record
        offset += 1
    return None


def _last_batch_start(data: bytes, record: RawRecord) -> int:
    following: RawRecord | None = record
    while following is not None:
        record = following
        following = _next_record(data, record.end)
    return record.batch_start
