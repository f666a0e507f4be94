"""One suite for every OperationLog, and what the embedded one promises about files: cut and flipped at every byte.

Records that the kernel writes are read back by Python and by zlib's CRC: docs/internals/formats/operation-log.md.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.coordination import log_end, log_format
from paperwasp.coordination.log_end import LogEnd
from paperwasp.coordination.log_format import FILE_HEADER_BYTES, RECORD_HEADER_BYTES, RECORD_MAGIC
from paperwasp.coordination.operation_log import (
    START,
    FileOperationLog,
    LogRecord,
    Mark,
    NewRecord,
    OperationLog,
    RecordKind,
)
from paperwasp.core import _core
from paperwasp.errors import Corruption, InternalError, NoSpace

NOTHING = (START,) * limits.PARTITIONS
LogFactory = Callable[[Path], OperationLog]
LOGS: list[LogFactory] = [FileOperationLog]


def contents(log: OperationLog, applied: Sequence[Mark] = NOTHING) -> list[tuple[int, int, int, bytes]]:
    return [(record.partition, record.sequence, record.kind, record.payload) for record in log.read(applied)]


@pytest.mark.parametrize("make", LOGS)
class TestConformance:
    def test_what_was_appended_is_read_in_order(self, make: LogFactory, tmp_path: Path) -> None:
        log = make(tmp_path)
        marks = log.append([NewRecord(3, b"a"), NewRecord(0, b"b"), NewRecord(3, b"", RecordKind.CONFIGURATION)])
        assert [mark.sequence for mark in marks] == [1, 1, 2]
        log.append([NewRecord(3, b"c")])
        expected = [(3, 1, 1, b"a"), (0, 1, 1, b"b"), (3, 2, 2, b""), (3, 3, 1, b"c")]
        assert contents(log) == expected
        log.close()
        again = make(tmp_path)
        assert contents(again) == expected
        assert [mark.sequence for mark in again.append([NewRecord(3, b"d"), NewRecord(1, b"e")])] == [4, 1]
        again.close()

    def test_reading_goes_on_after_what_is_applied(self, make: LogFactory, tmp_path: Path) -> None:
        log = make(tmp_path)
        first = log.append([NewRecord(1, b"a")])
        log.append([NewRecord(1, b"b"), NewRecord(2, b"c")])
        applied = [START, first[0], *NOTHING[2:]]
        assert contents(log, applied) == [(1, 2, 1, b"b"), (2, 1, 1, b"c")]
        assert contents(log, log.last()) == []
        log.close()

    def test_a_log_that_does_not_continue_is_refused(self, make: LogFactory, tmp_path: Path) -> None:
        log = make(tmp_path)
        mark = log.append([NewRecord(1, b"a")])[0]
        with pytest.raises(Corruption, match="not in the log"):
            contents(log, [START, Mark(2, 5), *NOTHING[2:]])
        with pytest.raises(Corruption, match="another than"):
            contents(log, [START, Mark(1, mark.crc ^ 1), *NOTHING[2:]])
        log.close()

    def test_what_is_trimmed_leaves_no_gap(self, make: LogFactory, tmp_path: Path) -> None:
        log = make(tmp_path)
        log.append([NewRecord(1, b"a")])
        applied = log.last()
        log.trim(applied)
        log.append([NewRecord(1, b"b"), NewRecord(2, b"c")])
        log.close()
        again = make(tmp_path)
        assert contents(again, applied) == [(1, 2, 1, b"b"), (2, 1, 1, b"c")]
        with pytest.raises(Corruption, match=r"records 1\.\.1 of partition 1 are missing"):
            contents(again)
        with pytest.raises(Corruption, match="another than"):
            contents(again, [START, Mark(1, applied[1].crc ^ 1), *NOTHING[2:]])
        again.close()

    def test_a_partition_is_read_by_itself(self, make: LogFactory, tmp_path: Path) -> None:
        log = make(tmp_path)
        marks = log.append([NewRecord(1, b"a"), NewRecord(2, b"b"), NewRecord(1, b"c")])
        applied = [START, marks[0], *NOTHING[2:]]
        assert [record.payload for record in log.read(applied, 1)] == [b"c"]
        log.close()

    @settings(max_examples=30, deadline=None)
    @given(
        appends=st.lists(st.lists(st.tuples(st.integers(0, 15), st.binary(max_size=50)), min_size=1), max_size=8),
        trim_at=st.integers(0, 8),
    )
    def test_any_history(
        self,
        make: LogFactory,
        tmp_path_factory: pytest.TempPathFactory,
        appends: list[list[tuple[int, bytes]]],
        trim_at: int,
    ) -> None:
        path = tmp_path_factory.mktemp("log")
        log = make(path)
        expected: list[tuple[int, int, int, bytes]] = []
        sequences = [0] * limits.PARTITIONS
        for place, records in enumerate(appends):
            if place == trim_at:
                log.trim(log.last())
                trimmed, expected = log.last(), []
            log.append([NewRecord(partition, payload) for partition, payload in records])
            for partition, payload in records:
                sequences[partition] += 1
                expected.append((partition, sequences[partition], 1, payload))
        log.close()
        again = make(path)
        assert contents(again, trimmed if trim_at < len(appends) else NOTHING) == expected
        again.close()


def test_what_is_trimmed_while_somebody_reads_is_missed_where_it_was_needed(tmp_path: Path) -> None:
    log = FileOperationLog(tmp_path)
    mark = log.append([NewRecord(3, b"applied")])[0]
    log.skip_to(log.last())
    log.append([NewRecord(5, b"of another"), NewRecord(7, b"", RecordKind.REFUSED)])
    log.skip_to(log.last())
    log.append([NewRecord(5, b"last of another"), NewRecord(7, b"", RecordKind.REFUSED)])
    applied = [*NOTHING[:3], mark, *NOTHING[4:]]
    idle, all_of_it, refusals = log.read(NOTHING, 3), log.read(NOTHING), log.refusals(applied)
    assert [next(idle).payload, next(all_of_it).payload] == [b"applied", b"applied"]
    assert next(refusals).partition == 7
    log.trim(log.last())
    log.append([NewRecord(3, b"later")])
    assert list(idle) == [] == list(refusals), "each as of when it was begun"
    with pytest.raises(Corruption, match=r"records 1\.\.2 of partition 5 are missing before this file"):
        list(all_of_it)
    assert [record.payload for record in log.read(applied, 3)] == [b"later"], "whatever was trimmed of others"
    log.close()


def test_a_file_that_is_gone_though_nobody_trimmed_it_is_named(tmp_path: Path) -> None:
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(3, b"a")])
    (path,) = tmp_path.glob("*.log")
    path.unlink()
    with pytest.raises(Corruption, match=f"{path.name}: offset 0: this file is missing"):
        contents(log)
    log.close()


def fill(path: Path) -> list[LogRecord]:
    """Five appends of nine records, over two files."""
    log = FileOperationLog(path)
    log.append([NewRecord(0, b"first"), NewRecord(7, b"x" * 40), NewRecord(0, b"")])
    log.append([NewRecord(7, b"second")])
    log.skip_to(log.last())
    log.append([NewRecord(1, b"third"), NewRecord(2, log_format.RECORD_MAGIC * 3)])
    log.append([NewRecord(1, b"fourth")])
    log.append([NewRecord(0, b"fifth"), NewRecord(15, b"sixth" * 5)])
    records = list(log.read(NOTHING))
    log.close()
    return records


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*.log"))


def fill_unacknowledged(path: Path) -> tuple[list[LogRecord], int]:
    """The same as a process leaves it that ended within the last append, which was never acknowledged; and the bytes of
    the last file that were acknowledged."""
    records = fill(path)
    acknowledged = records[-2].offset  # the first record of the last append
    (path / log_end.NAME).write_bytes(LogEnd(2, acknowledged).encode())
    return records, acknowledged


@pytest.mark.parametrize("is_first", [False, True])
def test_a_log_cut_at_any_byte_is_named_or_has_all_that_was_acknowledged(tmp_path: Path, is_first: bool) -> None:
    """Also the only file there is: nothing before it says what it began with."""
    records, acknowledged = fill_unacknowledged(tmp_path / "whole")
    applied: Sequence[Mark] = NOTHING
    if is_first:
        log_path, only = tmp_path / "whole", files(tmp_path / "whole")[0]
        applied = header_of(files(log_path)[-1]).bases
        only.unlink()
        records = [record for record in records if record.file != str(only)]
    last = files(tmp_path / "whole")[-1]
    for cut in range(last.stat().st_size + 1):
        path = tmp_path / "cut"
        shutil.copytree(tmp_path / "whole", path)
        os.truncate(path / last.name, cut)
        if cut < acknowledged:
            with pytest.raises(Corruption, match=rf"{last.name}: offset \d+: "):
                FileOperationLog(path)
        else:
            log = FileOperationLog(path)
            expected = [r for r in records if r.file != str(last) or end(r) <= cut]
            assert [r[:4] for r in log.read(applied)] == [r[:4] for r in expected], f"cut at {cut}"
            (before,) = [mark for place, mark in enumerate(log.last()) if place == 15]
            (mark,) = log.append([NewRecord(15, b"after")])
            assert mark.sequence == before.sequence + 1
            log.close()
            assert [r.payload for r in FileOperationLog(path).read(applied)][-1] == b"after"
        shutil.rmtree(path)


def header_of(path: Path) -> log_format.FileHeader:
    header = log_format.decode_file_header(path.read_bytes())
    assert header is not None
    return header


def test_a_log_from_before_ends_were_noted_is_cut_where_its_records_end(tmp_path: Path) -> None:
    """Without a noted end a cut between records cannot be told from a log that has no more."""
    records = fill(tmp_path / "whole")
    (tmp_path / "whole" / log_end.NAME).unlink()
    last = files(tmp_path / "whole")[-1]
    for cut in range(log_format.FILE_HEADER_BYTES, last.stat().st_size + 1, 7):
        path = tmp_path / "cut"
        shutil.copytree(tmp_path / "whole", path)
        os.truncate(path / last.name, cut)
        log = FileOperationLog(path)
        expected = [r for r in records if r.file != str(last) or end(r) <= cut]
        assert [r[:4] for r in log.read(NOTHING)] == [r[:4] for r in expected], f"cut at {cut}"
        log.close()
        assert (path / log_end.NAME).is_file()
        shutil.rmtree(path)


def test_files_that_were_removed_are_missed(tmp_path: Path) -> None:
    fill(tmp_path)
    for path in reversed(files(tmp_path)):
        path.unlink()
        with pytest.raises(Corruption, match=r"0000000000000002.log: offset 0: this file is missing; \d+ bytes of it"):
            FileOperationLog(tmp_path)
    log = FileOperationLog(tmp_path, repair=True)
    assert contents(log) == []
    log.append([NewRecord(0, b"after the repair")])
    log.close()
    assert contents(FileOperationLog(tmp_path)) == [(0, 1, 1, b"after the repair")]


def test_repair_goes_on_after_a_cut(tmp_path: Path) -> None:
    records = fill(tmp_path)
    os.truncate(files(tmp_path)[-1], log_format.FILE_HEADER_BYTES)
    log = FileOperationLog(tmp_path, repair=True)
    assert [r[:4] for r in log.read(NOTHING)] == [r[:4] for r in records if r.file == str(files(tmp_path)[0])]
    log.close()
    FileOperationLog(tmp_path).close()


def test_the_noted_end_is_as_the_page_shows_it(tmp_path: Path) -> None:
    """docs/internals/formats/operation-log.md, worked example: one record of 41 bytes after a header of 220."""
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(5, b"hello")])
    noted = (tmp_path / log_end.NAME).read_bytes()
    log.close()
    assert noted == bytes.fromhex("50574153 50454e44 0100000000000000 0501000000000000 b10ca7fa")
    page = Path(__file__).parents[2] / "docs" / "internals" / "formats" / "operation-log.md"
    assert noted[-4:].hex(" ") in page.read_text()


@pytest.mark.parametrize("damage_by", [lambda data: data[:-1], lambda data: bytes(len(data)), lambda data: b""])
def test_a_damaged_noted_end_is_named(tmp_path: Path, damage_by: Callable[[bytes], bytes]) -> None:
    fill(tmp_path)
    path = tmp_path / log_end.NAME
    path.write_bytes(damage_by(path.read_bytes()))
    with pytest.raises(Corruption, match="END: offset 0: the checksum differs"):
        FileOperationLog(tmp_path)
    FileOperationLog(tmp_path, repair=True).close()
    FileOperationLog(tmp_path).close()


def test_an_end_that_cannot_be_noted_refuses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FileOperationLog(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fail)
        log.append([NewRecord(0, b"a")])
    log.close()
    assert contents(FileOperationLog(tmp_path)) == [(0, 1, 1, b"a")]


def end(record: LogRecord) -> int:
    return record.offset + log_format.RECORD_HEADER_BYTES + len(record.payload)


def test_a_flipped_byte_anywhere_is_named_or_is_the_torn_tail(tmp_path: Path) -> None:
    records, _ = fill_unacknowledged(tmp_path / "whole")
    for place, file in enumerate(files(tmp_path / "whole")):
        is_last = place == 1
        data = file.read_bytes()
        for offset in range(len(data)):
            path = tmp_path / "flipped"
            shutil.copytree(tmp_path / "whole", path)
            (path / file.name).write_bytes(data[:offset] + bytes([data[offset] ^ 0x20]) + data[offset + 1 :])
            if is_last and offset >= records[-1].offset:
                log = FileOperationLog(path)
                assert [r[:4] for r in log.read(NOTHING)] == [r[:4] for r in records[:-1]]
                assert log.torn_bytes == len(data) - records[-1].offset
                log.close()
            else:
                with pytest.raises(Corruption, match=rf"{file.name}: offset \d+: "):
                    FileOperationLog(path)
            shutil.rmtree(path)


def test_damage_names_the_offset_of_the_record(tmp_path: Path) -> None:
    record = fill(tmp_path)[4]
    damage(Path(record.file), record.offset + log_format.RECORD_HEADER_BYTES)
    with pytest.raises(Corruption, match=f"{Path(record.file).name}: offset {record.offset}: a damaged record"):
        FileOperationLog(tmp_path)


def damage(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_repair_keeps_the_damaged_rest_and_goes_on(tmp_path: Path) -> None:
    records = fill(tmp_path)
    first = files(tmp_path)[0]
    second = files(tmp_path)[1].read_bytes()
    damage(first, records[1].offset + log_format.RECORD_HEADER_BYTES)
    damaged = first.read_bytes()
    log = FileOperationLog(tmp_path, repair=True)
    assert contents(log) == [(0, 1, 1, b"first")]
    log.append([NewRecord(0, b"new")])
    log.close()
    assert contents(FileOperationLog(tmp_path)) == [(0, 1, 1, b"first"), (0, 2, 1, b"new")]
    kept = {path.read_bytes() for path in tmp_path.glob("*.damaged")}
    assert kept == {damaged[records[1].offset :], second}


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    fill(tmp_path)
    log = FileOperationLog(tmp_path)
    log.skip_to(log.last())
    log.append([NewRecord(0, b"in file 3")])
    log.close()
    files(tmp_path)[1].unlink()
    with pytest.raises(Corruption, match="file 2 before it is missing"):
        FileOperationLog(tmp_path)


def test_a_sector_that_was_never_written_is_a_torn_append(tmp_path: Path) -> None:
    """A power cut may write the end of an append and not its middle; nothing of it was acknowledged."""
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(0, b"acknowledged")])
    size = log.size_bytes()
    end_before = (tmp_path / log_end.NAME).read_bytes()
    log.append([NewRecord(1, b"x" * 2000), NewRecord(2, b"y"), NewRecord(3, b"z")])
    log.close()
    (tmp_path / log_end.NAME).write_bytes(end_before)
    (path,) = files(tmp_path)
    data = bytearray(path.read_bytes())
    data[size + 100 : size + 1200] = bytes(1100)
    path.write_bytes(data)
    log = FileOperationLog(tmp_path)
    assert contents(log) == [(0, 1, 1, b"acknowledged")]
    log.close()


def test_files_rotate_and_are_trimmed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 1000)
    log = FileOperationLog(tmp_path)
    marks = [log.append([NewRecord(place % 3, b"x" * 300)]) for place in range(20)]
    assert len(files(tmp_path)) == 7
    applied = [START] * limits.PARTITIONS
    for place in range(10):
        applied[place % 3] = marks[place][0]
    log.trim(applied)
    assert len(files(tmp_path)) == 4
    assert len(contents(log, applied)) == 10
    log.close()
    assert len(contents(FileOperationLog(tmp_path), applied)) == 10


def test_a_file_that_cannot_be_removed_leaves_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 1000)
    log = FileOperationLog(tmp_path)
    for _ in range(12):
        log.append([NewRecord(0, b"x" * 300)])
    unlink, calls = os.unlink, 0

    def fail_once(*arguments: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            fail()
        unlink(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", fail_once)
        with pytest.raises(OSError, match="no disk"):
            log.trim(log.last())
        log.trim(log.last())
    assert calls > 3 and len(files(tmp_path)) == 1
    log.close()
    FileOperationLog(tmp_path).close()


def test_a_full_disk_refuses_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(0, b"a")])
    write = os.write

    def write_some(descriptor: int, data: memoryview) -> int:
        if len(data) < 60:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data[:50])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_some)
        with pytest.raises(NoSpace):
            log.append([NewRecord(0, b"b" * 100)])
    log.append([NewRecord(0, b"c")])
    log.close()
    assert contents(FileOperationLog(tmp_path)) == [(0, 1, 1, b"a"), (0, 2, 1, b"c")]


def fail(*_: object) -> None:
    raise OSError(errno.EIO, "no disk")


@pytest.mark.parametrize("broken", [["fdatasync"], ["fdatasync", "fsync"], ["write", "ftruncate"]])
def test_after_a_failed_sync_the_log_goes_on_when_the_disk_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: list[str]
) -> None:
    """What could not be synced is cut off, at the next append if need be, and is never read."""
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(0, b"a")])
    with monkeypatch.context() as patch:
        for name in broken:
            patch.setattr(os, name, fail)
        for _ in range(2):
            with pytest.raises(InternalError, match=r"the operation log cannot be written.*no disk"):
                log.append([NewRecord(0, b"b")])
    log.append([NewRecord(0, b"c")])
    assert contents(log) == [(0, 1, 1, b"a"), (0, 2, 1, b"c")]
    log.close()
    assert contents(FileOperationLog(tmp_path)) == [(0, 1, 1, b"a"), (0, 2, 1, b"c")]


def test_a_file_that_could_not_be_removed_is_removed_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next file could not be begun, nor removed again: the log goes on when the disk does."""
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 500)
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(0, b"x" * 500)])
    with monkeypatch.context() as patch:
        patch.setattr("paperwasp.coordination.operation_log._open_for_append", fail)
        patch.setattr(os, "unlink", fail)
        for _ in range(2):
            with pytest.raises(InternalError, match="no disk"):
                log.append([NewRecord(0, b"b")])
        assert len(files(tmp_path)) == 2
    log.append([NewRecord(0, b"c")])
    log.close()
    assert [payload for *_, payload in contents(FileOperationLog(tmp_path))] == [b"x" * 500, b"c"]


