"""The document store: the fields of every document as JSON, in the order of their global ids. RocksDB underneath.

Key: the gid (12 bytes), so documents of one location lie together and visiting is a scan. Value: see
docs/internals/formats/document-store.md. Nothing is durable until `checkpoint`: the operation log is. RocksDB's own log
is off, so a crash may leave any newer state on disk, which `restore` throws away. One thread writes; any may read.

A removed document leaves a tombstone under its key, and a line in a second column family that is ordered by time:
`prune` reads that from its start, so that old tombstones are found without looking at documents.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from weakref import finalize

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from paperwasp import limits
from paperwasp.base.env import sync_directory
from paperwasp.errors import Corruption, InternalError, NoSpace, PaperwaspError
from paperwasp.limits import STORE_RESERVE_BYTES
from paperwasp.storage.documents.gid_map import NO_LID

_LOGGER: Final = logging.getLogger(__name__)
GID_BYTES: Final = 12
_HEADER: Final = struct.Struct("<BQIH")
_HEADER_BYTES: Final = _HEADER.size
_unpack_header: Final = _HEADER.unpack_from
_new_document: Final = tuple.__new__
_REMOVAL: Final = struct.Struct(">Q12s")
"""A key of the second column family: big-endian, so that keys are in the order of time."""
_TOMBSTONE: Final = 0x80
_RESERVE: Final = "reserve"
"""The file beside the store whose room a start on a full disk has."""
_REMOVALS: Final = "removals"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class StoredForm(IntEnum):
    """The forms of stored documents, by the parts of a put that their JSON lacks. The numbers are on disk."""

    BARE = 3
    """All empty values: texts, arrays, maps, weighted sets, structs and raws. So earlier versions wrote it."""
    WHOLE = 4
    """Nothing."""
    REMADE = 0x44
    """The same as BARE; but what indexing makes of the document was made again since as if they might be there."""


_BARE, _WHOLE, _REMADE = StoredForm
_FORMS: Final[Mapping[int, StoredForm]] = {2: _BARE, **{form.value: form for form in StoredForm}}
"""By the version of a value. Of version 2 are the same as of 3, where no tensor is in hex."""


class StoredDocument(NamedTuple):
    """One document as stored. `lid` is the row it has in columns and index; `fields` is its JSON object.

    A tombstone has NO_LID and no fields; `timestamp_us` is when the document was removed.
    """

    id: str
    timestamp_us: int
    lid: int
    fields: bytes
    form: StoredForm = _WHOLE

    @property
    def is_removed(self) -> bool:
        return self.lid == NO_LID


def stored_value(id: str, timestamp_us: int, lid: int, fields: bytes, form: StoredForm = _WHOLE) -> bytes:
    """A document as the store keeps it: the header, the id, the JSON of its fields."""
    id_bytes = id.encode()
    return _HEADER.pack(form, timestamp_us, lid, len(id_bytes)) + id_bytes + fields


class StoreWrites:
    """Puts and removes that are to be written together, in order."""

    __slots__ = ("_large_bytes", "_made", "_removals")

    def __init__(self) -> None:
        self._made: WriteBatch | None = None
        self._large_bytes = 0
        """Of values that go to files of their own kind."""
        self._removals: list[bytes] = []

    def __bool__(self) -> bool:
        """True where there is anything to write."""
        return self._made is not None

    @property
    def _batch(self) -> WriteBatch:
        """Made when there is something to write: making it takes longer than adding many documents."""
        if self._made is None:
            self._made = WriteBatch(raw_mode=True)
        return self._made

    def put(self, gid: bytes, id: str, timestamp_us: int, lid: int, fields: bytes, form: StoredForm = _WHOLE) -> None:
        self.put_all([(gid, stored_value(id, timestamp_us, lid, fields, form))])

    def put_all(self, stored: Sequence[tuple[bytes, bytes]]) -> None:
        """Puts of (global id, `stored_value`)."""
        batch = self._batch
        for gid, value in stored:
            batch[gid] = value
            if len(value) >= limits.STORE_BLOB_BYTES:
                self._large_bytes += len(value)

    def remove(self, gid: bytes, id: str, timestamp_us: int) -> None:
        """Leaves a tombstone, which says when."""
        id_bytes = id.encode()
        self._batch[gid] = _HEADER.pack(_WHOLE | _TOMBSTONE, timestamp_us, NO_LID, len(id_bytes)) + id_bytes
        self._removals.append(_REMOVAL.pack(timestamp_us, gid))

    def forget(self, gid: bytes) -> None:
        """Leaves nothing."""
        self._batch.delete(gid)


class DocumentStore:
    """The store in one folder."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """`read_only`: no document is ever changed, nor what RocksDB needs to open the store again."""
        self._directory = directory
        options, access = _options(), AccessType.read_write()
        removal_options = Options(raw_mode=True)
        removal_options.set_write_buffer_size(limits.STORE_REMOVALS_BUFFER_BYTES)
        if read_only:
            options.create_if_missing(False)
            options.create_missing_column_families(False)
            options.set_max_open_files(-1)  # all are opened now, and may be deleted later
            access = AccessType.read_only()
        else:
            directory.mkdir(parents=True, exist_ok=True)

        def open_database() -> Rdict:
            try:
                return Rdict(str(directory), options, {_REMOVALS: removal_options}, access)
            except Exception as error:
                raise _sorted_error(directory, error) from error

        self._database = open_database() if read_only else with_reserve(directory.with_name(_RESERVE), open_database)
        self._removals = self._database.get_column_family(_REMOVALS)
        self._removal_family = self._database.get_column_family_handle(_REMOVALS)
        self._passing = self._database.get_column_family("default")
        """The same documents, read in passing. (Options that are given to `get` do not hold for many keys.)"""
        self._passing.set_read_options(_in_passing())
        self._write_options = WriteOptions()
        self._write_options.disable_wal = True  # type: ignore[method-assign, assignment]  # an attribute, in truth
        self._large_bytes = 0
        """Of large values, about, that are in memory still."""

    def write(self, writes: StoreWrites) -> None:
        """Write all of them, visible at once."""
        for key in writes._removals:
            writes._batch.put(key, b"", self._removal_family)
        self._write(writes._batch)
        self._large_bytes += writes._large_bytes
        if self._large_bytes >= limits.STORE_LARGE_BUFFER_BYTES:
            self._begin_flush()

    def _begin_flush(self) -> None:
        """Has what is in memory written to files by another thread. Errors: NoSpace, InternalError."""
        try:
            self._database.flush(wait=False)
        except Exception as error:
            raise _sorted_error(self._directory, error) from error
        self._large_bytes = 0

    def _write(self, batch: WriteBatch) -> None:
        """Write a batch. Errors: NoSpace, InternalError."""
        try:
            self._database.write(batch, self._write_options)
        except Exception as error:
            raise _sorted_error(self._directory, error) from error

    def _values(self, gids: Any, in_passing: bool = False) -> Any:
        try:
            return (self._passing if in_passing else self._database).get(gids)
        except Exception as error:
            raise _sorted_error(self._directory, error) from error

    def get(self, gid: bytes) -> StoredDocument | None:
        """The document, or None where there is none or a tombstone."""
        value = self._values(gid)
        return None if value is None else self._document(gid, value)

    def multi_get(self, gids: Sequence[bytes], in_passing: bool = False) -> list[StoredDocument | None]:
        """`in_passing`: blocks that are read do not stay in the cache, where they would take the place of others."""
        if not gids:
            return []
        values = self._values(list(gids), in_passing) or []
        document = self._document
        return [None if value is None else document(gid, value) for gid, value in zip(gids, values, strict=True)]

    def scan(
        self, start: bytes = b"", end: bytes | None = None, removes: bool = False, in_passing: bool = False
    ) -> Iterator[tuple[bytes, StoredDocument]]:
        """Documents with start <= gid < end, in the order of their gids, as they are when the scan begins.

        With `removes`, tombstones too, however old. `in_passing`: as of `multi_get`.
        """
        cursor = self._database.iter(_in_passing() if in_passing else None)
        if start:
            cursor.seek(start)
        else:
            cursor.seek_to_first()
        while cursor.valid():
            gid = cursor.key()
            if end is not None and gid >= end:
                return
            document = self._decode(gid, cursor.value())
            if removes or document.lid != NO_LID:
                yield gid, document
            cursor.next()
        _check_ended(cursor, self._directory)

    def prune(self, before_us: int, most: int) -> int:
        """Takes away tombstones from before that time, oldest first. Gives how many removals were looked at: `most`
        says that there may be more. What was put again, or removed again later, stays. The writer's."""
        keys = self._removals_before(before_us, most)
        removals = [_REMOVAL.unpack(key) for key in keys]
        values = self._values([gid for _, gid in removals]) if removals else []
        batch = WriteBatch(raw_mode=True)
        for key, (timestamp_us, gid), value in zip(keys, removals, values or [], strict=True):
            batch.delete(key, self._removal_family)
            if value is not None:
                document = self._decode(gid, value)
                if document.is_removed and document.timestamp_us == timestamp_us:
                    batch.delete(gid)
        self._write(batch)
        return len(keys)

    def _removals_before(self, before_us: int, most: int) -> list[bytes]:
        cursor = self._removals.iter()
        cursor.seek_to_first()
        keys: list[bytes] = []
        while len(keys) < most and cursor.valid():
            key = cursor.key()
            if _REMOVAL.unpack(key)[0] >= before_us:
                break
            keys.append(key)
            cursor.next()
        else:
            _check_ended(cursor, self._directory)
        return keys

    def flush(self) -> None:
        """Writes what is in memory. Errors: NoSpace, InternalError where the disk takes nothing."""
        try:
            for family in (self._removals, self._database):
                family.flush()
        except Exception as error:
            raise _sorted_error(self._directory, error) from error
        self._large_bytes = 0

    def checkpoint(self, directory: Path) -> None:
        """Make `directory` (which must not exist) a durable copy of the present state, by hard links where it can."""
        self.flush()  # without the interpreter's lock, which making a checkpoint keeps all the while
        try:
            Checkpoint(self._database).create_checkpoint(str(directory))
        except Exception as error:
            raise _sorted_error(self._directory, error) from error

    def memory_bytes(self) -> int:
        """Of documents that are not in files yet."""
        return self._database.property_int_value("rocksdb.size-all-mem-tables") or 0

    def cache_bytes(self) -> int:
        """Of blocks that were read, at most STORE_CACHE_BYTES."""
        return self._database.property_int_value("rocksdb.block-cache-usage") or 0

    def size_bytes(self) -> int:
        """On disk, about."""
        tables, blobs = "rocksdb.total-sst-files-size", "rocksdb.total-blob-file-size"
        return sum(self._database.property_int_value(name) or 0 for name in (tables, blobs))

    def close(self) -> None:
        # RocksDB lets go of its lock when the last handle is gone.
        del self._removal_family
        _close(self._removals, self._passing, self._database)

    def remove_when_unread(self) -> finalize[..., DocumentStore]:
        """Closes the store and removes its folder when nobody reads it any more, or when what this gives is called,
        once. Nothing is written from now on."""
        del self._removal_family
        removal = finalize(self, _close_and_remove, self._directory, self._removals, self._passing, self._database)
        removal.atexit = False
        return removal

    def _document(self, gid: bytes, value: bytes) -> StoredDocument | None:
        """None for a tombstone."""
        document = self._decode(gid, value)
        return None if document[2] == NO_LID else document  # by number: of all hits of all queries

    def _decode(self, gid: bytes, value: bytes) -> StoredDocument:
        try:
            flags, timestamp_us, lid, id_length = _unpack_header(value)
        except struct.error:
            flags = 0
        form = _FORMS.get(flags & ~_TOMBSTONE)
        if form is None:
            raise Corruption(f"{self._directory}: the document with gid {gid.hex()} is damaged")
        end = _HEADER_BYTES + id_length
        return _new_document(StoredDocument, (value[_HEADER_BYTES:end].decode(), timestamp_us, lid, value[end:], form))


