"""The row store: what is added is read, also after it is opened again; what is damaged, or of other rows, is not."""

from __future__ import annotations

import errno
import re
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import lz4.block
import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.storage.documents.row_store import NO_ROWS, RowDocument, RowStore
from tests.oracles.xxh3 import xxh3
from tests.storage.index.test_text_index import bytes_shown


def gids_of(count: int, seed: int = 1) -> NDArray[np.uint8]:
    gids: NDArray[np.uint8] = np.random.default_rng(seed).integers(0, 256, (count, 12)).astype(np.uint8)
    return gids


def document(number: int) -> RowDocument:
    return RowDocument(b"id:n:t::%d" % number, b'{"number":%d,"text":"%b"}' % (number, b"to be or not " * 5))


def all_live(count: int) -> NDArray[np.uint64]:
    return np.full(count // 64 + 1, 2**64 - 1, np.uint64)


def filled(directory: Path, gids: NDArray[np.uint8], *sizes: int) -> RowStore:
    """A store with chunks of so many documents."""
    store = RowStore(directory)
    store.open(gids)
    for size in sizes:
        store.add([document(store.limit + k) for k in range(size)], gids, all_live(len(gids)))
    return store


def files(directory: Path) -> set[str]:
    return {path.name for path in (directory / "rows").iterdir()}


def opened(directory: Path, gids: NDArray[np.uint8]) -> RowStore:
    store = RowStore(directory)
    store.open(gids)
    return store


def test_what_is_added_is_read_also_when_it_is_opened_again(tmp_path: Path) -> None:
    gids = gids_of(100)
    for store in (filled(tmp_path, gids, 3, 4), opened(tmp_path, gids)):
        assert [store.rows.get(lid) for lid in range(8)] == [*map(document, range(7)), None]
        assert store.limit == 7 and files(tmp_path) == {"0-3.rows", "3-7.rows"}
        assert store.size_bytes() == sum(path.stat().st_size for path in (tmp_path / "rows").iterdir())


def test_a_store_without_a_folder_is_empty(tmp_path: Path) -> None:
    store = opened(tmp_path / "none", gids_of(3))
    assert (store.limit, store.rows.get(0), store.size_bytes()) == (0, None, 0)
    assert not (tmp_path / "none").exists()
    assert (NO_ROWS.limit, NO_ROWS.rows.get(0)) == (0, None)


def test_files_of_one_size_are_merged_and_dead_rows_go(tmp_path: Path) -> None:
    gids = gids_of(100)
    store = filled(tmp_path, gids, 3, 4, 2)
    rows_before = store.rows
    live = all_live(100)
    live[0] &= np.uint64(~(1 << 1) & 2**64 - 1)
    store.add([document(9), None], gids, live)
    assert files(tmp_path) == {"0-11.rows"}
    for found in (store, opened(tmp_path, gids)):
        assert [lid for lid in range(12) if found.rows.get(lid) is not None] == [0, 2, 3, 4, 5, 6, 7, 8, 9]
        assert found.rows.get(9) == document(9) and found.limit == 11
    assert rows_before.get(1) == document(1)  # whoever reads the files from before keeps them


def test_merging_copies_piece_by_piece_and_no_file_becomes_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gids = gids_of(400)
    monkeypatch.setattr(limits, "ROW_PIECE_BYTES", 200)
    monkeypatch.setattr(limits, "ROW_FILE_LEAST_BYTES", 1000)
    monkeypatch.setattr(limits, "ROW_FILE_MOST_BYTES", 10_000)
    store = filled(tmp_path, gids, *[5] * 70)
    sizes = [path.stat().st_size for path in (tmp_path / "rows").iterdir()]
    assert max(sizes) <= 10_000 and 3 <= len(sizes) < 20
    for found in (store, opened(tmp_path, gids)):
        assert [found.rows.get(lid) for lid in range(350)] == [document(lid) for lid in range(350)]


def damaged(change: Callable[[bytearray], object]) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return apply


@pytest.mark.parametrize(
    "damage",
    [
        damaged(lambda content: content.__setitem__(7, 2)),
        damaged(lambda content: content.__setitem__(8, 1)),
        damaged(lambda content: content.__setitem__(40, 1)),
        damaged(lambda content: content.__setitem__(-1, content[-1] ^ 1)),
        damaged(lambda content: content.append(0)),
        damaged(lambda content: content.pop()),
        damaged(lambda content: content.__delitem__(slice(20, None))),
        damaged(bytearray.clear),
        Path.unlink,
    ],
    ids=["version", "base", "table", "record", "longer", "shorter", "header", "empty", "missing"],
)
def test_a_damaged_file_goes_with_all_behind_it_and_is_written_again(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    gids = gids_of(100)
    filled(tmp_path, gids, 3, 4, 2)
    damage(tmp_path / "rows" / "3-7.rows")
    store = opened(tmp_path, gids)
    assert store.limit == 3 and files(tmp_path) == {"0-3.rows"}
    assert [store.rows.get(lid) for lid in range(4)] == [*map(document, range(3)), None]
    store.add([document(lid) for lid in range(3, 9)], gids, all_live(9))
    assert [store.rows.get(lid) for lid in range(9)] == [document(lid) for lid in range(9)]


def test_files_of_other_rows_are_not_taken(tmp_path: Path) -> None:
    filled(tmp_path, gids_of(9), 3, 4)
    assert opened(tmp_path, gids_of(6)).limit == 3  # there are fewer
    filled(tmp_path / "more", gids_of(9), 3, 4)
    other = gids_of(9)
    other[4] = 0
    assert opened(tmp_path / "more", other).limit == 3 and files(tmp_path / "more") == {"0-3.rows"}


def test_what_an_interrupted_merge_left_behind_goes(tmp_path: Path) -> None:
    gids = gids_of(20)
    filled(tmp_path, gids, 3, 4, 2)
    kept = {path: path.read_bytes() for path in (tmp_path / "rows").iterdir()}
    opened(tmp_path, gids).add([document(9)], gids, all_live(20))
    for path, content in kept.items():
        path.write_bytes(content)
    (tmp_path / "rows" / "10-12.new").write_bytes(b"half")
    store = opened(tmp_path, gids)
    assert files(tmp_path) == {"0-10.rows"} and store.limit == 10 and store.rows.get(4) == document(4)


def test_where_the_disk_is_full_nothing_is_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gids = gids_of(20)
    store = filled(tmp_path, gids, 3)

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse)
        with pytest.raises(OSError, match="no space"):
            store.add([document(3)], gids, all_live(20))
    assert store.limit == 3 and files(tmp_path) == {"0-3.rows"}
    store.add([document(3)], gids, all_live(20))
    assert store.rows.get(3) == document(3)


def test_what_is_cleared_is_not_found(tmp_path: Path) -> None:
    filled(tmp_path, gids_of(9), 3)
    RowStore(tmp_path).clear()
    assert opened(tmp_path, gids_of(9)).limit == 0 and files(tmp_path) == set()


# --------------------------------------------------------------------------------------- docs/internals/formats/rows.md

_GID = bytes.fromhex("0cc175b9dfd75ca0895ec3b0")
_EXAMPLE = [
    RowDocument(b"id:n:music::a", b'{"year":1969}'),
    None,
    RowDocument(b"id:n:music::b", b'{"tags":["blue","blue","blue","blue"]}'),
]


def read_by_the_page(file: bytes, gids: bytes) -> list[RowDocument | None]:
    """What the page says is in a file, read with nothing but what it says."""
    assert file[:8] == b"pwrows\0\x01"
    base, count, size, gids_crc, crc = struct.unpack("<IIQII", file[8:32])
    table, records = file[32 : 36 + 4 * count], file[36 + 4 * count :]
    assert crc == crc32(file[:28] + table) and len(records) == size
    assert gids_crc == crc32(gids[12 * base : 12 * (base + count)])
    starts = struct.unpack(f"<{count + 1}I", table)
    found: list[RowDocument | None] = []
    for start, end in pairwise(starts):
        record = records[start:end]
        if not record:
            found.append(None)
            continue
        checksum, json_bytes, id_bytes = struct.unpack("<IIH", record[:10])
        assert checksum == xxh3(record[4:]) & 0xFFFFFFFF
        packed = record[10 + id_bytes :]
        is_packed = len(packed) != json_bytes
        json = lz4.block.decompress(packed, uncompressed_size=json_bytes) if is_packed else packed
        found.append(RowDocument(record[10 : 10 + id_bytes], json))
    return found


def test_the_page_of_the_format(tmp_path: Path) -> None:
    gids = _GID + bytes(12) + _GID
    store = RowStore(tmp_path)
    store.add(_EXAMPLE, np.frombuffer(gids, np.uint8).reshape(-1, 12), all_live(3))
    content = (tmp_path / "rows" / "0-3.rows").read_bytes()
    assert content == bytes_shown("rows.md") and read_by_the_page(content, gids) == _EXAMPLE


def test_files_that_the_page_describes_are_what_is_written(tmp_path: Path) -> None:
    gids = gids_of(50)
    filled(tmp_path, gids, 3, 4, 2, 8)  # the last makes a merge
    found = {path.name: read_by_the_page(path.read_bytes(), gids.tobytes()) for path in (tmp_path / "rows").iterdir()}
    assert found == {"0-17.rows": [document(lid) for lid in range(17)]}
    assert all(re.fullmatch(r"\d+-\d+\.rows", name) for name in found)
