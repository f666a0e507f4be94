"""Takes the documents that are there from one layout to the next. Part of applying: no clock, no chance.

    a field that is no longer changed in place    what was changed in its column is written to the stored documents
    a column that goes, comes, is kept otherwise  is dropped; filled from the stored documents; copied
    a field that goes, or changes its type        the stored documents stay as they are: they are read as the new layout
                                                  says (`NodeState.conform_below`) until they are written again
    an index that goes or comes                   begins empty: reindexing, or the next put, fills it
    text that becomes terms in another way        new postings are so made; old ones stay until their documents are put
    a document type that goes                     its documents go

Where there are no documents, as when a checkpoint is loaded, all this costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.content.layouts.codec import DocumentCodec
from paperwasp.content.layouts.layout import ColumnSource, Layout, TypeLayout
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.state.node_state import NodeState
from paperwasp.errors import InternalError
from paperwasp.storage.attributes import Column
from paperwasp.storage.documents.document_store import StoredDocument, StoreWrites

Lids = NDArray[np.uint32]
StoredChunk = list[tuple[int, bytes, StoredDocument]]
"""Lid, gid, document."""
_SCAN_SHARE: Final = 0.5
"""Scanning the store is cheaper than asking for each document, where at least this much of it is wanted."""


def change_layout(state: NodeState, layout: Layout) -> None:
    """Make `layout` the state's. Whoever still reads the state as it was must hold a view of it."""
    for kind in state.layout.types.values():
        if kind.name not in layout.types:
            _remove_type(state, kind)
    changed = [(name, field) for name, kind in layout.types.items() for field in _new_types(_before(state, kind), kind)]
    codecs = {name: DocumentCodec(kind) for name, kind in layout.types.items()}
    for name, kind in layout.types.items():
        _change_type(state, _before(state, kind), kind, codecs[name])
    indexed = [
        found for kind in layout.types.values() for field in kind.indexed for found in field.indexed_fields(kind.name)
    ]
    state.index.configure(indexed, changed)
    state.codecs = codecs
    state.layout = layout
    state.references.configure(layout, state.columns)


def _before(state: NodeState, kind: TypeLayout) -> TypeLayout:
    return state.layout.types.get(kind.name) or TypeLayout(kind.name, kind.number, {})


def _new_types(before: TypeLayout, after: TypeLayout) -> list[str]:
    """The fields that stay and have another type."""
    return [name for name, known in before.types.items() if name in after.types and after.types[name] != known]


def _remove_type(state: NodeState, kind: TypeLayout) -> None:
    for chunk in _chunks(_lids_of(state, kind)):
        writes = StoreWrites()
        gids = [state.gids.array[lid].tobytes() for lid in chunk]
        for gid in gids:
            writes.forget(gid)
        state.store.write(writes)
        state.bury(state.gid_map.remove(gids))
        state.references.remove(kind.name, b"".join(gids))
    state.columns = {key: column for key, column in state.columns.items() if key[0] != kind.name}
    state.live_counts.pop(kind.name, None)
    state.conform_below.pop(kind.name, None)


def _change_type(state: NodeState, before: TypeLayout, after: TypeLayout, codec: DocumentCodec) -> None:
    new_types = _new_types(before, after)
    if before.in_place - after.in_place or before.in_place.intersection(new_types):
        _write_back(state, before)
    columns, missing = _columns_of(state, before, after)
    if missing:
        _fill(state, after, codec, columns, missing)
    others = {key: column for key, column in state.columns.items() if key[0] != after.name}
    state.columns = others | {(after.name, name): column for name, column in columns.items()}
    state.live_counts.setdefault(after.name, 0)
    if state.live_counts[after.name] and (new_types or before.types.keys() - after.types.keys()):
        state.conform_below[after.name] = state.limit


