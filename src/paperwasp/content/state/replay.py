"""Applies the records of an operation log to a state: each once, in the order of its partition.

A record is applied if it follows the last applied one of its partition. The same record again is passed over. All else
is `Corruption`, with file and offset: a gap, or another record under a sequence that was applied. Operations of one
partition depend on no other, so it does not matter how records of different partitions are mixed, but for changes of
the layout: their marker is in every partition, and a partition that has come to it waits for the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.log.moved_records import read_imported
from paperwasp.content.log.records import Entry, decode_entries, read_refusal
from paperwasp.content.state.apply import UNFIT_ERRORS, apply_entries, has_unfit
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.relayout import change_layout
from paperwasp.coordination.operation_log import LogRecord, Mark, NewRecord, OperationLog, RecordKind
from paperwasp.document.operations import Outcome
from paperwasp.errors import Corruption, OtherVersion

_NO_END: Final[Mapping[int, int]] = MappingProxyType({})
_NONE_REFUSED: Final[Mapping[tuple[int, int], Sequence[int]]] = MappingProxyType({})


def replay(log: OperationLog, state: NodeState, last: int = 0, before: Mapping[int, int] = _NO_END) -> Replay:
    """Apply every record after `state.applied`; return what was done, with the outcomes of the `last` operations.
    Those of a partition in `before` only below that sequence.

    Errors: Corruption by file and offset.
    """
    replaying = Replay(state, last, refused_entries(log, state.applied))
    for record in log.read(list(state.applied)):
        if record.partition not in before or record.sequence < before[record.partition]:
            replaying.take(record)
    replaying.apply()
    return replaying


def replay_one_by_one(log: OperationLog, state: NodeState) -> Replay:
    """As `replay`, with each operation applied by itself. Errors: Corruption; UnfitEntry."""
    replaying = _OneByOne(state, 0, refused_entries(log, state.applied))
    for record in log.read(list(state.applied)):
        replaying.take(record)
    return replaying


def refused_entries(log: OperationLog, applied: Sequence[Mark]) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return by partition and sequence of a record the places of entries that later records refuse."""
    refused: dict[tuple[int, int], tuple[int, ...]] = {}
    for record in log.refusals(list(applied)):
        sequence, places = read_refusal(record.payload, partial(_where, record))
        key = (record.partition, sequence)
        refused[key] = (*refused.get(key, ()), *places)
    return refused


def marks_after(applied: Sequence[Mark], records: Sequence[NewRecord], marks: Sequence[Mark]) -> list[Mark]:
    """The marks of all partitions after records that were logged just now. Errors: Corruption where others are between
    those and the applied ones."""
    after = list(applied)
    for record, mark in zip(records, marks, strict=True):
        partition = record.partition
        if mark.sequence != after[partition].sequence + 1:
            raise Corruption(f"the operation log: {_gap(partition, mark.sequence, after[partition])}")
        after[partition] = mark
    return after


