"""Gives all documents new lids, from 0 up, when most of the lids are dead: replacing documents leaves dead rows behind.

Each live document is put again, in the order of the lids, into a state with new columns and a new index, which so have
no rows, words and strings but those of the documents. What is stored stays as it is, also where an earlier layout wrote
it: what a document shows must never depend on when this was done. Until the next checkpoint counts, a crash starts
again from the old one, so nothing can be lost. Cost: about what feeding the live documents costs, without the log.

At a start it is done before anything is served, with the state that the start has made. While the node serves, a
`Compactor` makes a second state from the checkpoint that was just written, on a thread of its own and no more than half
of its time, has it catch up with the log, and hands it to the writer, which applies what is left and goes on with it.

Differs: Vespa moves documents to lower lids, one by one, while it serves.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment, release_memory
from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.log.records import Entry, EntryKind
from paperwasp.content.state.apply import apply_entries
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.relayout import change_layout
from paperwasp.content.state.replay import replay
from paperwasp.coordination.operation_log import OperationLog
from paperwasp.core.object_memory import outside_arenas
from paperwasp.errors import InternalError
from paperwasp.storage.attributes.tensor import TensorColumn
from paperwasp.storage.documents.document_store import StoredDocument
from paperwasp.storage.index.text_index import TextIndex

_LOGGER: Final = logging.getLogger(__name__)
_ROUNDS: Final = 2
"""How often a second state catches up with the log before the writer does the rest, while operations wait."""


def is_worthwhile(state: NodeState) -> bool:
    """Return whether enough rows, or enough bytes of them, are dead for a start to give new lids."""
    return _has_dead_rows(state, limits.DEAD_ROWS_LEAST) or _has_dead_bytes(state)


def is_worthwhile_behind(state: NodeState) -> bool:
    """Return whether enough rows or bytes are dead, or enough strings unused, for new lids to be worth the work
    while the node serves."""
    least = limits.DEAD_ROWS_SERVED_LEAST
    spare = max(least, state.limit)
    if _has_dead_rows(state, least) or _has_dead_bytes(state):
        return True
    return max([column.spare_strings() for column in state.columns.values()], default=0) >= spare


def _has_dead_rows(state: NodeState, least: int) -> bool:
    return (dead := state.limit - state.live_count) >= least and dead > state.limit * limits.DEAD_ROWS_SHARE


def compact(
    state: NodeState, index: TextIndex, index_directory: Path, pause: Callable[[], None] = lambda: None
) -> NodeState:
    """Return the same documents with dense lids, in `index`, which must be empty. The store is taken over; `state` is
    used up.

    `pause` is called now and then.
    """
    _LOGGER.info(
        "giving %d documents new rows: %d of %d are dead", state.live_count, state.limit - state.live_count, state.limit
    )
    state.settle()
    compacted = NodeState(index, state.store, index_directory)
    change_layout(compacted, state.layout)
    lids = lids_of(state.live.copy(state.limit))
    for start in range(0, len(lids), limits.COMPACTION_DOCUMENTS):
        apply_entries(compacted, _entries(state, lids[start : start + limits.COMPACTION_DOCUMENTS]))
        if index.memory_bytes() >= limits.CHECKPOINT_INDEX_BYTES:
            index.flush(index.freeze())
            index.keep_last()  # no checkpoint names any of it yet
        pause()
    for key, column in compacted.columns.items():
        before = state.columns[key]
        if isinstance(column, TensorColumn) and isinstance(before, TensorColumn):
            column.adopt_graph(before, lids)
    compacted.applied = state.applied
    compacted.imported = state.imported
    compacted.timestamp_us = state.timestamp_us
    compacted.conform_below = {name: int(np.searchsorted(lids, lid)) for name, lid in state.conform_below.items()}
    state.index.close()
    return compacted


def _has_dead_bytes(state: NodeState) -> bool:
    """Return whether enough bytes are dead in memory, or in the files of index and rows on disk."""
    dead = state.dead_bytes if state.dead_bytes >= limits.DEAD_BYTES_MOST else state.dead_bytes - state.given_back_bytes
    return dead >= limits.DEAD_BYTES_LEAST and dead > (state.live_bytes + dead) * limits.DEAD_ROWS_SHARE


HandOver = Callable[[NodeState], Future[None]]
"""Has the writer go on with a state. Until the writer begins with that, the future can be cancelled."""


class Compactor:
    """New lids while a node serves, by one attempt after the other.

    An attempt begins with the checkpoint that was just written, and ends at once where another is to be written: that
    would take away from the log what the attempt still needs. So whoever writes checkpoints calls `cancel` before.
    """

    def __init__(self, checkpoints: Checkpoints, log: OperationLog, environment: Environment = SYSTEM) -> None:
        self._checkpoints = checkpoints
        self._log = log
        self._environment = environment
        self._thread: Thread | None = None
        self._is_closed = False
        self._cancelled = Event()
        self._handed: Future[None] | None = None
        self._lock = Lock()
        """Guards the two above."""
        self._begun_ns = 0
        self._not_before_ns = 0

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def is_due(self, state: NodeState) -> bool:
        """Return whether a checkpoint should be written to begin one. After a failure, not at once."""
        return is_worthwhile_behind(state) and self._environment.monotonic_ns() >= self._not_before_ns

    def put_off(self) -> None:
        """Wait before the next attempt, after one or the checkpoint before it has failed."""
        self._not_before_ns = self._environment.monotonic_ns() + int(limits.CHORE_RETRY_SECONDS * 1e9)

    def start(self, hand_over: HandOver) -> None:
        """Begin with the checkpoint that counts; `hand_over` takes what has caught up with all but the last of the
        log. The attempt before must have ended. Nothing where it is closed."""
        if self._is_closed:
            return
        self._cancelled, self._handed = Event(), None
        self._thread = Thread(
            target=self._run, args=(hand_over, self._cancelled), name="content-compaction", daemon=True
        )
        self._thread.start()

    def cancel(self) -> None:
        """Soon gives up a compaction that has begun, unless the writer has taken it over already. Any thread."""
        with self._lock:
            self._cancelled.set()
            if self._handed is not None:
                self._handed.cancel()

    def close(self) -> None:
        """Cancel, and begin nothing any more."""
        self._is_closed = True
        self.cancel()

    def join(self) -> None:
        """Wait for the end of what was begun."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, hand_over: HandOver, cancelled: Event) -> None:
        with outside_arenas():  # all documents are decoded, also the large ones
            self._attempt(hand_over, cancelled)

    def _attempt(self, hand_over: HandOver, cancelled: Event) -> None:
        state = None
        try:
            state = self._checkpoints.load_beside()
            self._begun_ns = self._environment.monotonic_ns()
            directory = state.index_directory
            state = compact(state, self._checkpoints.make_index(directory), directory, lambda: self._pause(cancelled))
            for _ in range(_ROUNDS):
                _raise_if(cancelled)
                replay(self._log, state)
            with self._lock:
                _raise_if(cancelled)
                self._handed = handed = hand_over(state)
            handed.result()
            release_memory()  # what the rows from before took, in pieces of many sizes
        except Exception as error:
            if state is not None:
                state.store.remove_when_unread()()  # nobody has seen it
                shutil.rmtree(state.index_directory, ignore_errors=True)
            if not cancelled.is_set():
                self.put_off()
                _LOGGER.exception("documents could not be given new rows; that is tried again", exc_info=error)

    def _pause(self, cancelled: Event) -> None:
        """Pause for as long as the work since the last pause took."""
        cancelled.wait((self._environment.monotonic_ns() - self._begun_ns) / 1e9)
        _raise_if(cancelled)
        self._begun_ns = self._environment.monotonic_ns()


def _raise_if(cancelled: Event) -> None:
    if cancelled.is_set():
        raise InternalError("given up: a checkpoint or a stop came first")


def _entries(state: NodeState, lids: NDArray[Any]) -> list[Entry]:
    gids = [state.gids.array[lid].tobytes() for lid in lids]
    documents = state.store.multi_get(gids, in_passing=True)
    return [_entry(state, int(lid), gid, found) for lid, gid, found in zip(lids, gids, documents, strict=True)]


def _entry(state: NodeState, lid: int, gid: bytes, document: StoredDocument | None) -> Entry:
    if document is None or document.lid != lid:
        raise InternalError(f"the document with gid {gid.hex()} has lid {lid} and is not in the store with it")
    document_type, body = type_of_id(document.id), state.stored_fields_of(document)
    values = state.codecs[document_type].decode_kept(body)
    timestamp_us = int(state.timestamps.array[lid])
    return Entry(EntryKind.PUT, document.id, gid, document_type, timestamp_us, body, fields=values, form=document.form)
