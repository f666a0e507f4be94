"""The content node: makes operations durable, applies them in order, and publishes what readers see.

    submit → bounded queue → writer: take what waits → encode by partition → log, one sync → apply → publish → replies

One writer thread owns the state. Readers take `view()`, a reference that the writer swaps after each batch, so an
operation that is answered is durable and is seen by the next query. A start loads the last checkpoint and applies the
log after it.
"""

from __future__ import annotations

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
from paperwasp.cluster.operation_log import FileOperationLog, Mark, NewRecord, OperationLog, RecordKind
from paperwasp.content import compaction
from paperwasp.content.apply import apply_entries
from paperwasp.content.checkpoint import Checkpoints, FrozenState, IndexFactory, Since
from paperwasp.content.directory_lock import lock_directory
from paperwasp.content.fault import Fault
from paperwasp.content.gathering import Control, Gatherer, OperationReply, Waiting
from paperwasp.content.late_operations import LateOperations
from paperwasp.content.layout import Layout
from paperwasp.content.node_state import NodeState
from paperwasp.content.publishing import NO_MODES, Configuration, view_of
from paperwasp.content.records import Entry, Mutate, Reindex, records_of
from paperwasp.content.references import Import, imports_of
from paperwasp.content.relayout import change_layout
from paperwasp.content.replay import replay
from paperwasp.content.view import View
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Operation, Outcome
from paperwasp.document.tensor_forms import DEFAULT_FORM
from paperwasp.env import SYSTEM, Environment, release_memory
from paperwasp.errors import InternalError, InvalidInput, Overload, PaperwaspError
from paperwasp.index.text_index import TextIndex
from paperwasp.schema.model import Schema
from paperwasp.store.document_store import DocumentStore
from paperwasp.yielding import yielding_if_large

