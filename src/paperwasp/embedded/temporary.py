"""Data directories that go with the process, also when it is killed.

A shell waits for the end of a pipe that only this process holds: when the process is gone, however it ended, the shell
removes the directory. The process removes it itself where it can.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

_REMOVE: Final = 'trap "" INT TERM HUP; read -r _; rm -rf -- "$1"'


class TemporaryDirectory:
    """A new directory, removed by `close`, or when the process has ended."""

    def __init__(self) -> None:
        """Errors: OSError."""
        self.path = Path(tempfile.mkdtemp(prefix="paperwasp-"))
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

    def close(self) -> None:
        """Removes the directory."""
        if self._pipe < 0:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._pipe)
        self._pipe = -1
        self._remover.wait()
