"""The document store: what is written is read, in order; a checkpoint is exactly one moment."""

from __future__ import annotations

import errno
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocksdict import Checkpoint, Rdict

from paperwasp import limits
from paperwasp.errors import Corruption, NoSpace
from paperwasp.storage.documents import document_store
from paperwasp.storage.documents.document_store import DocumentStore, StoredDocument, StoredForm, StoreWrites, restore
from paperwasp.storage.documents.gid_map import NO_LID


def gid(number: int) -> bytes:
    return number.to_bytes(12, "big")


def put(store: DocumentStore, number: int, fields: bytes, timestamp_us: int = 1) -> None:
    writes = StoreWrites()
    writes.put(gid(number), f"id:n:t::{number}", timestamp_us, number, fields)
    store.write(writes)


def test_a_batch_is_written_in_order(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    writes = StoreWrites()
    writes.put(gid(1), "id:n:t::æ", 5, 7, b'{"a":1}')
    writes.put(gid(2), "id:n:t::2", 6, 8, b"{}")
    writes.remove(gid(2), "id:n:t::2", 7)
    writes.remove(gid(3), "id:n:t::3", 7)
    writes.put(gid(3), "id:n:t::3", 8, 9, b'{"b":2}')
    store.write(writes)
    first, third = StoredDocument("id:n:t::æ", 5, 7, b'{"a":1}'), StoredDocument("id:n:t::3", 8, 9, b'{"b":2}')
    assert [store.get(gid(number)) for number in range(4)] == [None, first, None, third]
    assert store.multi_get([gid(3), gid(9), gid(2), gid(1)]) == [third, None, None, first]
    assert store.multi_get([]) == []
    assert list(store.scan()) == [(gid(1), first), (gid(3), third)]
    assert list(store.scan(gid(2))) == [(gid(3), third)]
    assert list(store.scan(gid(0), gid(3))) == [(gid(1), first)]
    store.close()


def test_what_is_read_in_passing_does_not_stay_in_the_cache(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    for number in range(2000):
        put(store, number, random.Random(number).randbytes(40).hex().encode())
    store.flush()
    everything = [gid(number) for number in range(2000)]
    empty = store.cache_bytes()
    passing = store.multi_get(everything, in_passing=True)
    assert list(store.scan(in_passing=True)) == list(zip(everything, passing, strict=True))
    assert store.cache_bytes() == empty
    assert store.multi_get(everything) == passing
    assert store.cache_bytes() > empty + 100_000
    store.close()


def test_the_worked_example_is_read_as_any_version(tmp_path: Path) -> None:
    """docs/internals/formats/document-store.md: values that were written before tensors were in hex, and before empty
    values were kept, are read as they were, and say so."""
    fields, id_text = b'{"year":1969}', "id:n:music::a"
    value = bytes.fromhex("01 00 00 00 00 00 00 00 07 00 00 00 0d 00") + id_text.encode() + fields
    store = DocumentStore(tmp_path)
    writes = StoreWrites()
    writes.put(gid(1), id_text, 1, 7, fields)
    store.write(writes)
    assert store._database.get(gid(1)) == b"\x04" + value
    bare, whole, remade = StoredForm
    for version, form in ((2, bare), (3, bare), (4, whole), (0x44, remade)):
        store._database[gid(1)] = bytes([version]) + value
        assert store.get(gid(1)) == StoredDocument(id_text, 1, 7, fields, form)
        writes = StoreWrites()
        writes.put(gid(1), id_text, 1, 7, fields, form)
        store.write(writes)
        assert store.get(gid(1)) == StoredDocument(id_text, 1, 7, fields, form)
    store._database[gid(1)] = b"\x05" + value
    with pytest.raises(Corruption, match="is damaged"):
        store.get(gid(1))
    store.close()


def test_writes_know_whether_there_are_any() -> None:
    gid, kinds = bytes(12), [StoreWrites() for _ in range(3)]
    assert not any(kinds)
    kinds[0].put(gid, "id", 1, 0, b"{}")
    kinds[1].remove(gid, "id", 1)
    kinds[2].forget(gid)
    assert all(kinds)


def test_what_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    put(store, 1, b"{}")
    put(store, 2, b"{}")
    writes = StoreWrites()
    writes.forget(gid(1))
    writes.forget(gid(3))
    store.write(writes)
    assert [found for found, _ in store.scan()] == [gid(2)] and store._database.get(gid(1)) is None
    store.close()


def test_a_checkpoint_is_one_moment(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path / "store")
    put(store, 1, b"then")
    store.checkpoint(tmp_path / "checkpoint")
    put(store, 1, b"later")
    put(store, 2, b"later")
    store.checkpoint(tmp_path / "second")
    store.close()
    for _ in range(2):
        restore(tmp_path / "checkpoint", tmp_path / "store")
        store = DocumentStore(tmp_path / "store")
        assert [document.fields for _, document in store.scan()] == [b"then"]
        put(store, 1, b"another")
        store.close()
    restore(tmp_path / "second", tmp_path / "store")
    store = DocumentStore(tmp_path / "store")
    assert [document.fields for _, document in store.scan()] == [b"later", b"later"]
    store.close()


def test_a_large_document_stands_apart(tmp_path: Path) -> None:
    """Whoever reads a small document must not decompress a large one, which has its own file, in checkpoints too."""
    store = DocumentStore(tmp_path / "store")
    large = np.random.default_rng(1).bytes(limits.STORE_BLOB_BYTES)
    put(store, 1, b"small")
    put(store, 2, large)
    store.checkpoint(tmp_path / "checkpoint")
    assert store.size_bytes() > len(large)
    put(store, 2, b"replaced")
    store.close()
    restore(tmp_path / "checkpoint", tmp_path / "store")
    blobs = [path for path in (tmp_path / "store").iterdir() if path.suffix == ".blob"]
    assert [path.stat().st_size > len(large) for path in blobs] == [True]
    assert blobs[0].stat().st_nlink > 1
    assert all(path.stat().st_size < len(large) for path in (tmp_path / "store").glob("*.sst"))
    store = DocumentStore(tmp_path / "store")
    assert [document.fields for _, document in store.scan()] == [b"small", large]
    store.close()


def test_a_damaged_large_document_is_noticed(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    put(store, 1, np.random.default_rng(1).bytes(limits.STORE_BLOB_BYTES))
    store.flush()
    store.close()
    (blob,) = tmp_path.glob("*.blob")
    damaged = bytearray(blob.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    blob.write_bytes(damaged)
    store = DocumentStore(tmp_path)
    with pytest.raises(Corruption):
        store.get(gid(1))
    store.close()


def test_memory_is_written_before_a_checkpoint_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one keeps the interpreter's lock, so nothing that takes long may be left for it."""
    store = DocumentStore(tmp_path / "store")
    left: list[int | None] = []

    def observed(database: Rdict) -> Checkpoint:
        left.append(database.property_int_value("rocksdb.num-entries-active-mem-table"))
        return Checkpoint(database)

    monkeypatch.setattr(document_store, "Checkpoint", observed)
    put(store, 1, b"{}")
    assert store._database.property_int_value("rocksdb.num-entries-active-mem-table") == 1
    store.checkpoint(tmp_path / "checkpoint")
    assert left == [0]
    store.close()


def test_a_damaged_value_is_reported(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    store._database[gid(1)] = b"?"
    with pytest.raises(Corruption, match="gid 000000000000000000000001 is damaged"):
        store.get(gid(1))
    store.close()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.one_of(st.none(), st.binary())), max_size=40))
def test_against_a_dict(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bytes | None]]) -> None:
    store, expected = DocumentStore(tmp_path_factory.mktemp("store")), dict[int, bytes]()
    for number, fields in steps:
        if fields is None:
            writes = StoreWrites()
            writes.remove(gid(number), f"id:n:t::{number}", 1)
            store.write(writes)
            expected.pop(number, None)
        else:
            put(store, number, fields)
            expected[number] = fields
    assert {document.lid: document.fields for _, document in store.scan()} == expected
    store.close()


