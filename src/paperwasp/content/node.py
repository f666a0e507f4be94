"""The content node: makes operations durable, applies them in order, and publishes what readers see.

    submit → bounded queue → writer: take what waits → encode by partition → log, one sync → apply → publish → replies

One writer thread owns the state. Readers take `view()`, a reference that the writer swaps after each batch, so an
operation that is answered is durable and is seen by the next query. A start loads the last checkpoint and applies the
log after it.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import Final
from weakref import finalize

from paperwasp import limits
from paperwasp.attribute import ColumnView
from paperwasp.cluster.operation_log import FileOperationLog, Mark, NewRecord, OperationLog, RecordKind
from paperwasp.content import compaction
from paperwasp.content.apply import NodeState
from paperwasp.content.bitmaps import open_ended
from paperwasp.content.checkpoint import Checkpoints, FrozenState, IndexFactory
from paperwasp.content.gathering import Control, Gatherer, OperationReply, Waiting
from paperwasp.content.layout import Layout
from paperwasp.content.records import Entry, Mutate, Reindex, encode_entries, entry_of
from paperwasp.content.references import Import, add_imported, imports_of
from paperwasp.content.replay import replay
from paperwasp.content.view import View
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome
from paperwasp.document.tensor_forms import DEFAULT_FORM
from paperwasp.env import SYSTEM, Environment
from paperwasp.errors import Conflict, InternalError, InvalidInput, Overload, PaperwaspError
from paperwasp.index.text_index import TextIndex
from paperwasp.schema.model import Schema
from paperwasp.store.document_store import DocumentStore

_LOGGER: Final = logging.getLogger(__name__)

_NO_MODES: Final[Mapping[str, str]] = MappingProxyType({})


class ContentNode:
    """All documents of one content cluster, in one data directory. The log is the caller's, to open and to close."""

    def __init__(
        self,
        directory: Path,
        log: OperationLog,
        make_index: IndexFactory = TextIndex,
        *,
        repair: bool = False,
        environment: Environment = SYSTEM,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = _lock_directory(directory)
        self._log = log
        self._environment = environment
        self._queue: SimpleQueue[Waiting | Control] = SimpleQueue()
        self._gatherer = Gatherer(self._queue)
        self._failure: str | None = None
        self._schemas: Mapping[str, Schema] = MappingProxyType({})
        self._modes: Mapping[str, str] = MappingProxyType({})
        self._distribution_key = 0
        self._imports: tuple[Import, ...] = ()
        self._saver: Thread | None = None
        self._save_error: Exception | None = None
        self._store_removals: list[finalize[..., DocumentStore]] = []
        """Of the stores from before the documents were given new rows, while somebody may read them."""
        self._is_stopping = False
        self._has_ended = False
        # What waits is their difference: each is written by one thread only.
        self._submitted_bytes = 0
        self._answered_bytes = 0
        try:
            self._checkpoints = Checkpoints(directory)
            self._compactor = compaction.Compactor(self._checkpoints, log, make_index, environment)
            self._state = self._checkpoints.load(make_index)
            self._since_checkpoint = _Since(self._state.limit)
            self.replayed_operations = self._recover(repair)
            if compaction.is_worthwhile(self._state):
                self._compact(make_index)
        except BaseException:
            os.close(self._lock)
            raise
        self._view = self._make_view()
        self._writer = Thread(target=self._run, name="content-writer", daemon=True)
        self._writer.start()

    def check(self, generation: int, schemas: Mapping[str, Schema], modes: Mapping[str, str] = _NO_MODES) -> None:
        """Raises what `configure` would refuse these schemas with; changes nothing."""
        self._state.layout.changed(generation, schemas.values(), modes)

    def configure(
        self,
        generation: int,
        schemas: Mapping[str, Schema],
        modes: Mapping[str, str] = _NO_MODES,
        distribution_key: int = 0,
    ) -> None:
        """Goes on under these schemas; returns when queries see them. Queries under way see what was before.

        Documents of types that are not among the schemas are gone. `modes`, by document type, where the mode is not
        "index": such documents are stored, and not searched. Errors: InvalidInput, NoSpace, with nothing changed.
        """
        self._control(lambda: self._configure(generation, schemas, modes, distribution_key))

    def submit(self, operation: Operation | Reindex | Mutate, reply: OperationReply, size_bytes: int = 0) -> None:
        """Queues an operation; `reply` gets its Outcome when it is durable and visible, or an error.

        Errors, raised here: Overload when too many wait; InvalidInput for an unknown document type; InternalError
        when the node can apply nothing more.
        """
        if self._failure is not None or self._is_stopping:
            raise InternalError(self._failure or "the content node is stopping")
        if operation.id.document_type not in self._state.layout.types:
            raise _no_type(operation.id.document_type)
        if self._queue.qsize() >= limits.OPERATION_QUEUE_LENGTH:
            raise Overload(f"{limits.OPERATION_QUEUE_LENGTH} operations are waiting already")
        waiting_bytes = self._submitted_bytes - self._answered_bytes
        if waiting_bytes > 0 and waiting_bytes + size_bytes > limits.OPERATION_QUEUE_BYTES:
            raise Overload(f"operations of {waiting_bytes} bytes are waiting already")
        self._submitted_bytes += size_bytes
        self._put((operation, reply, size_bytes))

    def waiting(self) -> int:
        """How many operations wait."""
        return self._queue.qsize()

    def view(self) -> View:
        """What is published now."""
        return self._view

    def get(
        self, id: DocumentId, fields: Container[str] | None = None, tensor_form: str = DEFAULT_FORM
    ) -> bytes | None:
        """The JSON object of a document's fields as they were fed, or of some; None: there is no such document."""
        view = self._view
        document = view.store.get(id.gid)
        # Of the view after that: a view from before would not know of a change in place that came between.
        if (later := self._view).store is not view.store:
            return self.get(id, fields, tensor_form)
        if document is None or id.document_type not in later.layout.types:
            return None
        return later.shown_fields_of(document, fields, tensor_form)

    def sizes_bytes(self) -> dict[str, int]:
        """Of what is kept, by kind; about."""
        columns = sum(column.size_bytes() for column in list(self._state.columns.values()))
        return {
            "attributes": columns,
            "index_memory": self._state.index.memory_bytes(),
            "store": self._state.store.size_bytes(),
        }

    def checkpoint(self) -> None:
        """Writes a checkpoint now; returns when it counts. Errors: what writing it raised."""
        self._control(self._start_checkpoint)
        if self._saver is not None:
            self._saver.join()
        if self._save_error is not None:
            raise self._save_error

    def compact(self) -> None:
        """Gives all documents new rows now, beside the writer; returns when the attempt has ended."""
        self._control(lambda: self._start_checkpoint(compacts=True))
        if self._saver is not None:
            self._saver.join()
        self._compactor.join()

    def prune(self, before_us: int, most: int) -> int:
        """Forgets removals from before that time, oldest first; gives how many were looked at: `most` says that there
        may be more. Runs between two batches. Not logged: whoever reads hides what is that old.
        """
        looked_at: list[int] = []
        self._control(lambda: looked_at.append(self._state.store.prune(before_us, most)))
        return looked_at[0]

    def stop(self) -> None:
        """Applies what is queued, writes a checkpoint, closes. The log stays open."""
        if self._is_stopping:
            return
        self._is_stopping = True
        self._compactor.cancel()
        self._control(self._last_checkpoint)
        self._queue.put(Control(None))
        self._writer.join()
        self._has_ended = True
        self._refuse_rest()
        self._compactor.join()
        if self._saver is not None:
            self._saver.join()
        self._state.store.close()
        self._state.index.close()
        for remove_store in self._store_removals:
            remove_store()
        os.close(self._lock)

    def _compact(self, make_index: IndexFactory) -> None:
        index_directory = self._checkpoints.new_index_directory()
        try:
            self._state = compaction.compact(self._state, make_index(index_directory), index_directory)
        except BaseException:
            self._state.store.close()
            raise
        self._since_checkpoint = _Since(0)
        self._since_checkpoint.changes = 1

    def _put(self, item: Waiting | Control) -> None:
        """Queues for the writer. What comes after its end is answered here."""
        self._queue.put(item)
        if self._has_ended:
            self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Answers what came while the node was stopping."""
        error = InternalError("the content node is stopping")
        with suppress(Empty):
            while True:
                item = self._queue.get_nowait()
                if isinstance(item, Control):
                    item.refuse(error)
                else:
                    item[1](error)

    def _recover(self, repair: bool) -> int:
        """Applies the log after the checkpoint; gives the number of operations."""
        try:
            if repair and isinstance(self._log, FileOperationLog):
                self._log.skip_to(self._state.applied)
            operations = replay(self._log, self._state)
        except BaseException:
            self._state.store.close()
            raise
        self._since_checkpoint.changes = operations
        return operations

    # ------------------------------------------------------------------------------------------- the writer thread

    def _run(self) -> None:
        while True:
            batch, control = self._gatherer.take()
            if batch:
                self._process(batch)
            if control is not None:
                if control.action is None:
                    return
                control.run()
            if self._failure is None and (
                self._since_checkpoint.is_due(self._state) or self._compactor.is_due(self._state)
            ):
                self._try_checkpoint()

    def _process(self, batch: Sequence[Waiting]) -> None:
        waiting = self._encode(batch)
        replies = [reply for _, reply in waiting]
        entries = [entry for entry, _ in waiting]
        try:
            answers: Sequence[object] = self._log_and_apply(entries)
        except Exception as error:
            answers = [error] * len(replies)
        self._answered_bytes += sum(size_bytes for _, _, size_bytes in batch)
        for reply, answer in zip(replies, answers, strict=True):
            reply(answer)

    def _encode(self, batch: Sequence[Waiting]) -> list[tuple[Entry, OperationReply]]:
        """Entries in the order of the log: by partition, then as they came. Refused ones are answered."""
        state, last = self._state, self._state.timestamp_us
        first_us = max(self._environment.time_ns() // 1000, last + 1)
        by_partition: list[list[tuple[Entry, OperationReply]]] = [[] for _ in range(limits.PARTITIONS)]
        for timestamp_us, (operation, reply, _) in enumerate(batch, first_us):
            document_type = operation.id.document_type
            kind = state.layout.types.get(document_type)
            if kind is None:
                reply(_no_type(document_type))
                continue
            try:
                entry = entry_of(operation, kind, state.codecs[document_type], timestamp_us)
            except PaperwaspError as error:
                reply(error)
            except (TypeError, ValueError) as error:
                reply(InvalidInput(f"{operation.id}: {error}"))
            except Exception as error:  # a defect costs its own operation, and never the writer
                _LOGGER.exception("%s could not be encoded", operation.id)
                reply(InternalError(f"{operation.id}: {error}"))
            else:
                by_partition[operation.id.partition].append((entry, reply))
        return [waiting for partition in by_partition for waiting in partition]

    def _log_and_apply(self, entries: Sequence[Entry]) -> Sequence[Outcome]:
        if self._failure is not None:
            raise InternalError(self._failure)
        if not entries:
            return []
        records = _records_of(entries)
        marks = self._log.append(records)
        try:
            outcomes = self._state.apply(entries)
            self._advance(records, marks)
            self._view = self._make_view()
        except Exception as error:
            self._fail(error)
            raise InternalError(f"the content node could not apply what it had logged: {error}") from error
        self._since_checkpoint.changes += len(entries)
        self._since_checkpoint.log_bytes += sum(len(record.payload) for record in records)
        return outcomes

    def _advance(self, records: Sequence[NewRecord], marks: Sequence[Mark]) -> None:
        for record, mark in zip(records, marks, strict=True):
            self._state.applied[record.partition] = mark

    def _fail(self, error: Exception) -> None:
        """After an apply that went wrong half way nothing more is taken: a restart applies the log anew."""
        _LOGGER.exception("the content node could not apply what it had logged", exc_info=error)
        self._failure = f"the content node has failed and must be restarted: {error}"

    def _configure(
        self, generation: int, schemas: Mapping[str, Schema], modes: Mapping[str, str], distribution_key: int
    ) -> None:
        if self._failure is not None:
            raise InternalError(self._failure)
        layout = self._state.layout.changed(generation, schemas.values(), modes)
        if layout.types != self._state.layout.types:
            self._log_layout(layout)
        self._state.layout = layout
        self._schemas, self._modes = MappingProxyType(dict(schemas)), MappingProxyType(dict(modes))
        self._distribution_key = distribution_key
        self._imports = imports_of(schemas.values())
        self._view = self._make_view()

    def _log_layout(self, layout: Layout) -> None:
        """The marker goes to every partition: whoever applies one of them alone meets it too."""
        payload = layout.to_bytes()
        records = [NewRecord(partition, payload, RecordKind.CONFIGURATION) for partition in range(limits.PARTITIONS)]
        marks = self._log.append(records)
        try:
            self._state.configure(layout)
        except Exception as error:
            self._fail(error)
            raise
        self._advance(records, marks)
        self._since_checkpoint.changes += 1
        self._since_checkpoint.log_bytes += len(payload) * len(records)

    def _make_view(self) -> View:
        state = self._state
        state.pad_columns()
        live = state.live.copy(state.limit)
        # The index drops the dead when it merges, and must not take rows that are being added for dead.
        state.index.live = open_ended(live, state.limit)
        columns: dict[tuple[str, str], ColumnView] = {key: column.snapshot() for key, column in state.columns.items()}
        add_imported(columns, self._imports, state.references.snapshot(state.gid_map))
        return View(
            limit=state.limit,
            live=live,
            live_count=state.live_count,
            live_counts=MappingProxyType(dict(state.live_counts)),
            index=state.index.snapshot(),
            columns=columns,
            document_types=state.document_types.view(),
            gids=state.gids.view(),
            changed=state.changed.view(),
            timestamps=state.timestamps.view(),
            store=state.store,
            layout=state.layout,
            schemas=self._schemas,
            codecs=state.codecs,
            conform_below=MappingProxyType(dict(state.conform_below)),
            modes=self._modes,
            timestamp_us=state.timestamp_us,
            distribution_key=self._distribution_key,
        )

    # -------------------------------------------------------------------------------------------------- checkpoints

    def _try_checkpoint(self) -> None:
        """Starts one unless one is being written, or used. A failure leaves the last one in force, and is tried again
        later."""
        if (self._saver is not None and self._saver.is_alive()) or self._compactor.is_running:
            return
        try:
            self._start_checkpoint(compacts=self._compactor.is_due(self._state) and not self._is_stopping)
        except Exception:
            _LOGGER.exception("no checkpoint could be written; the log keeps everything since the last one")
            self._compactor.put_off()
            self._since_checkpoint = _Since(self._state.limit)

    def _start_checkpoint(self, compacts: bool = False) -> Thread:
        """Freezes the state and leaves the writing to another thread, and with `compacts` what follows it."""
        self._compactor.cancel()
        if self._saver is not None:
            self._saver.join()
        frozen = self._checkpoints.freeze(self._state)
        self._since_checkpoint = _Since(self._state.limit)
        saver = Thread(target=self._save, args=(frozen, compacts), name="content-checkpoint", daemon=True)
        saver.start()
        self._saver = saver
        return saver

    def _last_checkpoint(self) -> None:
        if self._saver is not None:
            self._saver.join()
        if self._since_checkpoint.changes and self._failure is None:
            self._try_checkpoint()

    def _save(self, frozen: FrozenState, compacts: bool) -> None:
        self._save_error = None
        self._compactor.join()
        try:
            self._checkpoints.write(frozen, self._state.index)
            self._log.trim(frozen.applied)
            if compacts and not self._is_stopping:
                self._compactor.start(lambda state: self._queue_control(lambda: self._take_over(state)))
        except Exception as error:
            self._save_error = error
            _LOGGER.exception("no checkpoint could be written; the log keeps everything since the last one")
            self._compactor.put_off()

    def _take_over(self, compacted: NodeState) -> None:
        """Goes on with the same documents in new rows, once the rest of the log is applied to them too."""
        if self._failure is not None:
            raise InternalError(self._failure)
        replay(self._log, compacted)
        if compacted.applied != self._state.applied:
            raise InternalError("the new rows are not of the operations that were applied")
        compacted.layout = self._state.layout
        before, self._state = self._state, compacted
        self._view = self._make_view()
        self._since_checkpoint.limit = 0
        self._since_checkpoint.changes += 1
        self._store_removals = [removal for removal in self._store_removals if removal.alive]
        self._store_removals.append(before.store.remove_when_unread())
        before.index.close()

    def _control(self, action: Callable[[], object]) -> None:
        """Runs `action` on the writer thread, between two batches. Errors: what it raises."""
        self._queue_control(action).result()

    def _queue_control(self, action: Callable[[], object]) -> Future[None]:
        control = Control(action)
        self._put(control)
        return control.done


class _Since:
    """What has happened since the last checkpoint."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.changes = 0
        self.log_bytes = 0

    def is_due(self, state: NodeState) -> bool:
        return (
            state.limit - self.limit >= limits.CHECKPOINT_DOCUMENTS
            or self.log_bytes >= limits.CHECKPOINT_LOG_BYTES
            or self.changes >= limits.CHECKPOINT_OPERATIONS
            or state.index.memory_bytes() >= limits.CHECKPOINT_INDEX_BYTES
        )


def _no_type(document_type: str) -> InvalidInput:
    return InvalidInput(f"Document type {document_type} does not exist")


def _records_of(entries: Sequence[Entry]) -> list[NewRecord]:
    """One record for each run of entries of one partition."""
    records: list[NewRecord] = []
    start = 0
    for place in range(1, len(entries) + 1):
        partition = entries[start].partition
        if place == len(entries) or entries[place].partition != partition:
            records.append(NewRecord(partition, encode_entries(entries[start:place])))
            start = place
    return records


def _lock_directory(directory: Path) -> int:
    """Errors: Conflict when another process, or node, has it."""
    descriptor = os.open(directory / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Conflict(f"{directory} is in use by another process") from None
    return descriptor
