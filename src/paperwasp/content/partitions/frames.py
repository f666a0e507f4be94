"""One partition of a content cluster as bytes, on its way to another node.

The format: docs/internals/formats/partition.md.

    magic · header · documents … · end        the picture: all documents and removals as of a mark of the log
    record …                                  what the log has after that mark

All but the magic are frames, each with a checksum. What was cut, damaged, left out or put in another order is found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import BinaryIO, Final, NamedTuple
from zlib import crc32

from paperwasp import limits
from paperwasp.content.log.moved_records import MovedRecord
from paperwasp.coordination.operation_log import Mark
from paperwasp.errors import Corruption, InvalidInput

MAGIC: Final = b"pwpart1\n"
_FRAME: Final = struct.Struct("<II")
"""CRC-32 of the content, size of the content. The content is a kind of one byte, and what the kind says."""
_RECORD: Final = struct.Struct("<16sQIB")
"""Identity of the log, sequence and CRC of the record's mark, kind of the record. The payload follows."""


class FrameKind(IntEnum):
    """The kinds of frames. The numbers are in the format."""

    HEADER = 1
    DOCUMENTS = 2
    END = 3
    RECORD = 4


class Frame(NamedTuple):
    """A frame that was read; `offset` is for messages."""

    kind: int
    payload: bytes
    offset: int


def check_partition(partition: int) -> None:
    """Errors: InvalidInput."""
    if not 0 <= partition < limits.PARTITIONS:
        raise InvalidInput(f"there is no partition {partition}: there are {limits.PARTITIONS}, from 0 up")


def encode_frame(kind: FrameKind, payload: bytes) -> bytes:
    content = bytes((kind,)) + payload
    return _FRAME.pack(crc32(content), len(content)) + content


def encode_record(record: MovedRecord) -> bytes:
    """The frame of a record."""
    start = _RECORD.pack(bytes.fromhex(record.log), *record.mark, record.kind)
    return encode_frame(FrameKind.RECORD, start + record.payload)


def decode_record(frame: bytes) -> MovedRecord:
    """The record in a frame that came by itself. Errors: Corruption."""
    kind, payload, offset = _decode(frame, 0)
    if kind != FrameKind.RECORD or len(payload) < _RECORD.size or len(frame) != _FRAME.size + 1 + len(payload):
        raise Corruption(f"offset {offset}: a frame of kind {kind} and {len(frame)} bytes, which is no record")
    log, sequence, crc, record_kind = _RECORD.unpack_from(payload)
    return MovedRecord(log.hex(), Mark(sequence, crc), record_kind, payload[_RECORD.size :])


def read_picture(file: BinaryIO) -> Iterator[Frame]:
    """The frames of a picture, from its header to its end, one in memory at a time.

    Errors: InvalidInput where it is no picture; Corruption where it is damaged, cut, or goes on after its end.
    """
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC:
        raise InvalidInput("this is no partition of a content cluster: it does not begin as one")
    offset = len(MAGIC)
    while start := file.read(_FRAME.size):
        size_bytes = _FRAME.unpack(start)[1] if len(start) == _FRAME.size else 0
        if size_bytes > limits.PARTITION_FRAME_BYTES:
            raise Corruption(f"offset {offset}: a frame of {size_bytes} bytes")
        frame = _decode(start + file.read(size_bytes), offset)
        yield frame
        offset += _FRAME.size + size_bytes
        if frame.kind == FrameKind.END:
            if file.read(1):
                raise Corruption(f"offset {offset}: the picture of the partition goes on after its end")
            return
    raise Corruption(f"offset {offset}: the picture of the partition is cut here")


def _decode(data: bytes, offset: int) -> Frame:
    if len(data) < _FRAME.size:
        raise Corruption(f"offset {offset}: a frame is cut")
    crc, size_bytes = _FRAME.unpack_from(data)
    content = data[_FRAME.size : _FRAME.size + size_bytes]
    if len(content) != size_bytes or not content or crc != crc32(content):
        raise Corruption(f"offset {offset}: a frame is cut or damaged")
    return Frame(content[0], content[1:], offset)
