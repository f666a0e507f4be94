"""The operation log: ordered, durable, in partitions.

A record is a batch of operations of one partition. What `append` has returned is durable. Sequences count from 1
within a partition and have no gaps, so that whoever applies record n next needs n + 1, and can tell when it was given
another.

`FileOperationLog` keeps all partitions in one run of files, with one sync per append. Invariants: files are numbered
without gaps and each says in its header where every partition stood when it began; only the last file is written; a
file is removed only when all its records are applied elsewhere. One thread appends; `trim` may come from another.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment, sync_data, sync_directory
from paperwasp.base.file_snapshot import SourceFile, held, open_file
from paperwasp.base.patterns import compile_later
from paperwasp.coordination import log_format
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.coordination.log_end import NAME as END_NAME
from paperwasp.coordination.log_end import LogEnd, LogEndFile, read_log_end
from paperwasp.coordination.log_format import START, FileHeader, Mark, RawRecord, RecordKind
from paperwasp.errors import InternalError, LogDamage, NoSpace, OtherVersion

__all__ = ["START", "FileOperationLog", "LogRecord", "Mark", "NewRecord", "OperationLog", "RecordKind"]

_LOGGER: Final = logging.getLogger(__name__)
_REFUSED: Final = RecordKind.REFUSED
_FILE_NAME: Final = compile_later(r"(\d{16})\.log")
_IDENTITY: Final = "IDENTITY"
_DIGITS: Final = compile_later(r"[0-9a-f]{32}")


class NewRecord(NamedTuple):
    """A record for `append`, which gives it a sequence number."""

    partition: int
    payload: bytes
    kind: int = RecordKind.OPERATIONS


class LogRecord(NamedTuple):
    """One record read back. `file` and `offset` are for messages; `mark` is its sequence and what stands for its
    content."""

    partition: int
    mark: Mark
    kind: int
    payload: bytes
    time_us: int
    file: str
    offset: int

    @property
    def sequence(self) -> int:
        return self.mark.sequence


class OperationLog(Protocol):
    """An ordered log. Durable on return of `append`; gap-free per partition; the order of appends is the order of
    reads."""

    def append(self, records: Sequence[NewRecord]) -> list[Mark]:
        """Makes all records durable, in this order, and returns their marks.

        Errors: NoSpace, InternalError: nothing was appended, and the next call may succeed.
        """

    def read(self, applied: Sequence[Mark], partition: int | None = None) -> Iterator[LogRecord]:
        """All records after `applied` (one mark per partition) whose `append` has returned; with `partition`, those of
        that one, whatever the log has forgotten of others. Any thread.

        Errors: Corruption when the log does not continue there: records are missing, or the last applied one is another
        than the log holds.
        """

    def refusals(self, applied: Sequence[Mark]) -> Iterator[LogRecord]:
        """Return the records after `applied` that refuse operations of records before, but for those that the log has
        forgotten; quick where there are none."""

    def trim(self, applied: Sequence[Mark]) -> None:
        """Lets the log forget records up to `applied`. How many it forgets, and when, is its own affair."""

    def skip_to(self, applied: Sequence[Mark]) -> None:
        """Goes on after `applied`, where the log has lost its end (a repair that the operator asked for)."""

    def last(self) -> tuple[Mark, ...]:
        """The last record of every partition."""

    def identity(self) -> str:
        """Return 32 hexadecimal digits that no other log has; they stay. Errors: NoSpace, InternalError."""

    def size_bytes(self) -> int:
        """How much room the log takes."""

    def open_files(self) -> list[SourceFile]:
        """Open the files that a backup keeps of the log, as it is now.

        The thread that appends calls it, when all that it has appended is applied.
        """

    def close(self) -> None: ...


OpenLog = Callable[[Path, bool], OperationLog]
"""Opens the log of a content cluster: (its folder, whether to go on after damage). Errors: Corruption."""


class _LogFile(Struct):
    path: Path
    header: FileHeader
    has_refusals: bool = False


class FileOperationLog:
    """The embedded OperationLog: files in one directory.

    Opening cuts a torn tail off the last file: what no append has acknowledged. Other damage raises Corruption with
    file and offset, and so does a log that ends before what it has acknowledged (`log_end`); with `repair` the damaged
    rest is kept beside as `*.damaged` and the log goes on after the last whole record before it.
    """

    def __init__(self, directory: Path, *, repair: bool = False, environment: Environment = SYSTEM) -> None:
        self._directory = directory
        self._environment = environment
        self._lock = Lock()
        self._is_closed = False
        self._unfinished: Path | None = None
        """A next file that could neither be begun nor removed again."""
        self._has_rest = False
        """Whether the last file may hold, after its records, something of an append that failed."""
        self.torn_bytes = 0
        REAL_DISK.make_directory(directory)
        self._files, self._marks = _Opening(directory, repair, self).run()
        self._descriptor = -1
        self._end: LogEndFile | None = None
        if self._files:
            self._go_on_in(_open_for_append(self._files[-1].path))
        else:
            self._start_file()
        self._end = LogEndFile(directory, self._log_end())

    def append(self, records: Sequence[NewRecord]) -> list[Mark]:
        with self._lock:
            self._check_usable()
            marks = list(self._marks)
            try:
                self._remove_unfinished()
                if self._has_rest:
                    self._cut_rest()
                if self._size >= limits.LOG_FILE_BYTES:
                    self._start_file()
                largest_bytes = max([len(record.payload) for record in records], default=0)
                if largest_bytes > limits.LOG_RECORD_BYTES:
                    raise InternalError(f"a log record of {largest_bytes} bytes; at most {limits.LOG_RECORD_BYTES}")
                data, appended = log_format.encode_records(records, marks, self._environment.time_ns() // 1000)
                self._files[-1].has_refusals |= _REFUSED in [record.kind for record in records]
                self._write(data)
            except OSError as error:
                raise self._refusal(error) from error
            self._marks = marks
            return appended

    def read(self, applied: Sequence[Mark], partition: int | None = None) -> Iterator[LogRecord]:
        partitions = range(limits.PARTITIONS) if partition is None else (partition,)
        with self._lock:
            files, last, size_bytes = list(self._files), list(self._marks), self._size
        for number in partitions:
            if applied[number].sequence > last[number].sequence:
                missing = f"{last[number].sequence + 1}..{applied[number].sequence}"
                raise LogDamage(
                    f"{files[-1].path}: offset {size_bytes}: the log ends here; records {missing} of partition"
                    f" {number} are applied and not in the log"
                )
        self._check_start(files[0], applied, partitions)
        for file in files:
            data = self._data_of(file)
            if data is None:  # what is left says whether it had any of these
                given = [max(mark, base) for mark, base in zip(applied, file.header.bases, strict=True)]
                self._check_start(self._first_file(), given, partitions)
                continue
            for record in self._records_in(data, file, applied, last):
                if record.partition in partitions:
                    yield record

    def refusals(self, applied: Sequence[Mark]) -> Iterator[LogRecord]:
        with self._lock:
            files, last = [file for file in self._files if file.has_refusals], list(self._marks)
        for file in files:
            data = self._data_of(file)
            for record in self._records_in(data or memoryview(b""), file, applied, last):
                if record.kind == _REFUSED:
                    yield record

    def trim(self, applied: Sequence[Mark]) -> None:
        with self._lock:
            self._check_usable()
            self._remove_unfinished()
            if self._has_rest:
                self._cut_rest()
            written = self._size > log_format.FILE_HEADER_BYTES
            if written and _covers(applied, self._marks):
                self._start_file()
            while len(self._files) > 1 and _covers(applied, self._files[1].header.bases):
                self._files[0].path.unlink(missing_ok=True)  # one that stays must not leave a gap behind it
                self._files.pop(0)
            sync_directory(self._directory)

    def skip_to(self, applied: Sequence[Mark]) -> None:
        with self._lock:
            self._marks = [max(own, other) for own, other in zip(self._marks, applied, strict=True)]
            self._start_file()

    def last(self) -> tuple[Mark, ...]:
        with self._lock:
            return tuple(self._marks)

    def identity(self) -> str:
        path = self._directory / _IDENTITY
        with self._lock:
            try:
                found = path.read_bytes()
                if not _DIGITS.fullmatch(found.decode(errors="replace")):
                    _LOGGER.warning("%s: this names no log; it gets another name", path)
                    raise FileNotFoundError
            except FileNotFoundError:
                found = self._environment.token_bytes(16).hex().encode()
                try:
                    REAL_DISK.write_whole(path, found)
                except OSError as error:
                    raise self._refusal(error) from error
            return found.decode()

    def size_bytes(self) -> int:
        """The size of all files of the log on disk."""
        with self._lock:
            return sum(file.path.stat().st_size for file in self._files)

    def open_files(self) -> list[SourceFile]:
        """The files of the log: one that is opened on copies of them goes on from here."""
        with self._lock:
            last = self._files[-1].path
            files = [open_file(f.path.name, f.path, self._size if f.path == last else None) for f in self._files]
            return [*files, held(END_NAME, self._log_end().encode())]

    def close(self) -> None:
        with self._lock:
            if self._descriptor >= 0:
                with suppress(OSError):
                    if self._has_rest:
                        self._cut_rest()
                os.close(self._descriptor)
            if self._end is not None:
                self._end.close()
            self._descriptor, self._end = -1, None
            self._is_closed = True

    def _write(self, data: bytes) -> None:
        self._has_rest = True
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            sync_data(self._descriptor)
        except OSError:
            with suppress(OSError):
                self._cut_rest()
            raise
        self._has_rest = False
        self._size += len(data)
        assert self._end is not None
        self._end.write(self._log_end())

    def _log_end(self) -> LogEnd:
        return LogEnd(self._files[-1].header.number, self._size)

    def _cut_rest(self) -> None:
        """After an append that failed nothing of it stays, so that nobody ever sees what was refused.

        What a failed sync leaves in the file is not known, but only what comes after the last sync that went well can
        be wrong. That is cut off, and until the cut is synced nothing more is written.
        """
        os.ftruncate(self._descriptor, self._size)
        os.fsync(self._descriptor)
        self._has_rest = False

    def _refusal(self, error: OSError) -> NoSpace | InternalError:
        path = self._files[-1].path
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return NoSpace(f"{path}: no space left for the operation log")
        return InternalError(f"{path}: the operation log cannot be written: {error}")

    def _check_usable(self) -> None:
        if self._is_closed:
            raise InternalError(f"the operation log in {self._directory} is closed")

    def _start_file(self) -> None:
        """A new last file. Written beside and renamed, so a file that has its name has its header."""
        number = self._files[-1].header.number + 1 if self._files else 1
        header = FileHeader(number, tuple(self._marks))
        path = self._directory / f"{number:016d}.log"
        try:
            _write_new_file(path, header.encode())
            descriptor = _open_for_append(path)
        except OSError:
            self._unfinished = path
            with suppress(OSError):
                self._remove_unfinished()
            raise
        self._files.append(_LogFile(path, header))
        self._go_on_in(descriptor)
        if self._end is not None:
            self._end.write(self._log_end())
            self._end.sync()  # before files are removed that it may name

    def _remove_unfinished(self) -> None:
        """A file that could not be begun must not be there when the one before it goes on."""
        if self._unfinished is not None:
            self._unfinished.unlink(missing_ok=True)
            sync_directory(self._directory)
            self._unfinished = None

    def _go_on_in(self, descriptor: int) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = os.fstat(descriptor).st_size

    def _check_start(self, first: _LogFile, applied: Sequence[Mark], partitions: Iterable[int]) -> None:
        for partition in partitions:
            mark, base = applied[partition], first.header.bases[partition]
            if mark.sequence < base.sequence:
                missing = f"{mark.sequence + 1}..{base.sequence}"
                raise LogDamage(
                    f"{first.path}: records {missing} of partition {partition} are missing before this file"
                )
            _check_same(mark, base, partition, f"{first.path}: header")

    def _data_of(self, file: _LogFile) -> memoryview | None:
        """The bytes of a file; None where it was trimmed since it was listed. Errors: Corruption."""
        try:
            return memoryview(file.path.read_bytes())
        except FileNotFoundError:
            if file.header.number >= self._first_file().header.number:
                raise LogDamage(f"{file.path}: offset 0: this file is missing") from None
            return None

    def _first_file(self) -> _LogFile:
        with self._lock:
            return self._files[0]

    def _records_in(
        self, data: memoryview, file: _LogFile, applied: Sequence[Mark], last: Sequence[Mark]
    ) -> Iterator[LogRecord]:
        for record in log_format.scan(data):
            mark = applied[record.partition]
            _check_same(mark, record.mark, record.partition, f"{file.path}: offset {record.offset}")
            if mark.sequence < record.mark.sequence <= last[record.partition].sequence:
                payload = bytes(data[record.offset + log_format.RECORD_HEADER_BYTES : record.end])
                partition, kind, found, time_us, offset = record[:5]
                yield LogRecord(partition, found, kind, payload, time_us, str(file.path), offset)


class _Opening:
    """The opening of a log: every file is checked, a torn tail cut off, other damage refused or repaired."""

    def __init__(self, directory: Path, repair: bool, log: FileOperationLog) -> None:
        self._directory = directory
        self._repair = repair
        self._log = log
        self._files: list[_LogFile] = []
        self._marks = [START] * limits.PARTITIONS
        self._end = self._read_end()

    def run(self) -> tuple[list[_LogFile], list[Mark]]:
        paths = sorted(path for path in self._directory.iterdir() if _FILE_NAME.fullmatch(path.name))
        for place, path in enumerate(paths):
            if not self._read(path, is_last=place == len(paths) - 1):
                for later in paths[place + 1 :]:
                    later.rename(_free_name(later))
                sync_directory(self._directory)
                break
        else:
            self._check_last_file()
        return self._files, self._marks

    def _read_end(self) -> LogEnd | None:
        try:
            return read_log_end(self._directory)
        except LogDamage as error:
            if not self._repair:
                raise
            _LOGGER.error("%s", error)
            return None

    def _check_last_file(self) -> None:
        """Errors: Corruption where files were acknowledged that are not there."""
        last = self._files[-1].header.number if self._files else 0
        if self._end is None or self._end.number <= last:
            return
        path = self._directory / f"{self._end.number:016d}.log"
        message = f"{path}: offset 0: this file is missing; {self._end.size_bytes} bytes of it were acknowledged"
        if not self._repair:
            raise LogDamage(message)
        _LOGGER.error("%s", message)

    def _read(self, path: Path, is_last: bool) -> bool:
        """Takes over one file. False: it was repaired, and nothing after it can be used."""
        data = path.read_bytes()
        header = log_format.decode_file_header(data)
        if header is None:
            if (version := log_format.version_of(data)) not in (None, log_format.FILE_VERSION):
                raise OtherVersion(f"{path}: a log of version {version}; known is {log_format.FILE_VERSION}")
            return self._handle_damage(path, data, 0, "a damaged file header")
        if message := self._misfit(path, header):
            return self._handle_damage(path, data, 0, message)
        if not self._files:
            self._marks = list(header.bases)
        self._files.append(_LogFile(path, header))
        records = list(log_format.scan(data))
        self._files[-1].has_refusals = _REFUSED in [record.kind for record in records]
        if gap := log_format.first_gap(records, self._marks):
            expected = self._marks[gap.partition].sequence + 1
            message = f"record {gap.mark.sequence} of partition {gap.partition} where {expected} is due"
            return self._handle_damage(path, data, gap.offset, message)
        return self._check_tail(path, data, records, is_last)

    def _check_tail(self, path: Path, data: bytes, records: list[RawRecord], is_last: bool) -> bool:
        end = records[-1].end if records else log_format.FILE_HEADER_BYTES
        acknowledged = self._end.size_bytes if self._end and self._end.number == int(path.stem) else 0
        if end < acknowledged:
            what = "the file ends here" if end == len(data) else "a damaged record"
            return self._handle_damage(path, data, end, f"{what}; {acknowledged} bytes of this file were acknowledged")
        if end == len(data):
            return True
        if is_last and log_format.is_torn(data, end):
            self._log.torn_bytes = len(data) - end
            _LOGGER.warning("%s: cut a torn tail of %d bytes at offset %d", path, len(data) - end, end)
            _truncate(path, end)
            return True
        return self._handle_damage(path, data, end, "a damaged record")

    def _misfit(self, path: Path, header: FileHeader) -> str | None:
        if int(path.stem) != header.number:
            return f"this file says it is number {header.number}"
        if self._files and header.number != self._files[-1].header.number + 1:
            return f"file {self._files[-1].header.number + 1} before it is missing"
        if self._files and list(header.bases) != self._marks:
            return "records are missing between the file before it and this one"
        return None

    def _handle_damage(self, path: Path, data: bytes, offset: int, message: str) -> bool:
        if not self._repair:
            raise LogDamage(f"{path}: offset {offset}: {message}")
        if offset == len(data) > 0:
            _LOGGER.error("%s: offset %d: %s", path, offset, message)
            return False
        aside = _free_name(path)
        _LOGGER.error("%s: offset %d: %s; the rest is kept in %s", path, offset, message, aside)
        if offset == 0:
            path.rename(aside)
        else:
            _write_new_file(aside, data[offset:])
            _truncate(path, offset)
        return False


def _covers(applied: Sequence[Mark], marks: Sequence[Mark]) -> bool:
    return all(one.sequence >= other.sequence for one, other in zip(applied, marks, strict=True))


def _check_same(applied: Mark, found: Mark, partition: int, where: str) -> None:
    if applied.sequence == found.sequence and applied.crc != found.crc:
        raise LogDamage(
            f"{where}: record {found.sequence} of partition {partition} is another than the one that was applied"
        )


def _free_name(path: Path) -> Path:
    """A name beside `path` that no file has: what was damaged is never written over."""
    count = 0
    while (aside := path.with_name(f"{path.name}.{count}.damaged")).exists():
        count += 1
    return aside


def _open_for_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)


def _write_new_file(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_directory(path.parent)


def _truncate(path: Path, size_bytes: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size_bytes)
        os.fsync(file.fileno())
