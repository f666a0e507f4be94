"""Checkpoints: all documents at one place of the operation log, in one folder.

Format: docs/internals/formats/checkpoint.md.

    checkpoints/CURRENT            the name of the checkpoint that counts
    checkpoints/0000000000000007/  manifest, rows, columns, store
    index-3/                       files that the manifest's index state names
    store/                         the working store: after a crash it is made again from the checkpoint
    store-1/                       the same, once the documents were given new rows while the node served

The writer freezes the state (copies of what changes in place, a picture of the store, references to the rest) and
goes on; a background thread writes. A checkpoint counts from the moment CURRENT names it; before, it is a folder that
the next start removes.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final
from zlib import crc32

import numpy as np
import orjson
from msgspec import Struct

from paperwasp.base.env import sync_directory
from paperwasp.base.patterns import compile_later
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.log.moved_records import PartitionMark
from paperwasp.content.state.bitmaps import GrowingBitmap, lids_of
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.relayout import change_layout
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.coordination.operation_log import Mark
from paperwasp.errors import Corruption, InternalError, OtherVersion
from paperwasp.storage.attributes.array_file import read_arrays, write_arrays
from paperwasp.storage.attributes.column import Arrays, Frozen
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.documents.document_store import DocumentStore, restore
from paperwasp.storage.index.text_index import FrozenIndex, TextIndex
from paperwasp.text.linguistics.versions import describe_changes, versions

_LOG: Final = logging.getLogger("paperwasp.content")
_VERSION: Final = 3
_CHECKPOINT_NAME: Final = compile_later(r"\d{16}")
_CURRENT: Final = "CURRENT"
_MANIFEST: Final = "manifest.json"
_ROWS: Final = "rows.arrays"
_STORE: Final = "store"
_INDEX: Final = "index-"
_OTHER_STORE: Final = "store-"

IndexFactory = Callable[[Path], TextIndex]


class FrozenState(Struct, frozen=True):
    """A node's state at one moment; the store is in the checkpoint's folder already."""

    directory: Path
    layout: Layout
    applied: tuple[Mark, ...]
    imported: Mapping[int, PartitionMark]
    timestamp_us: int
    limit: int
    dead_bytes: int
    conform_below: Mapping[str, int]
    rows: Arrays
    columns: Mapping[tuple[str, str], Frozen]
    index: FrozenIndex
    index_directory: Path


class Checkpoints:
    """The checkpoints of one data directory."""

    def __init__(self, data_directory: Path, make_index: IndexFactory) -> None:
        self.make_index: Final = make_index
        self._directory = data_directory / "checkpoints"
        self._store = data_directory / "store"
        self._data = data_directory
        self._numbering = Lock()
        self._last_store = 0
        """The number of the folder of a store that was given out last."""
        REAL_DISK.make_directory(self._directory)

    def freeze(self, state: NodeState) -> FrozenState:
        """Take a copy of the state to be written. On the writer's thread, between two batches."""
        state.settle()
        directory = self._directory / f"{_last_number(self._directory, '') + 1:016d}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        state.store.checkpoint(directory / _STORE)
        limit = state.limit
        rows = {
            "live": state.live.copy(limit),
            "document_types": state.document_types.view(),
            "gids": state.gids.view(),
            "changed": state.changed.view().copy(),
            "timestamps": state.timestamps.view().copy(),
            "row_bytes": state.row_bytes.view(),
        }
        return FrozenState(
            directory=directory,
            layout=state.layout,
            applied=tuple(state.applied),
            imported=dict(state.imported),
            timestamp_us=state.timestamp_us,
            limit=limit,
            dead_bytes=state.dead_bytes,
            conform_below=dict(state.conform_below),
            rows=rows,
            columns={key: column.freeze() for key, column in state.columns.items()},
            index=state.index.freeze(),
            index_directory=state.index_directory,
        )

    def write(self, frozen: FrozenState, index: TextIndex) -> None:
        """Make the frozen state the checkpoint that counts, and remove those before it. Any thread, one at a time."""
        write_arrays(frozen.directory / _ROWS, frozen.rows)
        columns = frozen.columns if frozen.limit else {}  # without rows they are as the layout makes them
        names = {key: f"column-{place}.arrays" for place, key in enumerate(columns)}
        for key, arrays in columns.items():
            write_arrays(frozen.directory / names[key], arrays())
        manifest = {
            "version": _VERSION,
            "layout": orjson.loads(frozen.layout.to_bytes()),
            "applied": [list(mark) for mark in frozen.applied],
            **({"imported": _describe_imported(frozen.imported)} if frozen.imported else {}),
            "timestamp_us": frozen.timestamp_us,
            "limit": frozen.limit,
            "dead_bytes": frozen.dead_bytes,
            "conform_below": frozen.conform_below,
            "columns": [[*key, name] for key, name in names.items()],
            "index_directory": frozen.index_directory.name,
            "index": index.flush(frozen.index),
            "libraries": versions(),
        }
        content = orjson.dumps(manifest)
        REAL_DISK.write_whole(frozen.directory / _MANIFEST, b"%08x\n" % crc32(content) + content)
        for directory in (self._data, self._directory):
            sync_directory(directory)  # the names of the folders of index and checkpoint, before they are counted on
        REAL_DISK.write_whole(self._directory / _CURRENT, frozen.directory.name.encode())
        index.keep_last()
        self._remove_others(frozen.directory, frozen.index_directory)

    def new_index_directory(self) -> Path:
        """A folder that no checkpoint names, for an index that begins empty."""
        return self._data / f"{_INDEX}{_last_number(self._data, _INDEX) + 1}"

    def load(self) -> NodeState:
        """Return the state that the current checkpoint holds; an empty one where there is none. Errors: Corruption."""
        current = self._current()
        for store in self._data.glob(f"{_OTHER_STORE}*"):
            shutil.rmtree(store, ignore_errors=True)
        if current is None:
            shutil.rmtree(self._store, ignore_errors=True)
        else:
            self._remove_others(current, self._data / read_manifest(current)["index_directory"])
        return self._load_state(current, self._store)

    def load_aside(self) -> NodeState:
        """Return that state in a store of its own, while the working store is in use. Errors: Corruption."""
        return self._load_state(self._current(), self._new_store_directory())

    def load_beside(self) -> NodeState:
        """Return that state in a store of its own, without an index. Errors: Corruption."""
        current = self._current()
        if current is None:
            raise InternalError("there is no checkpoint")
        return self._load_state(current, self._new_store_directory(), with_index=False)

    def _load_state(self, current: Path | None, store_directory: Path, with_index: bool = True) -> NodeState:
        if current is None:
            index_directory = self.new_index_directory()
            return NodeState(self.make_index(index_directory), DocumentStore(store_directory), index_directory)
        manifest = read_manifest(current)
        index_directory = self._data / manifest["index_directory"] if with_index else self.new_index_directory()
        store = _restore_store(current / _STORE, store_directory)
        try:
            state = NodeState(self.make_index(index_directory), store, index_directory)
            if with_index:
                state.index.load(manifest["index"])
            _fill(state, current, manifest)
        except FileNotFoundError as error:
            store.remove_when_unread()()
            raise Corruption(f"{error.filename}: the file is missing") from error
        except BaseException:
            store.remove_when_unread()()
            raise
        return state

    def _new_store_directory(self) -> Path:
        """A folder that nobody else is given: the writer and a compaction that it has cancelled may ask at once."""
        with self._numbering:
            self._last_store = max(self._last_store, _last_number(self._data, _OTHER_STORE)) + 1
            return self._data / f"{_OTHER_STORE}{self._last_store}"

    def _current(self) -> Path | None:
        path = self._directory / _CURRENT
        try:
            name = path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            # Before the first checkpoint counts there may be one; else the log, which says what it lacks, ends a start.
            if whole := sorted(found.parent.name for found in self._directory.glob(f"*/{_MANIFEST}")):
                _LOG.warning("%s is missing, though there is the checkpoint %s", path, whole[-1])
            return None
        if not _CHECKPOINT_NAME.fullmatch(name) or not (self._directory / name / _MANIFEST).is_file():
            raise Corruption(f"{path}: offset 0: names {name!r}, which is not a checkpoint")
        return self._directory / name

    def _remove_others(self, checkpoint: Path | None, index: Path | None) -> None:
        """Remove every checkpoint and index but these."""
        checkpoints = (path for path in self._directory.iterdir() if path.is_dir())
        for path in (*checkpoints, *self._data.glob(f"{_INDEX}*")):
            if path not in (checkpoint, index):
                shutil.rmtree(path, ignore_errors=True)


