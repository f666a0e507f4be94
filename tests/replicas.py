"""A second replica of each content node, for any test: PAPERWASP_REPLICAS=2.

Beside each node that a test opens, another reader of its log applies what the log has, in a directory of its own and
from the checkpoint that the node has begun with. It reads before the log is trimmed, and when the node is stopped; then
the digests of both are compared. What differs fails the test that runs, also where a child process has found it.
A replica that cannot go on, since the test has broken the log or applying, is given up and counted.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final

from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.node import ContentNode
from paperwasp.content.state.digest import digest
from paperwasp.content.state.replay import replay
from paperwasp.coordination.operation_log import Mark, OperationLog
from paperwasp.errors import Corruption
from paperwasp.storage.index.text_index import TextIndex

ENABLED: Final = os.environ.get("PAPERWASP_REPLICAS") == "2"
_NOTES: Final = "PAPERWASP_REPLICAS_NOTES"
"""The variable that names a file: a line for each comparison."""
_EQUAL: Final = "equal"
_GIVEN_UP: Final = "given up"
PRELUDE: Final = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r}); import tests.replicas as r; r.install()\n"
)
"""What a child process that serves is to execute first."""


class SecondReplica:
    """Another reader of the log of one node."""

    def __init__(self, node: ContentNode, directory: Path, log: OperationLog) -> None:
        self._node = node
        self._log = log
        self._lock = Lock()
        self._directory = Path(tempfile.mkdtemp(prefix="paperwasp-replica-"))
        self._removals_from_us = 0
        self._error: str | None = None
        for name in ("checkpoints", *(path.name for path in directory.glob("index-*"))):
            shutil.copytree(directory / name, self._directory / name)
        self._state = Checkpoints(self._directory, TextIndex).load()

    def read(self) -> None:
        """Applies what the log has more."""
        with self._lock:
            if self._error is None:
                try:
                    replay(self._log, self._state)
                except Exception as error:
                    self._error = repr(error)

    def give_up(self, reason: str) -> None:
        """There is nothing to compare any more."""
        self._error = self._error or reason

    def note_pruned(self, before_us: int) -> None:
        """The node has forgotten removals from before that time."""
        self._removals_from_us = max(self._removals_from_us, before_us)

    def compare(self) -> None:
        """Notes whether the node has the same. On its writer's thread."""
        self.read()
        if self._node.fault.reason is not None or self._error is not None:
            note(f"{_GIVEN_UP}: {self._node.fault.reason or self._error}")
            return
        try:
            own = digest(self._state, self._removals_from_us)
        except Corruption as error:  # of the checkpoint, of which the node may not have read this document
            note(f"{_GIVEN_UP}: {error}")
            return
        try:
            other = digest(self._node._current.state, self._removals_from_us)
        except Exception as error:
            note(f"no digest: {error!r}")
            return
        differing = [name for name in own._fields if getattr(own, name) != getattr(other, name)]
        note(f"different: {differing}" if differing else _EQUAL)

    def close(self) -> None:
        """Its folders stay, empty, while the process runs: a test may have noted their names."""
        self._state.store.close()
        self._state.index.close()
        for path in self._directory.rglob("*"):
            if path.is_file():
                path.unlink()
        atexit.register(shutil.rmtree, self._directory, True)


def install() -> None:
    """Gives each node that is opened in this process from now on a second replica."""
    open_node, stop, prune = ContentNode.__init__, ContentNode.stop, ContentNode.prune

    def opened(node: Any, directory: Path, log: Any, *given: Any, **named: Any) -> None:
        open_node(node, directory, log, *given, **named)
        replica = node.second_replica = SecondReplica(node, directory, log)
        trim: Callable[[Sequence[Mark]], None] = log.trim

        def trimmed(applied: Sequence[Mark]) -> None:
            replica.read()
            trim(applied)

        change_beside_log = node._consumer.change_beside_log

        def imported(change: Callable[[Any], object]) -> None:
            replica.give_up("a partition came or went, which is not in the log")
            change_beside_log(change)

        log.trim = trimmed
        node._consumer.change_beside_log = imported

    def stopped(node: Any, *, checkpoint: bool = True) -> None:
        if node.operations.is_closed:
            return
        node.operations.close()
        node.operations.run(node.second_replica.compare)
        node.operations.is_closed = False
        stop(node, checkpoint=checkpoint)
        node.second_replica.close()

    def pruned(node: Any, before_us: int, most: int) -> int:
        node.second_replica.note_pruned(before_us)
        return prune(node, before_us, most)

    ContentNode.__init__ = opened  # type: ignore[method-assign, assignment]
    ContentNode.stop = stopped  # type: ignore[method-assign, assignment]
    ContentNode.prune = pruned  # type: ignore[method-assign, assignment]


def note(text: str) -> None:
    with Path(os.environ[_NOTES]).open("a") as file:
        file.write(text + "\n")


def begin() -> None:
    """Enables all of this for the tests of this process and their children."""
    descriptor, path = tempfile.mkstemp(prefix="paperwasp-replicas-")
    os.close(descriptor)
    os.environ[_NOTES] = path
    install()


def differences() -> list[str]:
    """What has differed since the last call; forgets all notes."""
    path = Path(os.environ[_NOTES])
    lines = path.read_text().splitlines()
    path.write_text("")
    for line in lines:
        kind = line if line == _EQUAL else line.partition(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
    return [line for line in lines if line != _EQUAL and not line.startswith(_GIVEN_UP)]


counts: Final[dict[str, int]] = {}
"""Comparisons by how they ended."""
