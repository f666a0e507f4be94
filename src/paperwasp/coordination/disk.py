"""Writing small files so that a crash leaves the old one or the new one, never a piece.

The calls of the operating system are a value (`Disk`), so that a test can let any of them be the last one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

_TEMPORARY: Final = ".tmp-"


class Disk(Struct, frozen=True):
    """The calls by which files are changed."""

    open: Callable[[Path, int, int], int] = os.open
    write: Callable[[int, memoryview], int] = os.write
    fsync: Callable[[int], None] = os.fsync
    close: Callable[[int], None] = os.close
    replace: Callable[[Path, Path], None] = os.replace
    unlink: Callable[[Path], None] = os.unlink
    mkdir: Callable[[Path], None] = os.mkdir

    def write_whole(self, path: Path, content: bytes) -> None:
        """Makes `path` a file of that content; durable when it returns.

        The content is synced before the name is given to it, and the folder afterwards.
        """
        temporary = path.with_name(_TEMPORARY + path.name)
        self._write_synced(temporary, content)
        self.replace(temporary, path)
        self._sync_directory(path.parent)

    def remove(self, path: Path) -> None:
        """Removes the file, if it is there; durable when it returns."""
        try:
            self.unlink(path)
        except FileNotFoundError:
            return
        self._sync_directory(path.parent)

    def make_directory(self, path: Path) -> None:
        """Makes the folder, and those above it, if it is not there; its name is durable when it returns.

        Who made it before may have ended before it was.
        """
        if path.is_dir():
            with suppress(PermissionError):  # a folder above that is not ours to read
                self._sync_directory(path.parent)
            return
        if not path.parent.is_dir():
            self.make_directory(path.parent)
        with suppress(FileExistsError):
            self.mkdir(path)
        self._sync_directory(path.parent)

    def remove_temporary(self, directory: Path) -> None:
        """Removes what a crash in `write_whole` left behind."""
        for path in directory.glob(_TEMPORARY + "*"):
            self.unlink(path)

    def _write_synced(self, path: Path, content: bytes) -> None:
        descriptor = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o640)
        try:
            remaining = memoryview(content)
            while remaining:
                remaining = remaining[self.write(descriptor, remaining) :]
            self.fsync(descriptor)
        finally:
            self.close(descriptor)

    def _sync_directory(self, path: Path) -> None:
        descriptor = self.open(path, os.O_RDONLY | os.O_CLOEXEC, 0)
        try:
            self.fsync(descriptor)
        finally:
            self.close(descriptor)


REAL_DISK: Final = Disk()
