"""The child of test_config_kill_steps.py: deploys, and ends itself before one of its changes of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.configserver.deploy_fixtures import config_server
from tests.configserver.test_config_crashes import STEPS

KILLED = 9
EVENTS = {"os.rename", "os.remove", "os.mkdir"}


def die_before(step: int) -> None:
    """Ends this process before its `step`-th change of files."""
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(KILLED)

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in EVENTS or opened:
            count()

    sys.addaudithook(audit)


def main(path: Path, step: int, acknowledge: Callable[[int], object]) -> None:
    server = config_server(path)
    server.restore()
    die_before(step)
    for number, (_, take) in enumerate(STEPS, 1):
        take(server)
        acknowledge(number)


if __name__ == "__main__":
    descriptor = int(sys.argv[3])
    main(Path(sys.argv[1]), int(sys.argv[2]), lambda number: os.write(descriptor, bytes([number])))
