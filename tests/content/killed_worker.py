"""The child of test_kill_steps.py: works on a node, and ends itself before one of its changes of files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paperwasp import limits
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.document.operations import Operation
from paperwasp.document.types import LONG, STRING, array_of
from paperwasp.schema.model import Field
from tests.content.nodes import ATTRIBUTE, INDEX, MUSIC_FIELDS, SCHEMAS, put, reindexed, remove, schema, start, update
from tests.content.row_checks import fill_rows

KILLED = 9
EVENTS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "shutil.rmtree"}

BATCHES: list[list[Operation]] = [
    [put(k, year=k, title=f"word{k}", tags=["a"]) for k in range(30)],
    [*(update(k, year=-k) for k in range(5)), *(update(k, note="n") for k in range(5, 10))],
    [*(remove(k) for k in range(10, 15)), *(put(k, genre="g") for k in range(20, 40))],
]


CHANGED = [field for field in MUSIC_FIELDS if field.name not in ("year", "tags", "note", "lyrics")]
NEXT_SCHEMAS = {
    "music": schema(
        "music",
        *CHANGED,
        Field("year", LONG),
        Field("note", STRING, attribute=ATTRIBUTE),
        Field("lyrics", array_of(STRING), attribute=ATTRIBUTE),
        Field("text", STRING, index=INDEX),
    )
}
"""`year` is another type and no attribute, `tags` and the book are gone, `note` is an attribute, `lyrics` no index."""


def work(path: Path, acknowledge: Callable[[int], object]) -> None:
    """Two lives of a node: in the first a checkpoint between batches, and another layout; both end with a stop."""
    node = start(path)
    node.apply(*BATCHES[0])
    acknowledge(1)
    node.node.checkpoint()
    fill_rows(node.node)
    node.apply(*BATCHES[1])
    acknowledge(2)
    node.node.configure(2, NEXT_SCHEMAS)
    acknowledge(3)
    reindexed(node.node, ReindexRequest("music", b"", 12))
    node.close()
    node = start(path, None)
    node.node.configure(2, NEXT_SCHEMAS)
    node.apply(*BATCHES[2])
    acknowledge(4)
    fill_rows(node.node)
    reindexed(node.node, ReindexRequest("music", b"", 100))
    node.node.checkpoint()
    node.node.configure(3, SCHEMAS)
    acknowledge(5)
    fill_rows(node.node)
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
    work(path, lambda batch: os.write(descriptor, bytes([batch])))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
