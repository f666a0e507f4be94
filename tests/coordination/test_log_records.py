"""The kernel that writes records of the operation log: what it writes is read back by Python and by zlib's CRC.

Authority: docs/internals/formats/operation-log.md; reading (`coordination/log_format.py`).
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.coordination import log_format
from paperwasp.coordination.log_format import FILE_HEADER_BYTES, RECORD_HEADER_BYTES, RECORD_MAGIC, Mark
from paperwasp.core import _core

PARTITION = st.integers(0, limits.PARTITIONS - 1)
RECORDS = st.lists(st.tuples(PARTITION, st.binary(max_size=300), st.integers(0, 2**16 - 1)), max_size=20)
MARKS = st.lists(
    st.builds(Mark, st.integers(0, 2**64 - 100), st.integers(0, 2**32 - 1)),
    min_size=limits.PARTITIONS,
    max_size=limits.PARTITIONS,
)


@given(RECORDS, MARKS, st.integers(0, 2**64 - 1))
def test_records_are_read_back(records: list[tuple[int, bytes, int]], before: list[Mark], time_us: int) -> None:
    marks = list(before)
    data, appended = log_format.encode_records(records, marks, time_us)
    content = bytes(FILE_HEADER_BYTES) + data
    found = list(log_format.scan(content))
    assert [(raw.partition, content[raw.offset + RECORD_HEADER_BYTES : raw.end], raw.kind) for raw in found] == records
    assert [raw.mark for raw in found] == appended
    assert all((raw.time_us, raw.batch_start) == (time_us, FILE_HEADER_BYTES) for raw in found)
    assert (found[-1].end if found else FILE_HEADER_BYTES) == len(content)
    after = list(before)
    assert log_format.first_gap(found, after) is None and after == marks


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 200_000])
def test_a_record_is_as_the_page_shows_it(size: int) -> None:
    payload = bytes(number * 7 & 255 for number in range(size))
    data, crcs = _core.log_records(RECORD_MAGIC, [(3, payload, 1)], [0, 0, 0, 41], 7)
    rest = struct.pack("<IHHQQI", size, 3, 1, 42, 7, 0) + payload
    assert crcs == [crc32(rest)]
    assert data == RECORD_MAGIC + struct.pack("<I", crc32(rest)) + rest


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="no such partition"):
        _core.log_records(RECORD_MAGIC, [(1, b"", 1)], [0], 7)
    with pytest.raises(ValueError, match="four bytes"):
        _core.log_records(b"abc", [], [], 7)
    wrong: Any
    for wrong in ([(0, b"")], [(0, "text", 1)], [(-1, b"", 1)], [None]):
        with pytest.raises((TypeError, RuntimeError)):
            _core.log_records(RECORD_MAGIC, wrong, [0], 7)
