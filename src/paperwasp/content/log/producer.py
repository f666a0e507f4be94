"""Writes the log of a content cluster: gives operations their times, encodes them and makes them durable.

    operations → times, entries by partition → records → append, one sync

It knows the log and what it has logged, and nothing of whoever applies that: the layout is the one that it logged
last, and times go on after the last one in the log. `content/consumer.py` is the other side. What links the two are
records and their marks; in one process entries are handed over with them, so that nothing is decoded that was just
encoded. One thread.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.content.layouts.codec import Codecs
from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.layouts.layout import Layout, TypeLayout
from paperwasp.content.log.gathering import OperationReply, QueuedOperation
from paperwasp.content.log.late_operations import LateOperations
from paperwasp.content.log.moved_records import MovedRecord, encode_imported
from paperwasp.content.log.records import (
    AnyOperation,
    Entry,
    Logged,
    LoggedBatch,
    LoggedLayout,
    markers_of,
    records_of,
    refusals_of,
)
from paperwasp.coordination.operation_log import NewRecord, OperationLog, RecordKind
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import partition_of
from paperwasp.errors import InternalError, InvalidInput, PaperwaspError

_LOGGER: Final = logging.getLogger(__name__)


class Producer:
    """Logs operations, and changes of the layout that they are written under."""

    def __init__(self, log: OperationLog, layout: Layout, timestamp_us: int, environment: Environment = SYSTEM) -> None:
        """`layout` and `timestamp_us` are those that the log ends with."""
        self._log = log
        self.layout = layout
        """The layout that operations are encoded under. Any thread may read it."""
        self._codecs = Codecs()
        self._late = LateOperations()
        self._timestamp_us = timestamp_us
        """The time of the last operation."""
        self._environment = environment

    def encode(self, batch: Sequence[QueuedOperation]) -> tuple[Sequence[Logged], Sequence[OperationReply]]:
        """Return entries in the order of the log, by partition, then as they came, and the reply to each. Refused ones
        are answered."""
        first_us = max(self._environment.time_ns() // 1000, self._timestamp_us + 1)
        self._timestamp_us = first_us + len(batch) - 1
        if self._are_plain(batch):
            return _core.in_order_of_log(batch, first_us, limits.PARTITIONS)
        by_partition: list[list[tuple[Logged, OperationReply]]] = [[] for _ in range(limits.PARTITIONS)]
        for timestamp_us, (operation, reply, _) in enumerate(batch, first_us):
            document_type = type_of(operation)
            kind = self.layout.types.get(document_type)
            if kind is None:
                reply(unknown_type(document_type))
                continue
            try:
                entry = self._late.entry(operation, kind, self._codecs.of(kind), timestamp_us)
            except PaperwaspError as error:
                reply(error)
            except (TypeError, ValueError) as error:
                reply(InvalidInput(f"{operation.id}: {error}"))
            except Exception as error:  # a defect costs its own operation, and never the writer
                _LOGGER.exception("%s could not be encoded", operation.id)
                reply(InternalError(f"{operation.id}: {error}"))
            else:
                by_partition[partition_of(entry.gid)].append((entry, reply))
        waiting = [waiting for partition in by_partition for waiting in partition]
        return [entry for entry, _ in waiting], [reply for _, reply in waiting]

    def append(self, entries: Sequence[Logged]) -> LoggedBatch:
        """Make entries durable. Errors: NoSpace, InternalError: why nothing was logged."""
        records = records_of(entries)
        return LoggedBatch(entries, records, self._log.append(records))

    def append_imported(self, partition: int, records: Sequence[MovedRecord], entries: Sequence[Entry]) -> LoggedBatch:
        """Make records of another node's log durable in this one, with their marks there. Errors: as of `append`."""
        self.go_on_after(max((entry.timestamp_us for entry in entries), default=0))
        moved = [NewRecord(partition, encode_imported(record), RecordKind.IMPORTED) for record in records]
        return LoggedBatch(entries, moved, self._log.append(moved))

    def go_on_after(self, timestamp_us: int) -> None:
        """Give later times than this one to operations from now on."""
        self._timestamp_us = max(self._timestamp_us, timestamp_us)

    def refuse(self, batch: LoggedBatch, places: Collection[int]) -> None:
        """Log that entries of a batch, by place, are refused. Errors: as of `append`."""
        self._log.append(refusals_of(batch, places))

    def check(self, configured: Configuration) -> None:
        """Errors: what `configure` would refuse; changes nothing. Any thread."""
        layout = self._layout_of(configured)
        _try_layout(self.layout, layout, Codecs())

    def configure(self, configured: Configuration) -> LoggedLayout:
        """Encode under the layout of these schemas from now on, and log it, where it is another.

        Errors: InvalidInput, NoSpace, InternalError, with nothing changed.
        """
        layout = self._layout_of(configured)
        if layout.types == self.layout.types:
            self.layout = layout
            return LoggedLayout(layout, (), ())
        codecs = Codecs()
        _try_layout(self.layout, layout, codecs)
        records = markers_of(layout)
        marks = self._log.append(records)
        self._late.note_change(self.layout)
        self.layout, self._codecs = layout, codecs
        return LoggedLayout(layout, records, marks)

    def _are_plain(self, batch: Sequence[QueuedOperation]) -> bool:
        """Return whether all are plain changes of fields that the layout has: such a change is its own entry."""
        read_as, types = _core.read_as_of(batch), self.layout.types
        return read_as is not None and all(each.name in types and types[each.name].has_all(each) for each in read_as)

    def _layout_of(self, configured: Configuration) -> Layout:
        return self.layout.changed(configured.generation, configured.schemas.values(), configured.modes)


def _try_layout(before: Layout, after: Layout, codecs: Codecs) -> None:
    """Make what is new of a layout without documents, and drop all but the codecs: what cannot be made fails here,
    before it is logged. Errors: those of making it."""
    for kind in after.types.values():
        known = before.types.get(kind.name) or TypeLayout(kind.name, kind.number, {})
        if kind == known:
            continue
        codecs.of(kind)
        sources = {source.name: source.field for source in known.columns}
        fields = [source.field for source in kind.columns if sources.get(source.name) != source.field]
        for field in {(field.type, field.column): field for field in fields}.values():  # one of each kind
            field.try_column()


def type_of(operation: AnyOperation) -> str:
    """The document type of an operation."""
    return operation.document_type if isinstance(operation, PlainChange) else operation.id.document_type


def unknown_type(name: str) -> InvalidInput:
    return InvalidInput(f"Document type {name} does not exist")