@pytest.mark.parametrize("broken", ["fsync", "rename", "open"])
def test_a_file_that_cannot_be_begun_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 500)
    log = FileOperationLog(tmp_path)
    log.append([NewRecord(0, b"x" * 500)])
    real = getattr(os, broken)
    calls = 0

    def fail_once(*arguments: object, **named: object) -> object:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError(errno.ENOSPC, "full")
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail_once)
        with pytest.raises(NoSpace):
            log.append([NewRecord(0, b"b")])
        assert len(files(tmp_path)) == 1
    log.append([NewRecord(0, b"c")])
    assert len(files(tmp_path)) == 2
    log.close()
    assert [payload for *_, payload in contents(FileOperationLog(tmp_path))] == [b"x" * 500, b"c"]


PARTITION = st.integers(0, limits.PARTITIONS - 1)
RECORDS = st.lists(st.tuples(PARTITION, st.binary(max_size=300), st.integers(0, 2**16 - 1)), max_size=20)
MARKS = st.lists(
    st.builds(Mark, st.integers(0, 2**64 - 100), st.integers(0, 2**32 - 1)),
    min_size=limits.PARTITIONS,
    max_size=limits.PARTITIONS,
)


@given(RECORDS, MARKS, st.integers(0, 2**64 - 1))
def test_records_are_read_back(records: list[tuple[int, bytes, int]], before: list[Mark], time_us: int) -> None:
    marks = list(before)
    data, appended = log_format.encode_records(records, marks, time_us)
    content = bytes(FILE_HEADER_BYTES) + data
    found = list(log_format.scan(content))
    assert [(raw.partition, content[raw.offset + RECORD_HEADER_BYTES : raw.end], raw.kind) for raw in found] == records
    assert [raw.mark for raw in found] == appended
    assert all((raw.time_us, raw.batch_start) == (time_us, FILE_HEADER_BYTES) for raw in found)
    assert (found[-1].end if found else FILE_HEADER_BYTES) == len(content)
    after = list(before)
    assert log_format.first_gap(found, after) is None and after == marks


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 63, 64, 65, 200_000])
def test_a_record_is_as_the_page_shows_it(size: int) -> None:
    payload = bytes(number * 7 & 255 for number in range(size))
    data, crcs = _core.log_records(RECORD_MAGIC, [(3, payload, 1)], [0, 0, 0, 41], 7)
    rest = struct.pack("<IHHQQI", size, 3, 1, 42, 7, 0) + payload
    assert crcs == [crc32(rest)]
    assert data == RECORD_MAGIC + struct.pack("<I", crc32(rest)) + rest


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(ValueError, match="no such partition"):
        _core.log_records(RECORD_MAGIC, [(1, b"", 1)], [0], 7)
    with pytest.raises(ValueError, match="four bytes"):
        _core.log_records(b"abc", [], [], 7)
    wrong: Any
    for wrong in ([(0, b"")], [(0, "text", 1)], [(-1, b"", 1)], [None]):
        with pytest.raises((TypeError, RuntimeError)):
            _core.log_records(RECORD_MAGIC, wrong, [0], 7)


def test_each_log_has_an_identity_that_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = []
    for name in ("one", "other", "one"):
        log = FileOperationLog(tmp_path / name)
        found.append(log.identity())
        assert log.identity() == found[-1] and len(bytes.fromhex(found[-1])) == 16
        assert [file.name for file in log.open_files()] == [f"{1:016d}.log", log_end.NAME], "a copy is another log"
        log.close()
    assert found[0] == found[2] != found[1]
    (tmp_path / "one" / "IDENTITY").write_text("damaged")
    log = FileOperationLog(tmp_path / "one")
    assert log.identity() not in found and "this names no log" in caplog.text
    log.close()
