"""Writes the checkpoints of a content node behind its writer, and has documents given new rows after one.

The writer freezes the state between two batches; a thread of its own writes it, trims the log up to there and, where
many rows are dead, begins to compact what it has written. Methods are called on the writer's thread,
`wait_for_compaction` and `stop_compacting` on any.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Final

from paperwasp.base.env import Environment, release_memory
from paperwasp.content.checkpoints.checkpoint import Checkpoints, FrozenState
from paperwasp.content.checkpoints.compaction import Compactor, HandOver
from paperwasp.content.fault import Fault
from paperwasp.content.log.records import LoggedBatch
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.replay import replay
from paperwasp.content.views.current_state import CurrentState
from paperwasp.coordination.operation_log import Mark, OperationLog
from paperwasp.core.object_memory import outside_arenas
from paperwasp.document.operations import Outcome
from paperwasp.errors import Conflict

_LOGGER: Final = logging.getLogger(__name__)


class CheckpointWriter:
    """One checkpoint at a time, and one compaction after it."""

    def __init__(
        self, checkpoints: Checkpoints, log: OperationLog, current: CurrentState, fault: Fault, environment: Environment
    ) -> None:
        self._checkpoints = checkpoints
        self._log = log
        self._current = current
        self._fault = fault
        self._compactor = Compactor(checkpoints, log, environment)
        self._thread: Thread | None = None
        self._kept: dict[object, tuple[int, Mark]] = {}
        """Marks by export: the log keeps the records of the partition after it."""

    def start_if_due(self, hand_over: HandOver) -> None:
        """Start a checkpoint where enough has changed, or enough rows are dead; then new rows follow it, and are
        handed over."""
        state = self._current.state
        if self._fault.reason is None and (
            self._current.since_checkpoint.is_due(state) or self._compactor.is_due(state)
        ):
            self._try(hand_over)

    def start(self, hand_over: HandOver | None = None) -> Future[None]:
        """Freeze the state and leave the writing to another thread, and with `hand_over` what follows it. The future is
        done when the checkpoint counts; its error is what writing it raised."""
        self._fault.check()
        self.interrupt()
        frozen = self._checkpoints.freeze(self._current.state)
        self._current.since_checkpoint.restart(self._current.state.limit)
        done: Future[None] = Future()
        thread = Thread(target=self._save, args=(frozen, hand_over, done), name="content-checkpoint", daemon=True)
        thread.start()
        self._thread = thread
        return done

    def interrupt(self) -> None:
        """Wait for a checkpoint that is being written, and give up what works with the last one. Until this thread
        starts another, nothing else writes to the index."""
        self._wait_for_thread()
        self._compactor.cancel()  # later: it may begin at the end of that checkpoint

    def write_last(self) -> None:
        """Start a checkpoint of what has changed, before the node is closed."""
        self._wait_for_thread()
        if self._current.since_checkpoint.changes and self._fault.reason is None:
            self._try(None)

    def state_of_log(self, operations: int) -> tuple[NodeState, list[Outcome]]:
        """The state that a start would make, beside the one that there is, and the outcomes of the last `operations`.
        Errors: those of a start."""
        return self._state_of_log(operations, {})

    def state_before(self, batch: LoggedBatch) -> NodeState:
        """The state that a start would make of the log without a batch, beside the one that there is. The caller
        removes its store. Errors: those of a start."""
        first: dict[int, int] = {}
        for record, mark in zip(batch.records, batch.marks, strict=True):
            first.setdefault(record.partition, mark.sequence)
        state, _ = self._state_of_log(0, first)
        return state

    def _state_of_log(self, operations: int, before: Mapping[int, int]) -> tuple[NodeState, list[Outcome]]:
        """Return the same of the records below the sequences in `before`, by partition."""
        self.interrupt()
        state = self._checkpoints.load_aside()
        try:
            outcomes = replay(self._log, state, operations, before).outcomes
            self._current.check_layout(state)
            state.store.flush()  # a store that cannot write says so only when its memory is full
        except BaseException:
            state.store.remove_when_unread()()
            raise
        return state, outcomes

    def open_last(self, partition: int) -> Future[tuple[NodeState, Callable[[], object]]]:
        """Load the state of the checkpoint that counts, without an index, beside the one that there is, on the thread
        that writes checkpoints: none is begun meanwhile. The log keeps the records of the partition after it until what
        comes with it is called. Errors, of the future: Corruption."""
        self.interrupt()
        opened: Future[tuple[NodeState, Callable[[], object]]] = Future()
        self._thread = Thread(target=self._load, args=(partition, opened), name="content-export", daemon=True)
        self._thread.start()
        return opened

    def check_not_exported(self, partition: int) -> None:
        """Errors: Conflict while somebody reads the partition for another node."""
        self._wait_for_thread()
        if partition in [kept for kept, _ in list(self._kept.values())]:
            raise Conflict(f"partition {partition} is being read for another node: close the export first")

    def _load(self, partition: int, opened: Future[tuple[NodeState, Callable[[], object]]]) -> None:
        try:
            state, kept = self._checkpoints.load_beside(), object()
            self._kept[kept] = (partition, state.applied[partition])
            opened.set_result((state, partial(self._kept.pop, kept, None)))
        except BaseException as error:
            opened.set_exception(error)

    def _forgettable(self, applied: Sequence[Mark]) -> list[Mark]:
        least = list(applied)
        for partition, mark in list(self._kept.values()):
            least[partition] = min(least[partition], mark)
        return least

    def wait_for_compaction(self) -> None:
        """Return when the checkpoint that was started and the compaction after it have ended, as they may."""
        self._wait_for_thread()
        self._compactor.join()

    def stop_compacting(self) -> None:
        """Give up the compaction under way; none is begun any more."""
        self._compactor.close()

    def _try(self, hand_over: HandOver | None) -> None:
        """Start one unless one is being written, or used. A failure leaves the last one in force, and is tried again
        later."""
        if (self._thread is not None and self._thread.is_alive()) or self._compactor.is_running:
            return
        try:
            self.start(hand_over if self._compactor.is_due(self._current.state) else None)
        except Exception:
            self._report_failure()
            self._current.since_checkpoint.restart(self._current.state.limit)

    def _save(self, frozen: FrozenState, hand_over: HandOver | None, done: Future[None]) -> None:
        try:
            self._compactor.join()
            with outside_arenas():
                self._checkpoints.write(frozen, self._current.state.index)
        except BaseException as error:
            self._report_failure()
            done.set_exception(error)
            return
        try:
            self._log.trim(self._forgettable(frozen.applied))
            release_memory()  # what the copies took
            if hand_over is not None:
                self._compactor.start(hand_over)
        except Exception:
            _LOGGER.exception("a checkpoint counts, and the log keeps what it could forget until the next one does")
            self._compactor.put_off()
        finally:
            done.set_result(None)

    def _report_failure(self) -> None:
        _LOGGER.exception("no checkpoint could be written; the log keeps everything since the last one")
        self._compactor.put_off()

    def _wait_for_thread(self) -> None:
        if self._thread is not None:
            self._thread.join()