def _last_number(directory: Path, prefix: str) -> int:
    """The highest number of the folders `<prefix><number>`; 0 where there is none."""
    names = (path.name.removeprefix(prefix) for path in directory.glob(f"{prefix}*") if path.is_dir())
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _restore_store(checkpoint: Path, directory: Path) -> DocumentStore:
    """Restore the store that a checkpoint holds into `directory`. Errors: Corruption; NoSpace."""
    try:
        restore(checkpoint, directory)
        return DocumentStore(directory)
    except FileNotFoundError as error:
        raise Corruption(f"{error.filename}: the file is missing") from error
    except (Corruption, InternalError) as error:
        raise Corruption(f"{checkpoint}: the document store of the checkpoint is damaged: {error.message}") from error


def read_manifest(checkpoint: Path) -> dict[str, Any]:
    """The manifest of the checkpoint in a folder. Errors: Corruption."""
    path = checkpoint / _MANIFEST
    crc, _, content = path.read_bytes().partition(b"\n")
    if crc != b"%08x" % crc32(content):
        raise Corruption(f"{path}: offset 0: the checksum differs")
    manifest: dict[str, Any] = orjson.loads(content)
    if manifest["version"] != _VERSION:
        raise OtherVersion(f"{path}: a checkpoint of version {manifest['version']}; known is {_VERSION}")
    return manifest