def _in_passing() -> ReadOptions:
    options = ReadOptions()
    options.fill_cache(False)  # type: ignore[call-arg]  # it takes the value, in truth
    return options


def _check_ended(cursor: RdictIter, directory: Path) -> None:
    """A cursor that meets damage looks like one that is at its end. Errors: Corruption, InternalError."""
    if not cursor.valid():
        try:
            cursor.status()
        except Exception as error:
            raise _sorted_error(directory, error) from error


def _sorted_error(directory: Path, error: Exception) -> PaperwaspError:
    """Return RocksDB's error, by who must act. Once it could not write it refuses all writes, with the same words."""
    message = str(error)
    if any(os.strerror(code) in message for code in _FULL):
        return NoSpace(f"{directory}: no space left for the document store: {message}")
    if message.startswith("Corruption"):
        return Corruption(f"{directory}: the document store is damaged: {message}")
    return InternalError(f"{directory}: the document store cannot be read or written: {message}")


def _close_and_remove(directory: Path, *handles: Rdict) -> None:
    _close(*handles)
    shutil.rmtree(directory, ignore_errors=True)


def _close(*handles: Rdict) -> None:
    """Close all. Nothing is lost where that cannot be written any more: only checkpoints count."""
    for closing in handles:
        try:
            closing.close()
        except Exception as error:
            _LOGGER.warning("the document store did not close as it should: %s", error)


