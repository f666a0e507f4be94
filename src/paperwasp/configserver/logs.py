"""The log of this process as `vespa log` reads it: lines in a few files, which together never grow beyond a bound.

    epoch.seconds <tab> host <tab> process/thread <tab> service <tab> component <tab> level <tab> message

A tab, a line's end or a backslash in the message is written with a backslash. The file that is written has the
highest number; when it is full the next one is begun, and the oldest removed. What a crash cuts off is the end of the
last line.

Vespa: https://docs.vespa.ai/en/reference/logs.html
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from paperwasp import limits
from paperwasp.admin.monitoring.log_lines import vespa_line


class ServiceLog(logging.Handler):
    """Writes what is logged into files below `directory`. Any thread."""

    def __init__(self, directory: Path, host: str = "localhost") -> None:
        super().__init__(logging.INFO)
        self._directory = directory
        self._host = host
        self._file: IO[bytes] | None = None
        """None: it is opened when there is something to write, for the disk may have no room for it."""
        self._is_closed = False

    # Writing. `handle` holds the handler's lock around `emit`.

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_closed:
            return
        try:
            line = vespa_line(record, self._host, limits.SERVICE_LOG_MESSAGE_LENGTH).encode("utf-8", "replace")
            file = self._file_for(len(line))
            file.write(line)
            file.flush()
        except (OSError, ValueError):  # the disk is full: never the business of who logs
            self._close_file()
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 — the name is logging's
        """Drops the line: to say so would need a log."""

    def _file_for(self, size_bytes: int) -> IO[bytes]:
        """The file for a line of that size; the next one where the last is full. Errors: OSError."""
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._file = self._open(max(self._numbers(), default=1))
        if self._file.tell() + size_bytes > limits.SERVICE_LOG_FILE_BYTES and self._file.tell():
            self._file = self._rotated()
        return self._file

    def _rotated(self) -> IO[bytes]:
        self._close_file()
        numbers = sorted(self._numbers())
        file = self._open(numbers[-1] + 1 if numbers else 1)
        for number in numbers[: max(0, len(numbers) + 1 - limits.SERVICE_LOG_FILES)]:
            self._path(number).unlink(missing_ok=True)
        return file

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what could not be written is tried once more, and given up
                file.close()

    def close(self) -> None:
        self.acquire()
        try:
            self._is_closed = True
            self._close_file()
        finally:
            self.release()
        super().close()

    # Reading. Takes no lock: files are only appended to, and whole ones removed.

    def lines(self, start_ms: int, end_ms: int) -> Iterator[bytes]:
        """The lines from `start_ms` up to, without, `end_ms`, oldest first, each with its end."""
        for number in sorted(self._numbers()):
            path = self._path(number)
            try:
                if path.stat().st_mtime_ns // 1_000_000 < start_ms:
                    continue  # its last line is older
                with path.open("rb") as file:
                    for line in file:
                        time_ms = _time_ms(line)
                        if time_ms is not None and start_ms <= time_ms < end_ms and line.endswith(b"\n"):
                            yield line
            except FileNotFoundError:
                continue

    def text(self, start_ms: int, end_ms: int) -> bytes:
        """These lines as one text: the youngest of them, where they are more than an answer has room for."""
        kept: deque[bytes] = deque()
        size_bytes = 0
        for line in self.lines(start_ms, end_ms):
            kept.append(line)
            size_bytes += len(line)
            while size_bytes > limits.SERVICE_LOG_ANSWER_BYTES:
                size_bytes -= len(kept.popleft())
        return b"".join(kept)

    # Files

    def _numbers(self) -> list[int]:
        names = (path.name.removeprefix("vespa.log.") for path in self._directory.glob("vespa.log.*"))
        return [int(name) for name in names if name.isascii() and name.isdigit()]

    def _path(self, number: int) -> Path:
        return self._directory / f"vespa.log.{number}"

    def _open(self, number: int) -> IO[bytes]:
        """The file, to be appended to, from the beginning of a line on."""
        file = self._path(number).open("ab+")
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        return file


def _time_ms(line: bytes) -> int | None:
    """When it was written; None for what is no line of a log."""
    head, tab, _ = line.partition(b"\t")
    try:
        return int(float(head) * 1000) if tab else None
    except (ValueError, OverflowError):
        return None
