"""An operation log in memory, and one that gives its records in ways that a log should not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from paperwasp import limits
from paperwasp.base.file_snapshot import SourceFile
from paperwasp.coordination.log_format import encode_records
from paperwasp.coordination.operation_log import START, LogRecord, Mark, NewRecord, RecordKind


class MemoryLog:
    """The promise of the log, and nothing more. `records` are all that were ever appended."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self._marks = [START] * limits.PARTITIONS

    def append(self, records: Sequence[NewRecord]) -> list[Mark]:
        _, marks = encode_records(list(records), self._marks, 0)
        for record, mark in zip(records, marks, strict=True):
            offset = len(self.records)
            self.records.append(LogRecord(record.partition, mark, record.kind, record.payload, 0, "memory", offset))
        return marks

    def read(self, applied: Sequence[Mark], partition: int | None = None) -> Iterator[LogRecord]:
        after = (record for record in list(self.records) if record.sequence > applied[record.partition].sequence)
        return (record for record in after if partition in (None, record.partition))

    def refusals(self, applied: Sequence[Mark]) -> Iterator[LogRecord]:
        waiting = MemoryLog.read(self, applied)
        return (record for record in waiting if record.kind == RecordKind.REFUSED)

    def trim(self, applied: Sequence[Mark]) -> None:
        """Nothing is forgotten: another reader may be behind."""

    def skip_to(self, applied: Sequence[Mark]) -> None:
        raise AssertionError("nothing is lost")

    def last(self) -> tuple[Mark, ...]:
        return tuple(self._marks)

    def identity(self) -> str:
        return f"{id(self):032x}"

    def size_bytes(self) -> int:
        return sum(len(record.payload) for record in self.records)

    def open_files(self) -> list[SourceFile]:
        return []

    def close(self) -> None: ...


class FirstRecords(MemoryLog):
    """The first records of a log: what a reader has been given so far."""

    def __init__(self, records: list[LogRecord]) -> None:
        super().__init__()
        self.records = records


class FakeLog(MemoryLog):
    """Gives the records of a log by chance: mixed between partitions, some again, each partition up to somewhere."""

    def __init__(self, log: MemoryLog, chance: random.Random) -> None:
        super().__init__()
        self.records = log.records
        self._chance = chance
        self.faults: list[str] = []
        """What is done once, to some record of the next reading, if it has one for it: "gap", "swap", "backwards"."""

    def read(self, applied: Sequence[Mark], partition: int | None = None) -> Iterator[LogRecord]:
        """As of `OperationLog`, in another order and up to somewhere."""
        waiting = [self._some(partition, mark.sequence) for partition, mark in enumerate(applied)]
        given: list[LogRecord] = []
        while any(waiting):
            if given and self._chance.random() < 0.2:
                record = self._chance.choice(given[-limits.REPLAY_REPEATS :])
                if "swap" in self.faults:
                    self.faults.remove("swap")
                    record = record._replace(mark=Mark(record.sequence, record.mark.crc ^ 1))
                yield record
                continue
            partition = self._chance.choice([number for number, records in enumerate(waiting) if records])
            if "gap" in self.faults and len(waiting[partition]) > 1:
                self.faults.remove("gap")
                waiting[partition].pop(0)
            given.append(waiting[partition].pop(0))
            yield given[-1]

    def _some(self, partition: int, applied: int) -> list[LogRecord]:
        records = [record for record in self.records if record.partition == partition]
        first = applied
        if "backwards" in self.faults and applied > 1:
            self.faults.remove("backwards")
            first = applied - 2
        return records[first : self._chance.randint(applied, len(records))]
