"""The child of test_kill_steps.py: works on a node, and ends itself before one of its changes of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodes import put, remove, start, update

from paperwasp import limits
from paperwasp.document.operations import Operation

KILLED = 9
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree"}

BATCHES: list[list[Operation]] = [
    [put(k, year=k, title=f"word{k}", tags=["a"]) for k in range(30)],
    [update(k, year=-k) for k in range(5)] + [update(k, note="n") for k in range(5, 10)],
    [remove(k) for k in range(10, 15)] + [put(k, genre="g") for k in range(20, 40)],
]


def work(path: Path, acknowledge: Callable[[int], None]) -> None:
    """Two lives of a node: in the first a checkpoint between batches; both end with a stop."""
    node = start(path)
    node.apply(*BATCHES[0])
    acknowledge(1)
    node.node.checkpoint()
    node.apply(*BATCHES[1])
    acknowledge(2)
    node.close()
    node = start(path)
    node.apply(*BATCHES[2])
    acknowledge(3)
    node.node.checkpoint()
    node.close()


def die_before(step: int) -> None:
    """Ends this process before its `step`-th change of files."""
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os._exit(KILLED)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any) -> Any:
            count()
            return call(*arguments)

        return wrapper

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if event in EVENTS or opened:
            count()

    for name in ("fsync", "fdatasync", "ftruncate"):
        setattr(os, name, counted(getattr(os, name)))
    sys.addaudithook(audit)


def main(path: Path, step: int, descriptor: int) -> None:
    limits.LOG_FILE_BYTES = 2_000  # type: ignore[misc]
    limits.DEAD_ROWS_LEAST = 5  # type: ignore[misc]
    limits.DEAD_ROWS_SHARE = 0.1  # type: ignore[misc]
    die_before(step)
    work(path, lambda batch: os.write(descriptor, bytes([batch])) and None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