def restore(checkpoint: Path, directory: Path) -> None:
    """Replace `directory` by a copy of `checkpoint`, which stays as it is.

    Tables and blobs are never changed once written, so links will do; all other files are copied. Errors: NoSpace;
    FileNotFoundError.
    """

    def copy() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        try:
            directory.mkdir(parents=True)
            for file in checkpoint.iterdir():
                if file.suffix in (".sst", ".blob"):
                    os.link(file, directory / file.name)
                else:
                    shutil.copyfile(file, directory / file.name)
        except OSError as error:
            if error.errno not in _FULL:
                raise
            raise NoSpace(f"{directory}: no space left for the document store: {error}") from error

    with_reserve(directory.with_name(_RESERVE), copy)


def _options() -> Options:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_write_buffer_size(limits.STORE_WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(2)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_enable_blob_files(True)
    options.set_min_blob_size(limits.STORE_BLOB_BYTES)
    options.set_blob_compression_type(DBCompressionType.lz4())
    options.set_enable_blob_gc(True)
    options.set_max_background_jobs(2)
    options.set_keep_log_file_num(1)
    options.set_max_open_files(256)
    options.set_max_file_opening_threads(2)  # sixteen are begun otherwise to open an empty store: 0.8 ms of 2
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(limits.STORE_CACHE_BYTES))
    blocks.set_block_size(4 * 1024)
    blocks.set_bloom_filter(10, False)
    options.set_block_based_table_factory(blocks)
    return options


