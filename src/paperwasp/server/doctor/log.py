"""An operation log, read as a start reads it, with nothing changed (docs/internals/formats/operation-log.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.cluster import log_format
from paperwasp.cluster.log_end import LogEnd, read_log_end
from paperwasp.cluster.log_format import START, FileHeader, Mark, RawRecord, RecordKind
from paperwasp.content.layout import Layout
from paperwasp.content.records import EntryKind, decode_entries
from paperwasp.errors import Corruption, LogDamage, OtherVersion
from paperwasp.storage.documents.document_store import StoredForm

_FILE_NAME: Final = compile_later(r"\d{16}\.log")
Note = Callable[[int], None]


@dataclass(slots=True)
class CheckedLog:
    """What there is, as far as it is whole."""

    files: int = 0
    size_bytes: int = 0
    records: int = 0
    torn_bytes: int = 0
    """At the end, and acknowledged to no client: the next start cuts them off."""
    bases: tuple[Mark, ...] = ()
    """The records before the first file, one for each partition."""
    marks: list[Mark] = field(default_factory=lambda: [START] * limits.PARTITIONS)
    """The last ones."""
    layout: Layout | None = None
    """The last one that a start would apply; None: there is none."""
    bare: Counter[str] = field(default_factory=Counter)
    """By document type, how many puts a start would apply that earlier versions logged without empty values."""


def check_log(directory: Path, applied: Sequence[Mark], note: Note, *, is_served: bool = False) -> CheckedLog:
    """Reads all of a log, and compares it with what a checkpoint has applied of it (nothing: `START`s).

    `is_served`: a service appends to it meanwhile. Errors: LogDamage, as a start would raise; FileNotFoundError where
    a service removes files meanwhile.
    """
    end = read_log_end(directory)
    paths = sorted(path for path in directory.glob("*.log") if _FILE_NAME.fullmatch(path.name))
    if not paths:
        _check_last_file(directory / "none", 0, end)
        raise LogDamage(f"{directory}: the operation log is missing, with all that came after the last checkpoint")
    checked = CheckedLog(files=len(paths))
    for path in paths:
        data = path.read_bytes()
        header = _header(path, data, checked)
        if not checked.bases:
            checked.bases, checked.marks = header.bases, list(header.bases)
            _check_bases(path, checked.bases, applied)
        records = list(log_format.scan(data))
        _check_records(path, records, checked, applied)
        _check_payloads(path, data, records, checked, applied)
        _check_tail(path, data, records, checked, end, may_be_torn=path == paths[-1], is_served=is_served)
        note(len(data))
    _check_end(paths[-1], checked, applied, end)
    return checked


def _header(path: Path, data: bytes, checked: CheckedLog) -> FileHeader:
    header = log_format.decode_file_header(data)
    if header is None:
        if (version := log_format.version_of(data)) not in (None, log_format.FILE_VERSION):
            raise OtherVersion(f"{path}: a log of version {version}; known is {log_format.FILE_VERSION}")
        raise LogDamage(f"{path}: offset 0: a damaged file header")
    if int(path.stem) != header.number:
        raise LogDamage(f"{path}: offset 0: this file says it is number {header.number}")
    if checked.bases and list(header.bases) != checked.marks:
        raise LogDamage(f"{path}: offset 0: records are missing between the file before it and this one")
    return header


def _check_bases(path: Path, bases: Sequence[Mark], applied: Sequence[Mark]) -> None:
    for partition, (base, mark) in enumerate(zip(bases, applied, strict=True)):
        if mark.sequence < base.sequence:
            missing = f"{mark.sequence + 1}..{base.sequence}"
            raise LogDamage(f"{path}: records {missing} of partition {partition} are missing before this file")
        if mark.sequence == base.sequence and mark.crc != base.crc:
            raise LogDamage(_other(f"{path}: header", partition, mark))


def _check_records(path: Path, records: list[RawRecord], checked: CheckedLog, applied: Sequence[Mark]) -> None:
    """Moves the marks over the records."""
    if gap := log_format.first_gap(records, checked.marks):
        due = checked.marks[gap.partition].sequence + 1
        message = f"record {gap.mark.sequence} of partition {gap.partition} where {due} is due"
        raise LogDamage(f"{path}: offset {gap.offset}: {message}")
    for record in records:
        mark = applied[record.partition]
        if record.mark.sequence == mark.sequence and record.mark.crc != mark.crc:
            raise LogDamage(_other(f"{path}: offset {record.offset}", record.partition, mark))
    checked.records += len(records)


def _check_payloads(
    path: Path, data: bytes, records: list[RawRecord], checked: CheckedLog, applied: Sequence[Mark]
) -> None:
    """What a start would apply can be read. Errors: Corruption; OtherVersion."""
    for record in records:
        if record.mark.sequence <= applied[record.partition].sequence:
            continue
        payload = data[record.offset + log_format.RECORD_HEADER_BYTES : record.end]
        where = f"{path}: offset {record.offset}"
        if record.kind == RecordKind.OPERATIONS:
            for entry in decode_entries(payload, partial(str, where)):
                if entry.kind is EntryKind.PUT and entry.form is StoredForm.BARE:
                    checked.bare[entry.document_type] += 1
        elif record.kind == RecordKind.CONFIGURATION:
            checked.layout = Layout.from_bytes(payload)
        else:
            raise Corruption(f"{where}: a record of unknown kind {record.kind}")


def _check_tail(
    path: Path,
    data: bytes,
    records: list[RawRecord],
    checked: CheckedLog,
    end: LogEnd | None,
    *,
    may_be_torn: bool,
    is_served: bool,
) -> None:
    stop = records[-1].end if records else log_format.FILE_HEADER_BYTES
    acknowledged = end.size_bytes if end is not None and end.number == int(path.stem) else 0
    checked.size_bytes += stop
    if stop < acknowledged:
        what = "the file ends here" if stop == len(data) else "a damaged record"
        raise LogDamage(f"{path}: offset {stop}: {what}; {acknowledged} bytes of this file were acknowledged")
    if stop == len(data):
        return
    if not may_be_torn or not (is_served or log_format.is_torn(data, stop)):
        raise LogDamage(f"{path}: offset {stop}: a damaged record")
    checked.torn_bytes = 0 if is_served else len(data) - stop


def _check_end(last: Path, checked: CheckedLog, applied: Sequence[Mark], end: LogEnd | None) -> None:
    _check_last_file(last, int(last.stem), end)
    for partition, (mark, found) in enumerate(zip(applied, checked.marks, strict=True)):
        if mark.sequence > found.sequence:
            missing = f"{found.sequence + 1}..{mark.sequence}"
            raise LogDamage(
                f"{last}: the log ends here; records {missing} of partition {partition} are applied and not in the log"
            )


def _check_last_file(last: Path, number: int, end: LogEnd | None) -> None:
    if end is not None and end.number > number:
        path = last.with_name(f"{end.number:016d}.log")
        raise LogDamage(f"{path}: offset 0: this file is missing; {end.size_bytes} bytes of it were acknowledged")


def _other(where: str, partition: int, mark: Mark) -> str:
    return f"{where}: record {mark.sequence} of partition {partition} is another than the one that was applied"
