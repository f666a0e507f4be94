"""The plain twin of core/documents/row_files.cpp. The format: docs/internals/formats/rows.md."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from tests.oracles.lz4_block import lz4_decompress
from tests.oracles.xxh3 import xxh3

_HEADER: Final = struct.Struct("<8sIIQII")
_RECORD: Final = struct.Struct("<IIH")


def rows_of(file: bytes) -> dict[int, tuple[bytes, bytes]]:
    """Lid → id and JSON, of all rows of a file that are there and whole."""
    _, base, count, _, _, _ = _HEADER.unpack_from(file)
    starts: Sequence[int] = struct.unpack_from(f"<{count + 1}I", file, _HEADER.size)
    records = file[_HEADER.size + 4 * (count + 1) :]
    rows = {base + number: _row(records[starts[number] : starts[number + 1]]) for number in range(count)}
    return {lid: row for lid, row in rows.items() if row is not None}


def _row(record: bytes) -> tuple[bytes, bytes] | None:
    if len(record) < _RECORD.size:
        return None
    checksum, plain_bytes, id_bytes = _RECORD.unpack_from(record)
    if checksum != xxh3(record[4:]) & 0xFFFFFFFF:
        return None
    id_, packed = record[_RECORD.size : _RECORD.size + id_bytes], record[_RECORD.size + id_bytes :]
    json = packed if len(packed) == plain_bytes else lz4_decompress(packed, plain_bytes)
    return None if json is None else (id_, json)