def _write_back(state: NodeState, kind: TypeLayout) -> None:
    """Write to the stored documents of a type what was changed in place. They keep their rows."""
    lids = _lids_of(state, kind)
    for chunk in _chunks(lids[state.changed.array[lids] > 0]):
        writes = StoreWrites()
        for lid, gid, document in _read_stored(state, chunk):
            timestamp_us = int(state.timestamps.array[lid])
            writes.put(gid, document.id, timestamp_us, lid, state.stored_fields_of(document), document.form)
        state.store.write(writes)


def _columns_of(
    state: NodeState, before: TypeLayout, after: TypeLayout
) -> tuple[dict[str, Column], list[ColumnSource]]:
    """The columns of a type, and those of them that are empty and must be filled."""
    columns, missing, paged_in = {}, [], state.paged_directory
    before_by_name = {source.name: source for source in before.columns}
    for source in after.columns:
        known, column = before_by_name.get(source.name), state.columns.get((after.name, source.name))
        if column is None or known is None or _has_new_type(known, source):
            column = source.field.create_column(paged_in)
            missing.append(source)
        elif known.field.column != source.field.column:
            copy = source.field.create_column(paged_in)
            copy.load(column.freeze()())
            column = copy
        columns[source.name] = column
    return columns, missing


def _has_new_type(known: ColumnSource, source: ColumnSource) -> bool:
    """Return whether stored documents say other values now. Of a part, also where the whole field reads otherwise."""
    return known.field.type != source.field.type or known.source_type != source.source_type


def _fill(
    state: NodeState,
    kind: TypeLayout,
    codec: DocumentCodec,
    columns: dict[str, Column],
    missing: Sequence[ColumnSource],
) -> None:
    """Fill columns from the stored documents. Rows of dead ones, and of other types, stay unset."""
    names = list(dict.fromkeys(source.source for source in missing))
    for source in missing:
        columns[source.name].pad(state.limit)
    for documents in _documents_of(state, kind):
        lids = np.array([lid for lid, _, _ in documents], np.uint32)
        values = [codec.decode_kept(document.fields, names) for _, _, document in documents]
        for source in missing:
            columns[source.name].fill(lids, source.values(values))


def _documents_of(state: NodeState, kind: TypeLayout) -> Iterator[StoredChunk]:
    """All documents of a type, in any order. A state that is being loaded has none, though its store has."""
    count = state.live_counts.get(kind.name, 0)
    if count == 0:
        return
    if count < state.live_count * _SCAN_SHARE:
        yield from (_read_stored(state, chunk) for chunk in _chunks(_lids_of(state, kind)))
        return
    types = state.document_types.array
    scanned = ((document.lid, gid, document) for gid, document in state.store.scan(in_passing=True))
    of_type = (found for found in scanned if types[found[0]] == kind.number)
    while chunk := list(islice(of_type, limits.LOG_BATCH_OPERATIONS)):
        yield chunk


def _lids_of(state: NodeState, kind: TypeLayout) -> Lids:
    """The live documents of a type, rising."""
    lids = lids_of(state.live.copy(state.limit))
    of_type: Lids = lids[state.document_types.array[lids] == kind.number]
    return of_type


def _chunks(lids: Lids) -> Iterator[Lids]:
    size = limits.LOG_BATCH_OPERATIONS
    return (lids[start : start + size] for start in range(0, len(lids), size))


def _read_stored(state: NodeState, lids: Lids) -> StoredChunk:
    """Read the documents of rows, in the order of their gids. Errors: InternalError where the store has others."""
    rows = sorted((state.gids.array[lid].tobytes(), lid) for lid in lids.tolist())
    documents = state.store.multi_get([gid for gid, _ in rows], in_passing=True)
    chunk: StoredChunk = []
    for (gid, lid), document in zip(rows, documents, strict=True):
        if document is None or document.lid != lid:
            raise InternalError(f"the document with gid {gid.hex()} has lid {lid} and is not in the store with it")
        chunk.append((lid, gid, document))
    return chunk
