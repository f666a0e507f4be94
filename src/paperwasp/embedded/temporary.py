"""Data directories that go with the process, also when it is killed.

A shell waits for the end of a pipe that only this process holds: when the process is gone, however it ended, the shell
removes the directory. The process removes it itself where it can.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import weakref
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")
_LEAST_FREE_BYTES: Final = 1 << 30
_REMOVE: Final = 'trap "" INT TERM HUP; read -r _; rm -rf -- "$1"'


class TemporaryDirectory:
    """A new directory, removed by `close`, or when the process has ended."""

    def __init__(self, parent: Path | None = None) -> None:
        """`parent`: where it is made; None: where temporary files are. Errors: OSError."""
        self.path = Path(tempfile.mkdtemp(prefix="paperwasp-", dir=parent))
        reading, self._pipe = os.pipe()  # not inherited by other children
        try:
            self._remover = subprocess.Popen(
                ["/bin/sh", "-c", _REMOVE, "sh", str(self.path)],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(reading)
        _OPEN.add(self)

    def leave(self) -> None:
        """Lets the directory go with the process that made it, of which this one is a fork."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def close(self) -> None:
        """Removes the directory."""
        if self._pipe < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._pipe)
        self._pipe = -1
        self._remover.wait()


_OPEN: Final[weakref.WeakSet[TemporaryDirectory]] = weakref.WeakSet()


def _leave_all() -> None:
    for directory in list(_OPEN):
        directory.leave()


os.register_at_fork(after_in_child=_leave_all)


def memory_directory() -> Path | None:
    """A folder whose files are in memory, where syncing them takes no time.

    None: there is none with a gigabyte of room, or `TMPDIR` says where temporary files are to be.
    """
    if os.environ.get("TMPDIR"):
        return None
    try:
        has_room = shutil.disk_usage(_MEMORY).free >= _LEAST_FREE_BYTES
    except OSError:
        return None
    return _MEMORY if has_room and os.access(_MEMORY, os.W_OK | os.X_OK) else None
