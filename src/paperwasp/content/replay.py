"""Recovery: applies what the operation log holds after a checkpoint."""

from __future__ import annotations

from paperwasp import limits
from paperwasp.cluster.operation_log import LogRecord, OperationLog, RecordKind
from paperwasp.content.apply import apply_entries
from paperwasp.content.layout import Layout
from paperwasp.content.node_state import NodeState
from paperwasp.content.records import Entry, decode_entries
from paperwasp.content.relayout import change_layout
from paperwasp.document.operations import Outcome
from paperwasp.errors import Corruption, OtherVersion


def replay(log: OperationLog, state: NodeState, last: int = 0) -> tuple[int, list[Outcome]]:
    """Applies every record after `state.applied`; gives the number of operations, and the outcomes of the `last` ones.

    Errors: Corruption by file and offset.
    """
    replaying = _Replay(state, last)
    for record in log.read(list(state.applied)):
        replaying.take(record)
    replaying.apply()
    return replaying.operations, replaying.outcomes


class _Replay:
    """Gathers entries of many records, so that they are applied in batches as they were at first."""

    def __init__(self, state: NodeState, last: int) -> None:
        self._state = state
        self._last = last
        self.outcomes: list[Outcome] = []
        self._entries: list[Entry] = []
        self._size_bytes = 0
        self.operations = 0

    def take(self, record: LogRecord) -> None:
        expected = self._state.applied[record.partition].sequence + 1
        if record.sequence != expected:
            message = f"record {record.sequence} of partition {record.partition} where {expected} is due"
            raise Corruption(f"{_where(record)}: {message}")
        if record.kind == RecordKind.CONFIGURATION:
            self.apply()
            self._configure(_layout_of(record))
        elif record.kind == RecordKind.OPERATIONS:
            self._entries.extend(decode_entries(record.payload, lambda: _where(record)))
            self._size_bytes += len(record.payload)
        else:
            raise Corruption(f"{_where(record)}: a record of unknown kind {record.kind}")
        self._state.applied[record.partition] = record.mark
        if len(self._entries) >= limits.LOG_BATCH_OPERATIONS or self._size_bytes >= limits.LOG_BATCH_BYTES:
            self.apply()

    def apply(self) -> None:
        outcomes = [*self.outcomes, *apply_entries(self._state, self._entries)]
        self.outcomes = outcomes[max(0, len(outcomes) - self._last) :]
        self.operations += len(self._entries)
        self._entries = []
        self._size_bytes = 0

    def _configure(self, layout: Layout) -> None:
        """Each partition has the same marker; the first one that is met is the one that counts."""
        if layout.types != self._state.layout.types:
            change_layout(self._state, layout)


def _layout_of(record: LogRecord) -> Layout:
    try:
        return Layout.from_bytes(record.payload)
    except OtherVersion as error:
        raise OtherVersion(f"{_where(record)}: {error.message}") from None


def _where(record: LogRecord) -> str:
    return f"{record.file}: offset {record.offset}"