class Replay:
    """Gathers entries of many records, so that they are applied in batches as they were at first."""

    def __init__(
        self, state: NodeState, last: int = 0, refused: Mapping[tuple[int, int], Sequence[int]] = _NONE_REFUSED
    ) -> None:
        """`refused`: by partition and sequence of a record, the places of entries that are not applied."""
        self._state = state
        self._refused = refused
        self._last = last
        self.outcomes: list[Outcome] = []
        self._entries: list[Entry] = []
        self._imported: list[tuple[int, int, int]] = []
        """Of records from another log: the partition, and the places of their entries, from the first up to the end."""
        self._size_bytes = 0
        self.operations = 0
        self._recent = [deque([mark], limits.REPLAY_REPEATS) for mark in state.applied]
        """The last records applied, by partition: those that may come again."""
        self._held: list[deque[LogRecord]] = [deque() for _ in state.applied]
        """By partition: the marker of a layout that others have not come to yet, and what follows it."""
        self._held_bytes = 0

    def take(self, record: LogRecord) -> None:
        """Gather a record, or hold it until its turn comes. Errors: Corruption."""
        held = self._held[record.partition]
        if held:
            self._hold(record)
        elif self._is_next(record):
            if record.kind == RecordKind.CONFIGURATION:
                self._hold(record)
                self._change_layout()
            else:
                self._gather(record)

    def apply(self) -> None:
        """Apply what was gathered."""
        applied = self._outcomes_of(self._entries)
        for partition, first, end in self._imported:
            if has_unfit(applied[first:end]):  # these documents are others than there: a new picture is due
                self._state.imported.pop(partition, None)
        outcomes = [*self.outcomes, *applied]
        self.outcomes = outcomes[max(0, len(outcomes) - self._last) :]
        self.operations += len(self._entries)
        self._entries = []
        self._imported = []
        self._size_bytes = 0

    def _outcomes_of(self, entries: list[Entry]) -> list[Outcome]:
        return apply_entries(self._state, entries)

    def missing_markers(self) -> list[NewRecord]:
        """Return the markers of a layout that some partitions lack: whoever logged them was interrupted."""
        found = next((held[0] for held in self._held if held), None)
        if found is None:
            return []
        missing = (partition for partition, held in enumerate(self._held) if not held)
        return [NewRecord(partition, found.payload, RecordKind.CONFIGURATION) for partition in missing]

    def _is_next(self, record: LogRecord) -> bool:
        """Return whether the record comes next; False: it was applied. Errors: Corruption where neither is certain."""
        partition, mark, recent = record.partition, record.mark, self._recent[record.partition]
        ahead = mark.sequence - self._state.applied[partition].sequence
        if ahead == 1:
            return True
        if ahead > 1:
            raise Corruption(f"{_where(record)}: {_gap(partition, mark.sequence, self._state.applied[partition])}")
        if -ahead >= len(recent):
            raise Corruption(
                f"{_where(record)}: record {mark.sequence} of partition {partition} comes again, {-ahead} records late"
            )
        if recent[ahead - 1] != mark:
            raise Corruption(
                f"{_where(record)}: record {mark.sequence} of partition {partition} is another than the one that was"
                " applied"
            )
        return False

    def _gather(self, record: LogRecord) -> None:
        payload, refused = record.payload, self._refused.get((record.partition, record.sequence), ())
        if record.kind == RecordKind.IMPORTED:
            mark, payload = read_imported(payload)
            self._state.note_imported(record.partition, mark)
        elif record.kind == RecordKind.REFUSED:
            self._advance(record)
            return
        elif record.kind != RecordKind.OPERATIONS:
            raise Corruption(f"{_where(record)}: a record of unknown kind {record.kind}")
        self._state.note_own(record.partition, record.kind)
        entries = list(decode_entries(payload, lambda: _where(record)))
        if record.kind == RecordKind.IMPORTED:
            self._imported.append((record.partition, len(self._entries), len(self._entries) + len(entries)))
        for place in refused:
            entries[place].is_refused = True
        self._entries += entries
        self._size_bytes += len(record.payload)
        self._advance(record)
        if len(self._entries) >= limits.LOG_BATCH_OPERATIONS or self._size_bytes >= limits.LOG_BATCH_BYTES:
            self.apply()

    def _advance(self, record: LogRecord) -> None:
        self._state.applied[record.partition] = record.mark
        self._recent[record.partition].append(record.mark)

    def _hold(self, record: LogRecord) -> None:
        self._held[record.partition].append(record)
        self._held_bytes += len(record.payload)
        if self._held_bytes > limits.REPLAY_HELD_BYTES:
            waiting = [partition for partition, held in enumerate(self._held) if not held]
            raise Corruption(
                f"{_where(record)}: {self._held_bytes} bytes of records wait for the marker of a layout that partitions"
                f" {waiting} lack"
            )

    def _change_layout(self) -> None:
        """Go on under the layout that all partitions have come to, if they have."""
        if not all(self._held):
            return
        markers = [held.popleft() for held in self._held]
        for marker in markers:
            if marker.payload != markers[0].payload:
                raise Corruption(f"{_where(marker)}: another layout than {_where(markers[0])} has")
        self.apply()
        layout = _layout_of(markers[0])
        if layout.types != self._state.layout.types:
            change_layout(self._state, layout)
        for marker in markers:
            self._advance(marker)
        following = [record for held in self._held for record in held]
        for held in self._held:
            held.clear()
        self._held_bytes = 0
        for record in following:
            self.take(record)


class UnfitEntry(Exception):
    """An operation of a record, by its place, that cannot be applied: a defect of this program."""

    def __init__(self, record: LogRecord, place: int, document: str) -> None:
        super().__init__(f"{_where(record)}: an operation on {document} is logged and cannot be applied")
        self.record = record
        self.place = place


class _OneByOne(Replay):
    """Applies each operation by itself."""

    def _gather(self, record: LogRecord) -> None:
        self._record = record
        super()._gather(record)
        self.apply()

    def _outcomes_of(self, entries: list[Entry]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for place, entry in enumerate(entries):
            try:
                outcomes += apply_entries(self._state, [entry])
            except UNFIT_ERRORS as error:
                raise UnfitEntry(self._record, place, entry.id) from error
        return outcomes


def _gap(partition: int, sequence: int, applied: Mark) -> str:
    return f"record {sequence} of partition {partition} where {applied.sequence + 1} is due"


def _layout_of(record: LogRecord) -> Layout:
    try:
        return Layout.from_bytes(record.payload)
    except OtherVersion as error:
        raise OtherVersion(f"{_where(record)}: {error.message}") from None


def _where(record: LogRecord) -> str:
    return f"{record.file}: offset {record.offset}"
