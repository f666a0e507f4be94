"""Changes the state of a content node: by what is in the log, and by nothing else.

    log, one sync → apply → publish

Operations, layouts and compacted states all come in here, so that the order is in one place: what is published was
applied, what was applied is in the log. Where applying fails, the state is made again from the last checkpoint and the
log. One thread, the writer's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from paperwasp import limits
from paperwasp.cluster.operation_log import Mark, NewRecord, OperationLog, RecordKind
from paperwasp.content.apply import apply_entries
from paperwasp.content.checkpoint_writer import CheckpointWriter
from paperwasp.content.current_state import CurrentState
from paperwasp.content.fault import Fault
from paperwasp.content.late_operations import LateOperations
from paperwasp.content.layout import Layout
from paperwasp.content.node_state import NodeState
from paperwasp.content.publishing import Configuration
from paperwasp.content.records import Logged, records_of
from paperwasp.content.relayout import change_layout, try_layout
from paperwasp.content.replay import replay
from paperwasp.document.operations import Outcome
from paperwasp.errors import InternalError

_LOGGER: Final = logging.getLogger(__name__)


class StateMachine:
    """Logs changes, applies them to the current state, and publishes it."""

    def __init__(
        self,
        log: OperationLog,
        current: CurrentState,
        fault: Fault,
        late: LateOperations,
        checkpoints: CheckpointWriter,
    ) -> None:
        self._log = log
        self._current = current
        self._fault = fault
        self._late = late
        self._checkpoints = checkpoints

    def log_and_apply(self, entries: Sequence[Logged]) -> Sequence[Outcome]:
        """Makes entries durable, applies and publishes them. Errors: why they are neither logged nor applied."""
        self._fault.check()
        if not entries:
            return []
        current, records = self._current, records_of(entries)
        marks = self._log.append(records)
        try:
            outcomes: Sequence[Outcome] = apply_entries(current.state, entries)
            self._advance(records, marks)
            current.publish()
        except Exception as error:
            return self._recover_logged(error, len(entries))
        current.since_checkpoint.note(len(entries), sum(len(record.payload) for record in records))
        return outcomes

    def configure(self, configured: Configuration) -> None:
        """Goes on under these schemas. Errors: InvalidInput, NoSpace, with nothing changed."""
        self._fault.check()
        before = self._current.configured
        self._current.configured = configured
        try:
            self._apply_configuration(configured)
        except BaseException:
            self._current.configured = before
            raise
        self._current.publish()

    def take_over(self, compacted: NodeState) -> None:
        """Goes on with the same documents in new rows, once the rest of the log is applied to them too."""
        self._fault.check()
        replay(self._log, compacted)
        if compacted.applied != self._current.state.applied:
            raise InternalError("the new rows are not of the operations that were applied")
        self._go_on_with(compacted)
        self._current.since_checkpoint.limit = 0
        self._current.since_checkpoint.changes += 1

    def recover(self) -> None:
        """Ends a fault, where there is one. Errors: why it cannot; it is tried again later."""
        if self._fault.reason is not None:
            self._recover_state()

    def _advance(self, records: Sequence[NewRecord], marks: Sequence[Mark]) -> None:
        for record, mark in zip(records, marks, strict=True):
            self._current.state.applied[record.partition] = mark

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
            state, outcomes = self._checkpoints.state_of_log(operations)
            self._go_on_with(state)
        except Exception as error:
            raise self._fault.begin(error) from error
        self._fault.end()
        self._current.since_checkpoint.restart(self._current.state.limit, changes=1)
        return outcomes

    def _go_on_with(self, state: NodeState) -> None:
        """Takes a state of the same documents for the one that there is, which goes when nobody reads it any more."""
        before, self._current.state = self._current.state, state
        if self._current.configured is not None:
            self._apply_configuration(self._current.configured)
        self._current.publish()
        self._current.retire(before)

    def _apply_configuration(self, configured: Configuration) -> None:
        state = self._current.state
        layout = state.layout.changed(configured.generation, configured.schemas.values(), configured.modes)
        if layout.types != state.layout.types:
            try_layout(state, layout)
            self._late.note_change(state.layout, state.codecs)
            self._log_layout(layout)
        self._current.set_layout(layout, configured)

    def _log_layout(self, layout: Layout) -> None:
        """The marker goes to every partition: whoever applies one of them alone meets it too."""
        payload = layout.to_bytes()
        records = [NewRecord(partition, payload, RecordKind.CONFIGURATION) for partition in range(limits.PARTITIONS)]
        marks = self._log.append(records)
        try:
            change_layout(self._current.state, layout)
        except Exception as error:
            self._recover_logged(error)
            return
        self._advance(records, marks)
        self._current.since_checkpoint.note(1, len(payload) * len(records))