# Room for a start on a full disk

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def with_reserve(reserve: Path, open_all: Callable[[], T]) -> T:
    """Return what `open_all` returns, which may use the room of the file `reserve` where there is no other.

    So a start on a full disk succeeds, after which documents can be read and removed: RocksDB writes some small files
    to open its store, even where nothing is to be changed, and before that files of the checkpoint are copied. The file
    is there again afterwards, unless there is no room for it. Errors: those of `open_all`; NoSpace says what helps.
    """
    try:
        opened = open_all()
    except NoSpace as error:
        if not reserve.exists():
            raise _without_reserve(reserve, error) from error
        reserve.unlink()
        _LOG.warning("The disk is full: the room that was kept for a start is used (%s)", reserve)
        try:
            opened = open_all()
        except NoSpace as again:
            raise _without_reserve(reserve, again) from again
    _keep(reserve)
    return opened


def _without_reserve(reserve: Path, error: NoSpace) -> NoSpace:
    return NoSpace(
        f"The disk is full, and the room that is kept for a start is used: make {STORE_RESERVE_BYTES >> 20} MiB of "
        f"room on the disk of '{reserve.parent}', and start again. Nothing that was acknowledged is lost "
        f"({error.message})"
    )


def _keep(reserve: Path) -> None:
    """Make the file, where it is not there and can be."""
    if reserve.exists():
        return
    try:
        with reserve.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, STORE_RESERVE_BYTES)
            os.fsync(file.fileno())
        sync_directory(reserve.parent)
    except OSError:
        with suppress(OSError):
            reserve.unlink()
