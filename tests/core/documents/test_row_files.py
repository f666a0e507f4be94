"""Files of documents by row: what the kernel writes and reads, beside its plain twin, and what it makes of damage."""

from __future__ import annotations

import struct
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.core import _core
from tests.oracles import row_files

_DOCUMENTS = st.lists(
    st.none() | st.tuples(st.binary(max_size=40), st.binary(min_size=1, max_size=300)), min_size=1, max_size=8
)
Documents = list[tuple[bytes, bytes] | None]


def file_of(base: int, documents: Documents) -> bytes:
    lengths, records = _core.pack_rows(documents)
    return whole(base, len(documents), table_of(lengths), records)


def table_of(lengths: NDArray[np.uint32]) -> bytes:
    return b"".join(struct.pack("<I", end) for end in accumulate(lengths.tolist(), initial=0))


def whole(base: int, count: int, table: bytes, records: bytes) -> bytes:
    return struct.pack("<8sIIQII", b"pwrows\0\x01", base, count, len(records), 0, 0) + table + records


def array(file: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(file, np.uint8)


@given(_DOCUMENTS, _DOCUMENTS, st.integers(0, 5))
def test_rows_are_read_as_they_were_written(first: Documents, second: Documents, gap: int) -> None:
    base = 3 + len(first) + gap
    files = [file_of(3, first), file_of(base, second)]
    rows = _core.RowFiles([array(file) for file in files])
    expected = dict(enumerate(first, 3)) | dict(enumerate(second, base))
    assert {lid: rows.get(lid) for lid in range(base + len(second) + 2)} == {
        lid: expected.get(lid) for lid in range(base + len(second) + 2)
    }
    assert rows.is_whole()
    plain = row_files.rows_of(files[0]) | row_files.rows_of(files[1])
    assert plain == {lid: row for lid, row in expected.items() if row is not None}


@given(_DOCUMENTS, st.data())
def test_copies_have_the_rows_that_live(documents: Documents, data: st.DataObject) -> None:
    live = data.draw(st.sets(st.integers(3, 2 + len(documents))))
    rows = _core.RowFiles([array(file_of(3, documents))])
    bitmap = np.zeros(1, np.uint64)
    for lid in live:
        bitmap[0] |= np.uint64(1 << lid)
    lengths, records = rows.lengths(1, len(documents) + 4, bitmap), rows.records(1, len(documents) + 4, bitmap)
    copied = whole(1, len(documents) + 3, table_of(lengths), records)
    expected = {lid: row for lid, row in enumerate(documents, 3) if row is not None and lid in live}
    assert row_files.rows_of(copied) == expected


@given(_DOCUMENTS, st.data())
def test_damage_takes_away_rows_and_never_changes_one(documents: Documents, data: st.DataObject) -> None:
    file = bytearray(file_of(0, documents))
    for place in data.draw(st.lists(st.integers(32, len(file) - 1), min_size=1, max_size=3)):
        file[place] = data.draw(st.integers(0, 255))
    rows = _core.RowFiles([array(bytes(file))])
    found = [rows.get(lid) for lid in range(len(documents))]
    assert all(row is None or row in documents for row in found)
    assert not rows.is_whole() or found == documents


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"pwrows\0\x01",
        file_of(0, [(b"a", b"{}")])[:-1],
        file_of(0, [(b"a", b"{}")]) + b"x",
        b"pwrows\0\x02" + file_of(0, [(b"a", b"{}")])[8:],
        whole(0, 0, bytes(4), b""),
        whole(0, 2**32 - 1, bytes(8), b""),
        whole(2**32 - 1, 1, bytes(8), b""),
    ],
    ids=["empty", "cut header", "cut", "too long", "another version", "no rows", "a table that is not there", "lids"],
)
def test_what_is_no_such_file_is_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="rows"):
        _core.RowFiles([array(file)])


def test_files_that_overlap_are_refused() -> None:
    first, second = file_of(0, [None, None]), file_of(1, [None])
    with pytest.raises(ValueError, match="overlap"):
        _core.RowFiles([array(first), array(second)])
    with pytest.raises(ValueError, match="overlap"):
        _core.RowFiles([array(file_of(5, [None])), array(second)])


def test_what_no_record_can_say_is_left_out() -> None:
    rows = _core.RowFiles([array(file_of(0, [(b"x" * 65536, b"{}"), (b"x" * 65535, b"{}")]))])
    assert rows.get(0) is None and rows.get(1) == (b"x" * 65535, b"{}")


def test_long_json_takes_less_room_than_it_has() -> None:
    json = b'{"body":"%b"}' % (b"to be or not to be " * 500)
    lengths, records = _core.pack_rows([(b"id:n:t::1", json)])
    assert lengths.tolist() == [len(records)] and len(records) < len(json) // 20
