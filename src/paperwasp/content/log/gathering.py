"""Gathers the batches of a content node's writer: how many operations it takes from its queue at once.

A batch costs as much as a dozen of its operations. So where operations come in numbers, the writer waits a moment for
those that the last answers have set free, but for half of them: while it works on these, the event loop reads the
others. A client that sends one operation at a time never waits for that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue

from paperwasp import limits
from paperwasp.content.log.records import AnyOperation

OperationReply = Callable[[object], None]
"""Takes the Outcome, or the error. Called on the writer thread: it must be quick and must not raise."""
QueuedOperation = tuple[AnyOperation, OperationReply, int]
"""An operation, its reply, and the bytes of its body."""
Items = SimpleQueue["Sequence[QueuedOperation] | Control"]
"""Operations that came together, in order, and what is to be done between those before and those after it."""


class Control:
    """An action of the writer between batches, unless `done` is cancelled before its turn. None: the end."""

    def __init__(self, action: Callable[[], object] | None) -> None:
        self.action = action
        self.done: Future[None] = Future()

    def run(self) -> None:
        assert self.action is not None
        if not self.done.set_running_or_notify_cancel():
            return
        try:
            self.action()
        except BaseException as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)

    def refuse(self, error: Exception) -> None:
        """End it without doing anything."""
        if self.done.set_running_or_notify_cancel():
            self.done.set_exception(error)


class Gatherer:
    """Takes batches from a queue. One thread, the writer's."""

    def __init__(self, queue: Items) -> None:
        self._queue = queue
        self._under_way = 0
        """Operations that clients may well have under way at a time, by the last batches."""
        self._last_length = 0

    def take(self) -> tuple[list[QueuedOperation], Control | None]:
        """Take what waits, up to a batch and to the first control; block until there is something."""
        batch = _Batch()
        batch.add(self._queue.get())
        batch.drain(self._queue)
        for _ in range(limits.GATHERING_PAUSES):
            length = len(batch.operations)
            if batch.is_full or 2 * length >= self._under_way:
                break
            time.sleep(limits.GATHERING_SECONDS)
            batch.drain(self._queue)
            if len(batch.operations) == length:
                break
        length = len(batch.operations)
        self._under_way = max(length + self._last_length, self._under_way - 1 - self._under_way // 8)
        self._last_length = length
        return batch.operations, batch.control


class _Batch:
    """The operations that are taken at once, and the control after them."""

    def __init__(self) -> None:
        self.operations: list[QueuedOperation] = []
        self.control: Control | None = None
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be taken."""
        return (
            self.control is not None
            or len(self.operations) >= limits.LOG_BATCH_OPERATIONS
            or self._size_bytes >= limits.LOG_BATCH_BYTES
        )

    def add(self, item: Sequence[QueuedOperation] | Control) -> None:
        if isinstance(item, Control):
            self.control = item
        else:
            self.operations.extend(item)
            self._size_bytes += sum([size_bytes for _, _, size_bytes in item])

    def drain(self, queue: Items) -> None:
        """Add what is in the queue now."""
        while not queue.empty() and not self.is_full:  # nobody else takes
            self.add(queue.get_nowait())