def check_readable(data_directory: Path) -> None:
    """Check that the checkpoint that counts, if any, is of a version that is read here; damage is for `load` to name.
    Errors: OtherVersion."""
    try:
        name = (data_directory / "checkpoints" / _CURRENT).read_text()
        manifest = read_manifest(data_directory / "checkpoints" / name)
        Layout.from_bytes(orjson.dumps(manifest["layout"]))
    except OtherVersion:
        raise
    except (Corruption, OSError, KeyError, ValueError):
        return


def _warn_of_other_libraries(known: Mapping[str, str]) -> None:
    """Warn of libraries of other versions: what is replayed and fed from now on may have other terms."""
    if found := describe_changes(known):
        _LOG.warning(
            "Libraries that make terms of texts are not those that the index was made with: %s. Where they make other"
            " terms, documents that are indexed already are not found by the new ones: reindex them"
            " (POST .../application/default/environment/prod/region/default/instance/default/reindex on the port of"
            " deployments)",
            "; ".join(found),
        )


def _describe_imported(imported: Mapping[int, PartitionMark]) -> list[list[Any]]:
    return [[partition, *taken.mark, taken.log, taken.layout] for partition, taken in imported.items()]


def _fill(state: NodeState, directory: Path, manifest: Mapping[str, Any]) -> None:
    """Fill a state with all that the checkpoint holds, but the index."""
    _warn_of_other_libraries(manifest.get("libraries", {}))
    change_layout(state, Layout.from_bytes(orjson.dumps(manifest["layout"])))
    state.applied = [Mark(*mark) for mark in manifest["applied"]]
    for found in manifest.get("imported", ()):
        partition, sequence, crc, log, layout = (*found, "", "")[:5]  # older checkpoints do not say of which log
        state.imported[partition] = PartitionMark(log, layout, Mark(sequence, crc))
    state.timestamp_us = manifest["timestamp_us"]
    state.limit = manifest["limit"]
    state.dead_bytes = manifest.get("dead_bytes", 0)
    state.conform_below = dict(manifest["conform_below"])
    for document_type, name, file in manifest["columns"]:
        try:
            state.columns[document_type, name].load(read_arrays(directory / file))
        except (KeyError, ValueError, FileNotFoundError) as error:
            raise Corruption(f"{directory / file}: offset 0: no column of {document_type}.{name}: {error}") from error
    _fill_rows(state, read_arrays(directory / _ROWS))


def _fill_rows(state: NodeState, rows: Arrays) -> None:
    state.live = GrowingBitmap(rows["live"])
    state.document_types = GrowableArray.of(rows["document_types"])
    state.gids = GrowableArray.of(rows["gids"])
    state.changed = GrowableArray.of(rows["changed"])
    state.timestamps = GrowableArray.of(rows["timestamps"])
    lids = lids_of(rows["live"])
    if "row_bytes" in rows:
        state.row_bytes = GrowableArray.of(rows["row_bytes"])
    state.row_bytes.pad(len(rows["gids"]))  # a checkpoint from before sizes were kept has none
    state.live_bytes = int(state.row_bytes.array[lids].sum(dtype=np.int64))
    state.gid_map.insert(rows["gids"][lids].tobytes(), lids)
    names = {kind.number: name for name, kind in state.layout.types.items()}
    for number, count in enumerate(np.bincount(rows["document_types"][lids]).tolist()):
        if count:
            state.live_counts[names[number]] = count
