"""Processes that tests start, watch through a pipe, and kill."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.service.warm import WarmProcess, can_be_warm

ROOT = Path(__file__).parent.parent


def start_child(module: str, *arguments: object) -> tuple[subprocess.Popen[Any], int]:
    """Start a module of the tests as a process of its own, with the number of a pipe's writing end as last argument.

    Returns the process and the pipe's reading end, which the caller closes.
    """
    reading, writing = os.pipe()
    command = [sys.executable, "-m", module, *map(str, arguments), str(writing)]
    kind = WarmProcess if can_be_warm() else subprocess.Popen[Any]
    child = kind(command, pass_fds=[writing], cwd=ROOT)
    os.close(writing)
    return child, reading
