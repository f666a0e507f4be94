"""The queue before a content node's writer: operations, and actions that run between two batches.

What there is no room for, and what comes while the node cannot apply or is stopping, is refused here, before the log.
So are single operations of unknown document types; of plain changes that are added together, the producer refuses
them. Any thread may add; the writer's takes.

OperationQueue   what waits: the sides of those who add and of the writer, and its end
_Adding          one thread at a time adds; what it has added is handed to the writer as one
Adder            the call that adds one operation, with its errors (at the end of the file)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from queue import Empty, SimpleQueue
from threading import Lock

from paperwasp import limits
from paperwasp.content.fault import Fault
from paperwasp.content.log.gathering import Control, Gatherer, Items, OperationReply, QueuedOperation
from paperwasp.content.log.producer import Producer, type_of, unknown_type
from paperwasp.content.log.records import AnyOperation
from paperwasp.coordination.messages.documents import ApplyChanges
from paperwasp.errors import InternalError, Overload


class OperationQueue:
    """A bounded queue from which one thread takes batches."""

    def __init__(self, producer: Producer, fault: Fault) -> None:
        self._producer = producer
        self._fault = fault
        self._items: Items = SimpleQueue()
        self._gatherer = Gatherer(self._items)
        self._adding = _Adding(self)
        self._together: list[QueuedOperation] = []
        """Added, and not yet in the queue. Empty while nobody adds."""
        self.is_closed = False
        self._has_ended = False
        # What waits is their difference: the first of each pair is changed by who adds, the other by the writer.
        self._added, self._taken = 0, 0
        self._added_bytes, self._answered_bytes = 0, 0

    def submit(self, operation: AnyOperation, reply: OperationReply, size_bytes: int = 0) -> None:
        """Add one operation. Errors: those of `Adder`."""
        with self.adding() as add:
            add(operation, reply, size_bytes)

    def adding(self) -> AbstractContextManager[Adder]:
        """Add operations that come together: the writer is woken once for all of them, at the end."""
        return self._adding

    def add_changes(self, changes: ApplyChanges, replies: Iterable[OperationReply]) -> None:
        """Add all of some plain changes, which have a reply each. Only inside of `adding`.

        Errors: those of `Adder`, then none is added; but an unknown document type is the reply of its change."""
        self._check_room(len(changes.changes), changes.size_bytes)
        self._added += len(changes.changes)
        self._added_bytes += changes.size_bytes
        self._together += zip(changes.changes, replies, changes.sizes_bytes, strict=True)

    def _add(self, operation: AnyOperation, reply: OperationReply, size_bytes: int) -> None:
        self._check_room(1, size_bytes)
        if type_of(operation) not in self._producer.layout.types:
            raise unknown_type(type_of(operation))
        self._added += 1
        self._added_bytes += size_bytes
        self._together.append((operation, reply, size_bytes))

    def _check_room(self, count: int, size_bytes: int) -> None:
        self._fault.check()
        if self.is_closed:
            raise InternalError("the content node is stopping")
        if self._added - self._taken + count > limits.OPERATION_QUEUE_LENGTH:
            raise Overload(f"{limits.OPERATION_QUEUE_LENGTH} operations are waiting already")
        waiting_bytes = self._added_bytes - self._answered_bytes
        if waiting_bytes > 0 and waiting_bytes + size_bytes > limits.OPERATION_QUEUE_BYTES:
            raise Overload(f"operations of {waiting_bytes} bytes are waiting already")

    def waiting(self) -> int:
        """Return the number of operations that wait."""
        return self._added - self._taken

    def run(self, action: Callable[[], object]) -> None:
        """Run `action` on the writer thread, between two batches. Errors: what it raises."""
        self.add_action(action).result()

    def add_action(self, action: Callable[[], object]) -> Future[None]:
        """Queue an action for the writer thread; the future can be cancelled until it begins."""
        control = Control(action)
        self._put(control)
        return control.done

    def take(self) -> tuple[list[QueuedOperation], Control | None]:
        """Wait for the next batch, and return it with the action or the end that follows. The writer's thread."""
        batch, control = self._gatherer.take()
        self._taken += len(batch)
        return batch, control

    def note_answered(self, size_bytes: int) -> None:
        """Subtract `size_bytes` from the bytes of the operations that wait. The writer's thread."""
        self._answered_bytes += size_bytes

    def close(self) -> None:
        """Take no more operations. Actions are run until `end`."""
        self.is_closed = True

    def end(self) -> None:
        """End the thread that takes, once it has taken what is queued."""
        self._items.put(Control(None))

    def refuse_rest(self) -> None:
        """Answer what came too late, and what still comes, now that nobody takes any more."""
        self._has_ended = True
        self._refuse_queued()

    def _put_together(self) -> None:
        if self._together:
            self._put(self._together)
            self._together = []

    def _put(self, item: list[QueuedOperation] | Control) -> None:
        """Queue for the writer. What comes after its end is answered here."""
        self._items.put(item)
        if self._has_ended:
            self._refuse_queued()

    def _refuse_queued(self) -> None:
        error = InternalError("the content node is stopping")
        with suppress(Empty):
            while True:
                item = self._items.get_nowait()
                if isinstance(item, Control):
                    item.refuse(error)
                    continue
                for _, reply, _ in item:
                    reply(error)


class _Adding:
    """The turn of one thread at a time to add operations."""

    def __init__(self, queue: OperationQueue) -> None:
        self._queue = queue
        self._turn = Lock()

    def __enter__(self) -> Adder:
        self._turn.acquire()
        return self._queue._add

    def __exit__(self, *error: object) -> None:
        try:
            self._queue._put_together()
        finally:
            self._turn.release()


Adder = Callable[[AnyOperation, OperationReply, int], None]
"""Adds an operation with the bytes of its body; the reply gets its Outcome when it is durable and visible, or an error.

Errors, raised here: Overload when too many wait; InvalidInput for an unknown document type; NoSpace or InternalError
while the node cannot apply what it has logged.
"""