def removed(store: DocumentStore, number: int, timestamp_us: int) -> None:
    writes = StoreWrites()
    writes.remove(gid(number), f"id:n:t::{number}", timestamp_us)
    store.write(writes)


def test_removed_documents_are_told_of_until_they_are_pruned(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path)
    put(store, 1, b"{}", 3)
    put(store, 2, b"{}", 4)
    removed(store, 2, 5)
    removed(store, 3, 6)
    tombstones = [StoredDocument(f"id:n:t::{k}", k + 3, NO_LID, b"") for k in (2, 3)]
    assert [found for _, found in store.scan(removes=True)] == [StoredDocument("id:n:t::1", 3, 1, b"{}"), *tombstones]
    assert [found.is_removed for _, found in store.scan(removes=True)] == [False, True, True]
    assert store.get(gid(2)) is None and store.multi_get([gid(3)]) == [None]
    assert [store.prune(5, 9), store.prune(6, 9), store.prune(6, 9)] == [0, 1, 0]
    assert [found.id for _, found in store.scan(removes=True)] == ["id:n:t::1", "id:n:t::3"]
    store.close()


def test_tombstones_are_in_checkpoints(tmp_path: Path) -> None:
    store = DocumentStore(tmp_path / "store")
    removed(store, 1, 5)
    store.checkpoint(tmp_path / "checkpoint")
    store.prune(10, 10)
    store.close()
    restore(tmp_path / "checkpoint", tmp_path / "store")
    store = DocumentStore(tmp_path / "store")
    assert [found.timestamp_us for _, found in store.scan(removes=True)] == [5]
    assert store.prune(10, 10) == 1 and list(store.scan(removes=True)) == []
    store.close()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["put", "remove", "forget", "prune"])), max_size=60))
