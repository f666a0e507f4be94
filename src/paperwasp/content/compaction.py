"""Gives all documents new lids, from 0 up, when most of the lids are dead: replacing documents leaves dead rows behind.

Done at a start, before anything is served: each live document is put anew, in the order of the lids, into a state
with new columns and a new index. What is stored stays as it is, also where an earlier layout wrote it: what a document
shows must never depend on when there was a start. Until the next checkpoint counts, a crash starts again from the old
one, so nothing can be lost. Cost: about what feeding the live documents costs, without the log.

Differs: Vespa moves documents to lower lids while it serves.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.content.apply import NodeState
from paperwasp.content.bitmaps import lids_of
from paperwasp.content.documents import type_of_id
from paperwasp.content.records import Entry, EntryKind
from paperwasp.errors import InternalError
from paperwasp.index.text_index import TextIndex
from paperwasp.store.document_store import StoredDocument

_LOGGER: Final = logging.getLogger(__name__)


def is_worthwhile(state: NodeState) -> bool:
    """Whether so many rows are dead that new lids are worth the work."""
    dead = state.limit - state.live_count
    return dead >= limits.DEAD_ROWS_LEAST and dead > state.limit * limits.DEAD_ROWS_SHARE


def compact(state: NodeState, index: TextIndex, index_directory: Path) -> NodeState:
    """The same documents with dense lids, in `index`, which must be empty. Takes over the store; `state` is used up."""
    _LOGGER.info("giving %d documents new rows: %d of %d are dead", state.live_count, _dead(state), state.limit)
    compacted = NodeState(index, state.store, index_directory)
    compacted.configure(state.layout)
    lids = lids_of(state.live.copy(state.limit))
    for start in range(0, len(lids), limits.LOG_BATCH_OPERATIONS):
        compacted.apply(_entries(state, lids[start : start + limits.LOG_BATCH_OPERATIONS]))
    compacted.applied = state.applied
    compacted.timestamp_us = state.timestamp_us
    compacted.conform_below = {name: int(np.searchsorted(lids, lid)) for name, lid in state.conform_below.items()}
    state.index.close()
    return compacted


def _dead(state: NodeState) -> int:
    return state.limit - state.live_count


def _entries(state: NodeState, lids: NDArray[Any]) -> list[Entry]:
    gids = [state.gids.array[lid].tobytes() for lid in lids]
    documents = state.store.multi_get(gids)
    return [_entry(state, int(lid), gid, found) for lid, gid, found in zip(lids, gids, documents, strict=True)]


def _entry(state: NodeState, lid: int, gid: bytes, document: StoredDocument | None) -> Entry:
    if document is None or document.lid != lid:
        raise InternalError(f"the document with gid {gid.hex()} has lid {lid} and is not in the store with it")
    document_type, body = type_of_id(document.id), state.stored_fields_of(document)
    values = state.codecs[document_type].decode_kept(body)
    timestamp_us = int(state.timestamps.array[lid])
    return Entry(EntryKind.PUT, document.id, gid, document_type, timestamp_us, body, fields=values)