_LOGGER: Final = logging.getLogger(__name__)


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
        self._lock = lock_directory(directory)
        self._log = log
        self._environment = environment
        self._queue: SimpleQueue[Waiting | Control] = SimpleQueue()
        self._gatherer = Gatherer(self._queue)
        self._make_index = make_index
        self._fault = Fault(environment)
        self._late = LateOperations()
        self._configured: Configuration | None = None
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
            self._since_checkpoint = Since(self._state.limit)
            if repair:
                self._state.rows.clear()  # the log may lack what rows after the checkpoint were made of
            self.replayed_operations = self._recover(repair)
            if compaction.is_worthwhile(self._state):
                self._compact()
        except BaseException:
            os.close(self._lock)
            raise
        self._publish()
        self._writer = Thread(target=self._run, name="content-writer", daemon=True)
        self._writer.start()

    def check(self, generation: int, schemas: Mapping[str, Schema], modes: Mapping[str, str] = NO_MODES) -> None:
        """Raises what `configure` would refuse these schemas with; changes nothing."""
        self._state.layout.changed(generation, schemas.values(), modes)

    def configure(
        self,
        generation: int,
        schemas: Mapping[str, Schema],
        modes: Mapping[str, str] = NO_MODES,
        distribution_key: int = 0,
    ) -> None:
        """Goes on under these schemas; returns when queries see them. Queries under way see what was before.

        Documents of types that are not among the schemas are gone. `modes`, by document type, where the mode is not
        "index": such documents are stored, and not searched. Errors: InvalidInput, NoSpace, with nothing changed.
        """
        self._control(lambda: self._configure(generation, schemas, modes, distribution_key))

    def submit(self, operation: Operation | Reindex | Mutate, reply: OperationReply, size_bytes: int = 0) -> None:
        """Queues an operation; `reply` gets its Outcome when it is durable and visible, or an error.

        Errors, raised here: Overload when too many wait; InvalidInput for an unknown document type; NoSpace or
        InternalError while the node cannot apply what it has logged.
        """
        self._fault.check()
        if self._is_stopping:
            raise InternalError("the content node is stopping")
        if operation.id.document_type not in self._state.layout.types:
            raise _no_type(operation.id.document_type)
        if self._queue.qsize() >= limits.OPERATION_QUEUE_LENGTH:
            raise Overload(f"{limits.OPERATION_QUEUE_LENGTH} operations are waiting already")
        waiting_bytes = self._submitted_bytes - self._answered_bytes
        if waiting_bytes > 0 and waiting_bytes + size_bytes > limits.OPERATION_QUEUE_BYTES:
            raise Overload(f"operations of {waiting_bytes} bytes are waiting already")
        self._submitted_bytes += size_bytes
        self._put((operation, reply, size_bytes))

    @property
    def fault(self) -> str | None:
        """Why operations are refused until what was logged can be applied; None: they are not."""
        return self._fault.reason

    def go_on(self) -> None:
        """Tries to end a fault where that is due; a failure is tried again later."""
        if self._fault.is_due:
            self._control(self._try_again)

    def waiting(self) -> int:
        """How many operations wait."""
        return self._queue.qsize()

    def view(self) -> View:
        """The view that is published now."""
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
        """Approximate sizes of what is kept, in bytes, by kind."""
        columns = sum(column.size_bytes() for column in list(self._state.columns.values()))
        return {
            "attributes": columns,
            "index_memory": self._state.index.memory_bytes(),
            "store": self._state.store.size_bytes(),
            "rows": self._state.rows.size_bytes(),
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

    def _compact(self) -> None:
        index_directory = self._checkpoints.new_index_directory()
        try:
            self._state = compaction.compact(self._state, self._make_index(index_directory), index_directory)
        except BaseException:
            self._state.store.close()
            raise
        self._since_checkpoint = Since(0)
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
            operations, _ = replay(self._log, self._state)
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
            if self._fault.reason is None and (
                self._since_checkpoint.is_due(self._state) or self._compactor.is_due(self._state)
            ):
                self._try_checkpoint()

    def _process(self, batch: Sequence[Waiting]) -> None:
        size_bytes = sum(size_bytes for _, _, size_bytes in batch)
        with yielding_if_large(size_bytes):
            waiting = self._encode(batch)
            replies = [reply for _, reply in waiting]
            entries = [entry for entry, _ in waiting]
            try:
                answers: Sequence[object] = self._log_and_apply(entries)
            except Exception as error:
                answers = [error] * len(replies)
        self._answered_bytes += size_bytes
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
                entry = self._late.entry(operation, kind, state.codecs[document_type], timestamp_us)
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
        self._fault.check()
        if not entries:
            return []
        records = records_of(entries)
        marks = self._log.append(records)
        try:
            outcomes: Sequence[Outcome] = apply_entries(self._state, entries)
            self._advance(records, marks)
            self._publish()
        except Exception as error:
            return self._recover_logged(error, len(entries))
        self._since_checkpoint.changes += len(entries)
        self._since_checkpoint.log_bytes += sum(len(record.payload) for record in records)
        return outcomes

    def _advance(self, records: Sequence[NewRecord], marks: Sequence[Mark]) -> None:
        for record, mark in zip(records, marks, strict=True):
            self._state.applied[record.partition] = mark

    def _recover_logged(self, cause: Exception, operations: int = 0) -> list[Outcome]:
        """As `_recover_state`, after records were logged and could not be applied. Where that fails they are taken out
        of the log again, so that what is refused has not happened: a client may repeat it."""
        self._fault.begin(cause)
        try:
            return self._recover_state(operations)
        except Exception:
            if not self._log.take_back():
                _LOGGER.error("what was refused stays in the log, and will be applied")
            raise

    def _recover_state(self, operations: int = 0) -> list[Outcome]:
        """After an apply that went wrong half way: goes on with a state made from the checkpoint and the log. Gives the
        outcomes of the last `operations`. Errors: why operations are refused until that succeeds."""
        try:
            state, outcomes = self._state_of_log(operations)
            self._go_on_with(state)
        except Exception as error:
            raise self._fault.begin(error) from error
        self._fault.end()
        self._since_checkpoint = Since(self._state.limit)
        self._since_checkpoint.changes = 1
        return outcomes

    def _state_of_log(self, operations: int) -> tuple[NodeState, list[Outcome]]:
        """The state that a start would make, beside the one that there is. Errors: those of a start."""
        self._compactor.cancel()
        if self._saver is not None:
            self._saver.join()
        state = self._checkpoints.load_aside(self._make_index)
        try:
            _, outcomes = replay(self._log, state, operations)
            state.store.flush()  # a store that cannot write says so only when its memory is full
        except BaseException:
            state.store.remove_when_unread()()
            raise
        return state, outcomes

    def _try_again(self) -> None:
        """Errors: why not; it is tried again later."""
        if self._fault.reason is not None and not self._is_stopping:
            self._recover_state()

    def _configure(
        self, generation: int, schemas: Mapping[str, Schema], modes: Mapping[str, str], distribution_key: int
    ) -> None:
        self._fault.check()
        before = self._configured
        self._configured = Configuration(
            generation, MappingProxyType(dict(schemas)), MappingProxyType(dict(modes)), distribution_key
        )
        try:
            self._apply_configuration(self._configured)
        except BaseException:
            self._configured = before
            raise
        self._publish()

    def _apply_configuration(self, configured: Configuration) -> None:
        layout = self._state.layout.changed(configured.generation, configured.schemas.values(), configured.modes)
        if layout.types != self._state.layout.types:
            self._late.note_change(self._state.layout, self._state.codecs)
            self._log_layout(layout)
        self._state.layout = layout
        self._imports = imports_of(configured.schemas.values())

    def _log_layout(self, layout: Layout) -> None:
        """The marker goes to every partition: whoever applies one of them alone meets it too."""
        payload = layout.to_bytes()
        records = [NewRecord(partition, payload, RecordKind.CONFIGURATION) for partition in range(limits.PARTITIONS)]
        marks = self._log.append(records)
        try:
            change_layout(self._state, layout)
        except Exception as error:
            self._recover_logged(error)
            return
        self._advance(records, marks)
        self._since_checkpoint.changes += 1
        self._since_checkpoint.log_bytes += len(payload) * len(records)

    def _publish(self) -> None:
        self._view = view_of(self._state, self._configured, self._imports)

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
            self._since_checkpoint = Since(self._state.limit)

    def _start_checkpoint(self, compacts: bool = False) -> Thread:
        """Freezes the state and leaves the writing to another thread, and with `compacts` what follows it."""
        self._fault.check()
        self._compactor.cancel()
        if self._saver is not None:
            self._saver.join()
        frozen = self._checkpoints.freeze(self._state)
        self._since_checkpoint = Since(self._state.limit)
        saver = Thread(target=self._save, args=(frozen, compacts), name="content-checkpoint", daemon=True)
        saver.start()
        self._saver = saver
        return saver

    def _last_checkpoint(self) -> None:
        if self._saver is not None:
            self._saver.join()
        if self._since_checkpoint.changes and self._fault.reason is None:
            self._try_checkpoint()

    def _save(self, frozen: FrozenState, compacts: bool) -> None:
        self._save_error = None
        self._compactor.join()
        try:
            self._checkpoints.write(frozen, self._state.index)
            self._log.trim(frozen.applied)
            release_memory()  # what the copies took
            if compacts and not self._is_stopping:
                self._compactor.start(lambda state: self._queue_control(lambda: self._take_over(state)))
        except Exception as error:
            self._save_error = error
            _LOGGER.exception("no checkpoint could be written; the log keeps everything since the last one")
            self._compactor.put_off()

    def _take_over(self, compacted: NodeState) -> None:
        """Goes on with the same documents in new rows, once the rest of the log is applied to them too."""
        self._fault.check()
        replay(self._log, compacted)
        if compacted.applied != self._state.applied:
            raise InternalError("the new rows are not of the operations that were applied")
        self._go_on_with(compacted)
        self._since_checkpoint.limit = 0
        self._since_checkpoint.changes += 1

    def _go_on_with(self, state: NodeState) -> None:
        """Takes a state of the same documents for the one that there is, which goes when nobody reads it any more."""
        before, self._state = self._state, state
        if self._configured is not None:
            self._apply_configuration(self._configured)
        self._publish()
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


def _no_type(document_type: str) -> InvalidInput:
    return InvalidInput(f"Document type {document_type} does not exist")
