"""Logs: lines in three forms, and files of lines.

Whatever is logged, a record is one line, and says who logged it. Files end in time, are compressed and removed, and
survive a full disk.
"""

from __future__ import annotations

import errno
import gzip
import logging
import sys
from io import FileIO
from pathlib import Path

import orjson
import pytest
import zstandard

from paperwasp.admin.monitoring import log_files
from paperwasp.admin.monitoring.log_files import Compression, LogFiles
from paperwasp.admin.monitoring.log_lines import LOG_FORMATS, LogFormat, formatter

NAME = "JsonAccessLog.default"
NOON = 1_795_435_200.0


def read(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(content).read()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def files_in(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if not path.is_symlink())


def numbers_in(directory: Path) -> list[int]:
    """Of all lines, in the order of the files; each line is whole."""
    lines = b"".join(read(path) for path in files_in(directory)).splitlines(keepends=True)
    assert all(line.endswith(b" end\n") for line in lines)
    return [int(line.split()[0]) for line in lines]


def line(number: int) -> bytes:
    return b"%08d end\n" % number


def test_a_file_is_made_with_the_first_line(tmp_path: Path) -> None:
    files = LogFiles(tmp_path / "access", NAME, now=lambda: NOON)
    assert not (tmp_path / "access").exists()
    files.write([line(1), line(2)])
    (path,) = files_in(tmp_path / "access")
    assert path.name == f"{NAME}.20261123120000"
    assert (tmp_path / "access" / NAME).read_bytes() == line(1) + line(2), "the link leads to it"
    files.close()


@pytest.mark.parametrize("compression", ["zstd", "gzip", "none"])
def test_every_hour_and_every_full_file_is_another(tmp_path: Path, compression: Compression) -> None:
    now = [NOON]
    files = LogFiles(tmp_path, NAME, compression, lambda: now[0], file_bytes=3 * len(line(0)))
    for number in range(7):
        files.write([line(number)])
        files.take_care()
    now[0] += 3600
    files.write([line(7)])
    files.take_care()
    end = {"zstd": ".zst", "gzip": ".gz", "none": ""}[compression]
    assert [path.name.removeprefix(NAME + ".") for path in files_in(tmp_path)] == [
        "20261123120000" + end,
        "20261123120000_002" + end,
        "20261123120000_003" + end,
        "20261123130000",
    ]
    assert numbers_in(tmp_path) == list(range(8))
    files.close()


def test_the_oldest_make_room_under_load(tmp_path: Path) -> None:
    all_bytes, file_bytes = 200_000, 20_000
    files = LogFiles(tmp_path, NAME, "none", lambda: NOON, file_bytes, all_bytes)
    total = 100_000
    for start in range(0, total, 100):
        files.write([line(number) for number in range(start, start + 100)])
        files.take_care()
        if start % 10_000 == 0:
            assert sum(path.stat().st_size for path in files_in(tmp_path)) <= all_bytes
    kept = numbers_in(tmp_path)
    assert kept == list(range(kept[0], total))
    assert len(kept) * len(line(0)) > all_bytes - 2 * file_bytes
    files.close()


def test_what_an_earlier_process_has_left_is_compressed(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.20261123110000").write_bytes(line(1))
    (tmp_path / f"{NAME}.20261123100000.zst.unfinished").write_bytes(b"a part")
    other = tmp_path / "JsonAccessLog.other.20261123110000"
    other.write_bytes(line(5))
    files = LogFiles(tmp_path, NAME, now=lambda: NOON)
    files.write([line(2)])
    files.take_care()
    assert read(tmp_path / f"{NAME}.20261123110000.zst") == line(1)
    assert other.read_bytes() == line(5)
    files.close()


def test_a_full_disk_costs_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = LogFiles(tmp_path, NAME, now=lambda: NOON)
    files.write([line(1)])
    write_all = log_files._write_all

    def fail(file: FileIO, data: bytes) -> None:
        write_all(file, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(log_files, "_write_all", fail)
    files.write([line(2), line(3), line(4)])
    assert (files.lost_lines, numbers_in(tmp_path)) == (3, [1])
    monkeypatch.undo()
    files.write([line(5)])
    assert numbers_in(tmp_path) == [1, 5]
    files.close()


def test_a_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "access").write_text("a file")
    files = LogFiles(tmp_path / "access", NAME, now=lambda: NOON)
    for number in range(3):
        files.write([line(number)])
        files.take_care()
    assert files.lost_lines == 3
    assert len([record for record in caplog.records if "cannot be written" in record.message]) == 1
    (tmp_path / "access").unlink()
    files.write([line(9)])
    assert numbers_in(tmp_path / "access") == [9]
    files.close()


def test_a_file_that_cannot_be_compressed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOON]
    files = LogFiles(tmp_path, NAME, now=lambda: now[0])
    files.write([line(1)])
    now[0] += 3600

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zstandard.ZstdCompressor, "copy_stream", full, raising=False)
    files.write([line(2)])
    files.take_care()
    assert numbers_in(tmp_path) == [1, 2]
    files.close()


def _record(message: str, *, fails: bool = False, name: str = "paperwasp.content.node") -> logging.LogRecord:
    error = None
    if fails:
        try:
            raise ValueError("a\nb")
        except ValueError:
            error = sys.exc_info()
    made = logging.LogRecord(name, logging.WARNING, "file.py", 1, message, (), error)
    made.created, made.process, made.thread, made.threadName = 1000.25, 12, 345, "writer"
    return made


def test_json() -> None:
    assert orjson.loads(formatter("json", "h").format(_record("two\nlines"))) == {
        "time": "1970-01-01T00:16:40.250000Z",
        "level": "WARNING",
        "service": "content",
        "logger": "paperwasp.content.node",
        "message": "two\nlines",
        "process": 12,
        "thread": "writer",
    }


def test_vespa() -> None:
    """Authority: Vespa's page on log files: seconds, host, process/thread, service, component, level, message."""
    line = formatter("vespa", "host1").format(_record("a\tb"))
    assert line == "1000.250000\thost1\t12/345\tcontent\tpaperwasp.content.node\twarning\ta\\tb"


def test_text() -> None:
    assert formatter("text", "h").format(_record("hello")).endswith("WARNING paperwasp.content.node: hello")


@pytest.mark.parametrize("form", [form for form in LOG_FORMATS if form != "text"])
@pytest.mark.parametrize("message", ["plain", "a\r\nb\tc\\", "\x00\x1b[31m", "\ud800", "\u2028é😀"])
def test_a_record_is_one_line(form: LogFormat, message: str) -> None:
    line = formatter(form, "h").format(_record(message, fails=True, name="asyncio"))
    assert "\n" not in line
    assert "\r" not in line
    assert "ValueError" in line
    if form == "json":
        assert orjson.loads(line)["service"] == "paperwasp"
