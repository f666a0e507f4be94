"""The log that `vespa log` reads: its lines, its bounds, what a crash leaves, and reading while others write."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.configserver import ServiceLog

FULL = Path("/dev/full")
"""Whatever is written to it finds no room."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ServiceLog]:
    log = ServiceLog(tmp_path, "myhost")
    yield log
    log.close()


def record(
    message: str, created: float = 1000.25, level: int = logging.INFO, name: str = "paperwasp"
) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "file.py", 1, message, (), None)
    made.created, made.process, made.thread = created, 12, 345
    return made


def test_a_line_has_seven_fields(log: ServiceLog) -> None:
    log.handle(record("a\tb\nc\\d", level=logging.WARNING, name="paperwasp.content.node"))
    log.handle(record("plain", level=logging.CRITICAL, name="asyncio"))
    assert log.text(0, 10**9) == (
        b"1000.250000\tmyhost\t12/345\tcontent\tpaperwasp.content.node\twarning\ta\\tb\\nc\\\\d\n"
        b"1000.250000\tmyhost\t12/345\tpaperwasp\tasyncio\terror\tplain\n"
    )


def test_an_exception_is_one_line(log: ServiceLog) -> None:
    logger = logging.Logger("paperwasp.x")
    logger.addHandler(log)
    try:
        raise ValueError("oops")
    except ValueError:
        logger.exception("it failed")
    (line,) = log.lines(0, 2**60)
    assert b"it failed\\nTraceback" in line and b"ValueError: oops" in line


def test_what_is_below_info_is_left_out(log: ServiceLog) -> None:
    logger = logging.Logger("paperwasp.x", logging.DEBUG)
    logger.addHandler(log)
    logger.debug("no")
    logger.info("yes")
    assert len(list(log.lines(0, 2**60))) == 1


def test_a_stretch_of_time(log: ServiceLog) -> None:
    for second in range(10):
        log.handle(record(str(second), created=100.0 + second))
    assert [line.split(b"\t")[-1].strip() for line in log.lines(103_000, 106_000)] == [b"3", b"4", b"5"]
    assert log.text(0, 100_000) == log.text(110_000, 2**60) == b""


def test_files_do_not_grow_beyond_their_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_LOG_FILE_BYTES", 1000)
    monkeypatch.setattr(limits, "SERVICE_LOG_FILES", 3)
    log = ServiceLog(tmp_path)
    for number in range(500):
        log.handle(record(f"m{number}", created=float(number)))
    log.close()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 3 and max(sizes) <= 1000
    again = ServiceLog(tmp_path)
    again.handle(record("after", created=500.0))
    last = [line.split(b"\t")[-1] for line in again.lines(0, 2**60)][-3:]
    assert last == [b"m498\n", b"m499\n", b"after\n"]
    again.close()


def test_an_answer_has_the_youngest_lines(log: ServiceLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_LOG_ANSWER_BYTES", 150)
    for number in range(50):
        log.handle(record(f"m{number}"))
    assert log.text(0, 2**60).split(b"\n")[-2].endswith(b"m49")
    assert 50 < len(log.text(0, 2**60)) <= 150


def test_a_torn_line_is_left_out_and_the_next_begins_anew(tmp_path: Path) -> None:
    log = ServiceLog(tmp_path)
    log.handle(record("whole"))
    log.close()
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes() + b"1000.3\ttorn")
    assert log.text(0, 2**60).count(b"\n") == 1
    again = ServiceLog(tmp_path)
    again.handle(record("next"))
    again.close()
    assert [line.split(b"\t")[-1] for line in again.lines(0, 2**60)] == [b"whole\n", b"torn\n", b"next\n"]


def test_long_messages_are_cut_and_closed_logs_swallow(log: ServiceLog) -> None:
    log.handle(record("x" * 10**6))
    assert len(log.text(0, 2**60)) < 2 * limits.SERVICE_LOG_MESSAGE_LENGTH
    log.close()
    log.handle(record("too late"))


def test_many_write_while_one_reads(log: ServiceLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SERVICE_LOG_FILE_BYTES", 2000)

    def write(name: str) -> None:
        for number in range(200):
            log.handle(record(f"{name}{number}"))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert all(line.count(b"\t") == 6 for line in log.lines(0, 2**60))
    for thread in threads:
        thread.join()


def test_a_disk_without_room_for_the_log_keeps_nobody_from_starting(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    log = ServiceLog(tmp_path / "logs")
    log.handle(record("lost"))
    (tmp_path / "logs").unlink()
    log.handle(record("kept"))
    assert [line.split(b"\t")[-1] for line in log.lines(0, 2**60)] == [b"kept\n"]
    log.close()


@pytest.mark.skipif(not FULL.exists(), reason="there is no such device")
def test_a_log_on_a_full_disk_ends_in_peace_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    log = ServiceLog(tmp_path)
    (tmp_path / "vespa.log.1").symlink_to(FULL)
    log.handle(record("lost"))
    (tmp_path / "vespa.log.1").unlink()
    log.handle(record("kept"))
    assert [line.split(b"\t")[-1] for line in log.lines(0, 2**60)] == [b"kept\n"]
    (tmp_path / "vespa.log.1").unlink()
    (tmp_path / "vespa.log.1").symlink_to(FULL)
    log.close()
    log.handle(record("after the end"))
