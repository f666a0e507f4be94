"""Applies what is in the log of a content cluster to the state of a node, and shows it to readers.

    records of the log → apply → publish

Whatever changes the documents comes in here. But for a partition that comes from another node or has gone there
(`change_beside_log`), it comes from the log alone: records, or entries of records that this process has just logged.
`content/log/producer.py` is the other side, which may be on another machine. Nothing that is logged is ever taken out
again. What a record demands and its documents cannot give is refused by a rule (`content/state/apply.py`), so that
every replica refuses the same. Where this machine fails, such as by a full disk, the state is made again from the last
checkpoint and the log. One thread, the writer's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from paperwasp import limits
from paperwasp.content.checkpoints.checkpoint_writer import CheckpointWriter
from paperwasp.content.fault import Fault
from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.log.moved_records import operations_in
from paperwasp.content.log.records import LoggedBatch, LoggedLayout, decode_entries
from paperwasp.content.state.apply import UNFIT_ERRORS, apply_entries
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.relayout import change_layout
from paperwasp.content.state.replay import marks_after, replay
from paperwasp.content.views.current_state import CurrentState
from paperwasp.coordination.operation_log import OperationLog
from paperwasp.document.operations import Outcome
from paperwasp.errors import InternalError

_LOGGER: Final = logging.getLogger(__name__)


class UnfitEntries(Exception):
    """Entries of a batch, by their places, that no replica can apply: a defect of this program. They stay in the log
    and are to be refused there by a later record, so that every reader passes over them."""

    def __init__(self, places: Sequence[int]) -> None:
        super().__init__(places)
        self.places = places


class Consumer:
    """Applies the log to the current state, in its order, and publishes it."""

    def __init__(self, log: OperationLog, current: CurrentState, fault: Fault, checkpoints: CheckpointWriter) -> None:
        self._log = log
        self._current = current
        self._fault = fault
        self._checkpoints = checkpoints

    def check(self) -> None:
        """Errors: NoSpace or InternalError: why nothing may be logged and applied for now."""
        self._fault.check()

    def apply(self, batch: LoggedBatch) -> Sequence[Outcome]:
        """Apply and publish what was logged just now; return the outcome of each entry.

        Errors: NoSpace or InternalError, which say that it is applied later; UnfitEntries for those that can never be
        applied: once the log refuses them, `go_on` gives the outcomes.
        """
        current, entries = self._current, batch.entries
        try:
            applied = marks_after(current.state.applied, batch.records, batch.marks)
            outcomes = apply_entries(current.state, entries)
            current.state.applied = applied
            if current.state.imported:
                for record in batch.records:
                    current.state.note_own(record.partition, record.kind)
            current.publish()
        except Exception as error:
            return self._apply_again(error, batch)
        current.since_checkpoint.note(len(entries), sum([len(record.payload) for record in batch.records]))
        return outcomes

    def configure(self, configured: Configuration, logged: LoggedLayout) -> None:
        """Go on under these schemas, whose layout was logged just now, where it is another. Errors: as of `apply`;
        then readers see the schemas from before until the layout is applied."""
        current = self._current
        current.configure(configured, logged.layout)
        if logged.records:
            try:
                applied = marks_after(current.state.applied, logged.records, logged.marks)
                change_layout(current.state, logged.layout)
                current.state.applied = applied
            except Exception as error:
                self._apply_again(error)
                return
            current.since_checkpoint.note(1, sum([len(record.payload) for record in logged.records]))
        current.publish()

    def change_beside_log(self, change: Callable[[NodeState], object]) -> None:
        """Make a change to the documents that is not in the log, and a checkpoint with it; return when that counts.
        Operations wait, and no other checkpoint is being written. Errors: those of both; then all is as before,
        unless the disk failed when the checkpoint had its name already."""
        self._fault.check()
        self._checkpoints.interrupt()
        try:
            change(self._current.state)
            self._checkpoints.start().result()
        except Exception as error:
            self._fault.begin(error)
            self._make_again()
            raise
        self._current.publish()

    def take_over(self, compacted: NodeState) -> None:
        """Go on with the same documents in new rows, once the rest of the log is applied to them too."""
        self._fault.check()
        replay(self._log, compacted)
        if compacted.applied != self._current.state.applied:
            raise InternalError("the new rows are not of the operations that were applied")
        self._current.replace_state(compacted)
        self._current.since_checkpoint.limit = 0
        self._current.since_checkpoint.changes += 1

    def recover(self) -> None:
        """End a fault, where there is one. Errors: why it cannot; it is tried again later."""
        if self._fault.reason is not None:
            self._make_again()

    def go_on(self, operations: int) -> list[Outcome]:
        """End a fault, and return the outcomes of the last operations. Errors: that they are applied later."""
        try:
            return self._make_again(operations)
        except Exception as error:
            raise self._fault.of_logged() from error

    def _apply_again(self, cause: Exception, batch: LoggedBatch | None = None) -> list[Outcome]:
        """After an apply that went wrong half way: applies what was logged to a state that is made again. Gives the
        outcomes of a batch. Errors: UnfitEntries; that this is done later."""
        self._fault.begin(cause)
        try:
            return self._make_again(len(batch.entries) if batch else 0)
        except Exception as error:
            if batch is not None and isinstance(error.__cause__, UNFIT_ERRORS) and (unfit := self._unfit_places(batch)):
                raise UnfitEntries(unfit) from error
            raise self._fault.of_logged() from error

    def _unfit_places(self, batch: LoggedBatch) -> list[int]:
        """The entries of a batch, by place, that fail by themselves on the state that the log before them makes. None
        where something else fails, or too many do."""
        unfit: list[int] = []
        with suppress(Exception):  # the fault that has begun says why nothing is applied
            while (place := self._first_unfit(batch, unfit)) is not None and len(unfit) < limits.UNFIT_ENTRIES:
                unfit.append(place)
            return unfit if place is None else []
        return []

    def _first_unfit(self, batch: LoggedBatch, known: Sequence[int]) -> int | None:
        """The first entry that cannot be applied, of those that are not known as such."""
        state = self._checkpoints.state_before(batch)
        try:
            payloads = [operations_in(record) for record in batch.records]
            entries = [entry for payload in payloads for entry in decode_entries(payload, lambda: "the batch")]
            for place, entry in enumerate(entries):
                if place not in known:
                    try:
                        apply_entries(state, [entry])
                    except UNFIT_ERRORS:
                        _LOGGER.exception("%s is logged and cannot be applied; it is refused", entry.id)
                        return place
            return None
        finally:
            state.store.remove_when_unread()()

    def _make_again(self, operations: int = 0) -> list[Outcome]:
        """Go on with a state made from the checkpoint and the log. Return the outcomes of the last `operations`.
        Errors: why operations are refused until that succeeds."""
        try:
            state, outcomes = self._checkpoints.state_of_log(operations)
            self._current.replace_state(state)
        except Exception as error:
            raise self._fault.begin(error) from error
        self._fault.end()
        self._current.since_checkpoint.restart(self._current.state.limit, changes=1)
        return outcomes