def test_pruning_takes_old_tombstones_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    """Time is the number of the step. A prune takes what is older than a few steps, some at a time."""
    store, expected = DocumentStore(tmp_path_factory.mktemp("store")), dict[int, tuple[int, bool]]()
    for now, (number, action) in enumerate(steps, 1):
        if action == "put":
            put(store, number, b"{}", now)
            expected[number] = (now, False)
        elif action == "remove":
            removed(store, number, now)
            expected[number] = (now, True)
        elif action == "forget":
            writes = StoreWrites()
            writes.forget(gid(number))
            store.write(writes)
            expected.pop(number, None)
        else:
            before = max(now - number, 0)
            while store.prune(before, 2) == 2:
                pass
            expected = {k: (time, gone) for k, (time, gone) in expected.items() if not (gone and time < before)}
        found = {gid: (document.timestamp_us, document.is_removed) for gid, document in store.scan(removes=True)}
        assert found == {gid(k): state for k, state in expected.items()}
    store.close()


def test_a_store_opens_on_a_full_disk_with_the_room_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RocksDB writes its options to open a store, whatever is to be done with it."""
    directory, reserve = tmp_path / "store", tmp_path / "reserve"
    DocumentStore(directory).close()
    assert reserve.stat().st_size == limits.STORE_RESERVE_BYTES
    tried: list[bool] = []
    real = Rdict

    def on_a_full_disk(*arguments: Any) -> Any:
        tried.append(reserve.exists())
        if tried[-1]:
            raise Exception("IO error: No space left on device: While appending to file: OPTIONS-000009.dbtmp")
        return real(*arguments)

    monkeypatch.setattr(document_store, "Rdict", on_a_full_disk)
    DocumentStore(directory).close()
    assert (tried, reserve.exists()) == ([True, False], True)
    reserve.unlink()
    monkeypatch.setattr(document_store, "Rdict", lambda *_: on_a_full_disk() if reserve.exists() else refuse())
    with pytest.raises(
        NoSpace, match=r"^The disk is full, .*: make 1 MiB of room on the disk of '.*', and start again"
    ):
        DocumentStore(directory)


def test_files_of_a_checkpoint_are_copied_into_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DocumentStore(tmp_path / "store")
    put(store, 1, b"{}")
    store.checkpoint(tmp_path / "checkpoint")
    store.close()
    reserve, copyfile = tmp_path / "reserve", shutil.copyfile

    def copy_where_there_is_room(source: Path, target: Path) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copyfile(source, target)

    monkeypatch.setattr(shutil, "copyfile", copy_where_there_is_room)
    assert reserve.stat().st_size == limits.STORE_RESERVE_BYTES
    restore(tmp_path / "checkpoint", tmp_path / "store")
    store = DocumentStore(tmp_path / "store")
    assert store.get(gid(1)) == StoredDocument("id:n:t::1", 1, 1, b"{}")
    store.close()


def refuse() -> Any:
    raise Exception("IO error: No space left on device")


def test_large_documents_do_not_stay_in_memory_until_small_ones_have_filled_it(tmp_path: Path) -> None:
    """Of one that is replaced again and again each version would."""
    store = DocumentStore(tmp_path)
    for number in range(1000):
        put(store, number, b"x" * 100)
    assert store.memory_bytes() < 2_000_000 and not list(tmp_path.glob("*.sst"))
    most = 0
    for version in range(40):
        put(store, 2000, bytes([97 + version]) * (limits.STORE_BLOB_BYTES + 400_000))
        most = max(most, store.memory_bytes())
    assert most < 2.5 * limits.STORE_LARGE_BUFFER_BYTES, "what is being written is there beside what comes meanwhile"
    store.flush()
    assert store.memory_bytes() < 1_000_000
    kept = store.get(gid(2000))
    assert kept is not None and kept.fields[:1] == bytes([97 + 39])
    assert store.get(gid(7)) == StoredDocument("id:n:t::7", 1, 7, b"x" * 100)
    store.close()
