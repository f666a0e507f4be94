"""The one thread that changes a content node: takes what waits, has it logged and applied, and answers.

    take a batch → producer: encode, log → consumer: apply, publish → replies → a checkpoint, where one is due

The two halves run by turns here, and know nothing of each other: what is logged is applied before the next batch is
taken, so two threads would only wait for each other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import Final

from paperwasp import limits
from paperwasp.base.measurements import Numbers
from paperwasp.base.yielding import switching_soon, yielding_if_large
from paperwasp.content.checkpoints.checkpoint_writer import CheckpointWriter
from paperwasp.content.consumer import Consumer, UnfitEntries
from paperwasp.content.fault import Fault
from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.log.gathering import OperationReply, QueuedOperation
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.log.producer import Producer
from paperwasp.content.log.records import LoggedBatch
from paperwasp.content.state.node_state import NodeState
from paperwasp.coordination.messenger import answer_all
from paperwasp.core.object_memory import is_worth, outside_arenas
from paperwasp.document.operations import Outcome

_LOGGER: Final = logging.getLogger(__name__)


class Writer:
    """The writer thread of a content node. It ends when the queue does."""

    def __init__(
        self,
        queue: OperationQueue,
        producer: Producer,
        consumer: Consumer,
        fault: Fault,
        checkpoints: CheckpointWriter,
        commits: tuple[Numbers, Numbers],
    ) -> None:
        """`commits` is given the seconds and the operations of each batch."""
        self._queue = queue
        self._producer = producer
        self._consumer = consumer
        self._fault = fault
        self._checkpoints = checkpoints
        self._commit_seconds, self._commit_operations = commits
        self._unfit: tuple[LoggedBatch, Sequence[int]] | None = None
        """Entries that are logged, cannot be applied, and are not refused by the log yet."""
        self._thread = Thread(target=self._run, name="content-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def configure(self, configured: Configuration) -> None:
        """Go on under these schemas. On this thread, between two batches.

        Errors: InvalidInput, NoSpace, InternalError: with nothing changed, or that the change is logged and is made
        later.
        """
        self._fault.check()
        self._consumer.configure(configured, self._producer.configure(configured))

    def recover(self) -> None:
        """End a fault, where there is one. On this thread, between two batches. Errors: why it cannot."""
        self._refuse_unfit()
        self._consumer.recover()

    def apply(self, batch: LoggedBatch) -> Sequence[Outcome]:
        """Apply what was logged just now, and have the log refuse what cannot be applied. On this thread, between two
        batches. Errors: NoSpace or InternalError: that is done later."""
        try:
            return self._consumer.apply(batch)
        except UnfitEntries as error:
            self._unfit = (batch, error.places)
        self._refuse_unfit()
        return self._consumer.go_on(len(batch.entries))

    def _refuse_unfit(self) -> None:
        """Have the log refuse what is to be refused. Errors: NoSpace, InternalError: `recover` tries it again."""
        if self._unfit is not None:
            self._producer.refuse(*self._unfit)
            self._unfit = None

    def take_over_later(self, compacted: NodeState) -> Future[None]:
        """Have the node go on with that state, between two batches. Any thread."""

        def take_over() -> None:
            with outside_arenas():  # what was logged meanwhile is decoded once more
                self._consumer.take_over(compacted)

        return self._queue.add_action(take_over)

    def _run(self) -> None:
        while True:
            batch, control = self._queue.take()
            if batch:
                try:
                    self._process(batch)
                except Exception as error:  # a defect: without this thread, nobody would be answered any more
                    self._fault.begin(error)
            if control is not None:
                if control.action is None:
                    return
                control.run()
            try:
                self._checkpoints.start_if_due(self.take_over_later)
            except Exception:
                _LOGGER.exception("a checkpoint could not be started; that is tried again after the next batch")

    def _process(self, batch: Sequence[QueuedOperation]) -> None:
        begun_ns = time.monotonic_ns()
        sizes_bytes = [size_bytes for _, _, size_bytes in batch]
        size_bytes, largest_bytes = sum(sizes_bytes), max(sizes_bytes, default=0)
        is_large = largest_bytes >= limits.STORE_BLOB_BYTES and is_worth(largest_bytes)
        is_small = not is_large and size_bytes < limits.LARGE_REQUEST_BYTES
        with switching_soon if is_small else _working_on_much(size_bytes, is_large):
            answers: Sequence[object] = ()
            replies: Sequence[OperationReply] = [reply for _, reply, _ in batch]
            try:
                entries, replies = self._producer.encode(batch)
                self._fault.check()
                if entries:
                    answers = self.apply(self._producer.append(entries))
            except Exception as error:
                answers = [error] * len(replies)
        self._queue.note_answered(size_bytes)
        self._commit_seconds.add((time.monotonic_ns() - begun_ns) / 1e9)
        self._commit_operations.add(len(batch))
        answer_all(replies, answers)


@contextmanager
def _working_on_much(size_bytes: int, is_large: bool) -> Iterator[None]:
    """Context of work on operations of this size in all. `is_large`: one of them is large."""
    with switching_soon, yielding_if_large(size_bytes), outside_arenas(is_large):
        yield
