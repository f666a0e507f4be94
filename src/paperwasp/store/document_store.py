"""The document store: the fields of every document as JSON, in the order of their global ids. RocksDB underneath.

Key: the gid (12 bytes), so documents of one location lie together and visiting is a scan. Value: see
docs/formats/document-store.md. Nothing is durable until `checkpoint`: the operation log is. RocksDB's own log is off,
so a crash may leave any newer state on disk, which `restore` throws away. One thread writes; any may read.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from paperwasp import limits
from paperwasp.errors import Corruption

GID_BYTES: Final = 12
_HEADER: Final = struct.Struct("<BQIH")
_VERSION: Final = 1
_TOMBSTONE: Final = 0x80
_NO_LID: Final = 0xFFFFFFFF


class StoredDocument(NamedTuple):
    """One document as stored. `lid` is the row it has in columns and index; `fields` is its JSON object."""

    id: str
    timestamp_us: int
    lid: int
    fields: bytes


class StoreWrites:
    """Puts and removes that are to be written together, in order."""

    __slots__ = ("_batch",)

    def __init__(self) -> None:
        self._batch = WriteBatch(raw_mode=True)

    def put(self, gid: bytes, id: str, timestamp_us: int, lid: int, fields: bytes) -> None:
        id_bytes = id.encode()
        self._batch[gid] = _HEADER.pack(_VERSION, timestamp_us, lid, len(id_bytes)) + id_bytes + fields

    def remove(self, gid: bytes, id: str, timestamp_us: int) -> None:
        """Leaves a tombstone, which says when."""
        id_bytes = id.encode()
        self._batch[gid] = _HEADER.pack(_VERSION | _TOMBSTONE, timestamp_us, _NO_LID, len(id_bytes)) + id_bytes

    def forget(self, gid: bytes) -> None:
        """Leaves nothing."""
        self._batch.delete(gid)


class DocumentStore:
    """The store in one folder."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._database = Rdict(str(directory), _options())
        self._write_options = WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[method-assign, assignment]  # an attribute, in truth

    def write(self, writes: StoreWrites) -> None:
        """All of them, visible at once."""
        self._database.write(writes._batch, self._write_options)

    def get(self, gid: bytes) -> StoredDocument | None:
        """The document, or None where there is none or a tombstone."""
        value = self._database.get(gid)
        return None if value is None else self._decode(gid, value)

    def multi_get(self, gids: Sequence[bytes]) -> list[StoredDocument | None]:
        if not gids:
            return []
        values = self._database.get(list(gids)) or []
        return [None if value is None else self._decode(gid, value) for gid, value in zip(gids, values, strict=True)]

    def scan(self, start: bytes = b"", end: bytes | None = None) -> Iterator[tuple[bytes, StoredDocument]]:
        """Documents with start <= gid < end, in the order of their gids, as they are when the scan begins."""
        cursor = self._database.iter()
        if start:
            cursor.seek(start)
        else:
            cursor.seek_to_first()
        while cursor.valid():
            gid = cursor.key()
            if end is not None and gid >= end:
                return
            if (document := self._decode(gid, cursor.value())) is not None:
                yield gid, document
            cursor.next()

    def checkpoint(self, directory: Path) -> None:
        """Makes `directory` (which must not exist) a durable copy of the present state, by hard links where it can."""
        Checkpoint(self._database).create_checkpoint(str(directory))

    def size_bytes(self) -> int:
        """On disk, about."""
        return self._database.property_int_value("rocksdb.total-sst-files-size") or 0

    def close(self) -> None:
        self._database.close()

    def _decode(self, gid: bytes, value: bytes) -> StoredDocument | None:
        try:
            flags, timestamp_us, lid, id_length = _HEADER.unpack_from(value)
        except struct.error:
            flags = 0
        if flags & ~_TOMBSTONE != _VERSION:
            raise Corruption(f"{self._directory}: the document with gid {gid.hex()} is damaged")
        if flags & _TOMBSTONE:
            return None
        end = _HEADER.size + id_length
        return StoredDocument(value[_HEADER.size : end].decode(), timestamp_us, lid, value[end:])


def restore(checkpoint: Path, directory: Path) -> None:
    """Makes `directory` what `checkpoint` holds, throwing away what it was. The checkpoint stays as it is.

    Tables are never changed once written, so links will do; all other files are copied.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    for file in checkpoint.iterdir():
        if file.suffix == ".sst":
            os.link(file, directory / file.name)
        else:
            shutil.copyfile(file, directory / file.name)


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(limits.STORE_WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(1)
    options.set_max_open_files(256)
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(limits.STORE_CACHE_BYTES))
    blocks.set_block_size(4 * 1024)
    blocks.set_bloom_filter(10, False)
    options.set_block_based_table_factory(blocks)
    return options
