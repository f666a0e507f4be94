"""The files of a log, in one folder, which together never grow beyond a bound.

    JsonAccessLog.default                        a link to the file that is written
    JsonAccessLog.default.20261123170000         the file that is written
    JsonAccessLog.default.20261123160000.zst     one from before

A file is ended when it is large or the next hour begins, and compressed then. When all of them are too large, the
oldest are removed. A line is in a file whole or not at all, also where the disk is full: what could not be written is
counted, and writing is tried again with the next lines. Only what kills the process, or the machine, may cut a line:
the last one of its file, since every start begins another.

One thread writes.
"""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, Literal

from paperwasp.limits.monitoring import LOG_FILE_BYTES, LOG_FILES_BYTES

_LOG: Final = logging.getLogger("paperwasp.monitoring")
_HOUR: Final = 3600
_ENDS: Final = {"zstd": ".zst", "gzip": ".gz"}
Compression = Literal["zstd", "gzip", "none"]


class LogFiles:
    """The files of one log."""

    def __init__(
        self,
        directory: Path,
        name: str,
        compression: Compression = "zstd",
        now: Callable[[], float] = time.time,
        file_bytes: int = LOG_FILE_BYTES,
        all_bytes: int = LOG_FILES_BYTES,
    ) -> None:
        """`name` is of letters, digits, `.`, `_` and `-`. Nothing is opened before the first line."""
        self._directory = directory
        self._name = name
        self._compression = compression
        self._now = now
        self._file_bytes = file_bytes
        self._all_bytes = all_bytes
        self._file: FileIO | None = None
        self._path = directory / name
        self._hour = 0
        self._begun = ("", 0)
        """When the last file was begun, and how many were at the same second."""
        self._size_bytes = 0
        self._is_failing = False
        self.lost_lines = 0
        self._needs_care = True
        """Whether there may be files to compress or to remove."""

    def write(self, lines: Sequence[bytes]) -> None:
        """Appends lines, each with its end. What cannot be written is counted, and never an error."""
        data = b"".join(lines)
        try:
            file = self._file_for(len(data))
            try:
                _write_all(file, data)
            except OSError:
                self._cut_back()
                raise
            self._size_bytes += len(data)
        except OSError as error:
            self.lost_lines += len(lines)
            if not self._is_failing:
                self._is_failing = True
                _LOG.warning("%s cannot be written, and lines are lost: %s", self._path, error.strerror or error)
            return
        if self._is_failing:
            self._is_failing = False
            _LOG.warning("%s is written again; %d lines were lost", self._path, self.lost_lines)

    def take_care(self) -> None:
        """Compresses files that were ended, and removes the oldest of too many."""
        if not self._needs_care:
            return
        self._needs_care = False
        try:
            for path in self._others():
                if self._compression != "none" and path.suffix not in _ENDS.values():
                    _compress(path, self._compression)
            self._remove_oldest()
        except OSError as error:
            _LOG.warning("A file of %s was not compressed: %s", self._name, error.strerror or error)

    def close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _file_for(self, size_bytes: int) -> FileIO:
        """The file that takes the next `size_bytes` bytes. Errors: OSError."""
        is_full = self._size_bytes > 0 and self._size_bytes + size_bytes > self._file_bytes
        if self._file is not None and (is_full or self._hour != int(self._now()) // _HOUR):
            self.close()
        if self._file is None:
            self._file = self._open()
        return self._file

    def _open(self) -> FileIO:
        self._directory.mkdir(parents=True, exist_ok=True)
        now = self._now()
        self._path = self._new_path(time.strftime("%Y%m%d%H%M%S", time.gmtime(now)))
        file = FileIO(self._path, "xb")
        self._hour, self._size_bytes = int(now) // _HOUR, 0
        self._needs_care = True
        with suppress(OSError):
            self._link()
        return file

    def _new_path(self, stamp: str) -> Path:
        """A name that there is not, behind all others by the alphabet."""
        number = self._begun[1] if self._begun[0] == stamp else 0
        while True:
            number += 1
            path = self._directory / f"{self._name}.{stamp}{f'_{number:03}' if number > 1 else ''}"
            if not _is_taken(path):
                self._begun = stamp, number
                return path

    def _link(self) -> None:
        link = self._directory / f".{self._name}.link"
        link.unlink(missing_ok=True)
        link.symlink_to(self._path.name)
        link.replace(self._directory / self._name)

    def _cut_back(self) -> None:
        """Removes what was written of lines that could not be written whole."""
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._size_bytes)
                self._file.seek(self._size_bytes)

    def _others(self) -> list[Path]:
        """The files but the one that is written, oldest first."""
        found = (path for path in self._directory.glob(f"{self._name}.[0-9]*") if not path.name.endswith(_UNFINISHED))
        return sorted(path for path in found if self._file is None or path != self._path)

    def _remove_oldest(self) -> None:
        sizes = [(path, path.stat().st_size) for path in self._others()]
        total = sum(size for _, size in sizes) + self._file_bytes
        for path, size in sizes:
            if total <= self._all_bytes:
                return
            path.unlink(missing_ok=True)
            total -= size


_UNFINISHED: Final = ".unfinished"


def _write_all(file: FileIO, data: bytes) -> None:
    """Errors: OSError, with a part of it written."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _is_taken(path: Path) -> bool:
    return any(Path(f"{path}{end}").exists() for end in ("", *_ENDS.values()))


def _compress(path: Path, compression: Compression) -> None:
    """Replaces the file by a compressed one. Errors: OSError, with nothing changed."""
    import zstandard

    target = Path(f"{path}{_ENDS[compression]}")
    unfinished = Path(f"{target}{_UNFINISHED}")
    try:
        with path.open("rb") as source, unfinished.open("wb") as sink:
            if compression == "zstd":
                zstandard.ZstdCompressor(level=3).copy_stream(source, sink)
            else:
                with gzip.open(sink, "wb", compresslevel=6) as packed:
                    shutil.copyfileobj(source, packed)
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    path.unlink()
