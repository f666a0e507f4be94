"""The one thread that changes a content node: takes what waits, has it logged and applied, and answers.

take a batch → encode by partition → log, apply, publish → replies → a checkpoint, where one is due
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from threading import Thread
from typing import Final

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.base.yielding import switching_soon, yielding_if_large
from paperwasp.cluster.messenger import answer_all
from paperwasp.content.checkpoint_writer import CheckpointWriter
from paperwasp.content.current_state import CurrentState
from paperwasp.content.gathering import OperationReply, Waiting
from paperwasp.content.late_operations import LateOperations
from paperwasp.content.node_state import NodeState
from paperwasp.content.operation_queue import OperationQueue, type_of, unknown_type
from paperwasp.content.records import Logged
from paperwasp.content.state_machine import StateMachine
from paperwasp.core import _core
from paperwasp.core.object_memory import is_worth, outside_arenas
from paperwasp.document.ids import partition_of
from paperwasp.errors import InternalError, InvalidInput, PaperwaspError
from paperwasp.operations.monitoring.numbers import Numbers

_LOGGER: Final = logging.getLogger(__name__)


class Encoder:
    """Makes entries of the log from operations. One thread, the writer's."""

    def __init__(self, current: CurrentState, late: LateOperations, environment: Environment) -> None:
        self._current = current
        self._late = late
        self._environment = environment

    def encode(self, batch: Sequence[Waiting]) -> tuple[Sequence[Logged], Sequence[OperationReply]]:
        """Entries in the order of the log, by partition, then as they came, and the reply to each. Refused ones are
        answered."""
        state = self._current.state
        first_us = max(self._environment.time_ns() // 1000, state.timestamp_us + 1)
        if self._are_plain(batch):
            return _core.in_order_of_log(batch, first_us, limits.PARTITIONS)
        by_partition: list[list[tuple[Logged, OperationReply]]] = [[] for _ in range(limits.PARTITIONS)]
        for timestamp_us, (operation, reply, _) in enumerate(batch, first_us):
            document_type = type_of(operation)
            kind = state.layout.types.get(document_type)
            if kind is None:
                reply(unknown_type(document_type))
                continue
            try:
                entry = self._late.entry(operation, kind, state.codecs[document_type], timestamp_us)
            except PaperwaspError as error:
                reply(error)
            except (TypeError, ValueError) as error:
                reply(InvalidInput(f"{operation.id}: {error}"))
            except Exception as error:  # a defect costs its own operation, and never the writer
                _LOGGER.exception("%s could not be encoded", operation.id)
                reply(InternalError(f"{operation.id}: {error}"))
            else:
                by_partition[partition_of(entry.gid)].append((entry, reply))
        waiting = [waiting for partition in by_partition for waiting in partition]
        return [entry for entry, _ in waiting], [reply for _, reply in waiting]

    def _are_plain(self, batch: Sequence[Waiting]) -> bool:
        """Whether all are plain changes of fields that the layout has: such a change is its own entry."""
        read_as, types = _core.read_as_of(batch), self._current.state.layout.types
        return read_as is not None and all(each.name in types and types[each.name].has_all(each) for each in read_as)


class Writer:
    """The writer thread of a content node. It ends when the queue does."""

    def __init__(
        self,
        queue: OperationQueue,
        encoder: Encoder,
        machine: StateMachine,
        checkpoints: CheckpointWriter,
        commits: tuple[Numbers, Numbers],
    ) -> None:
        """`commits` is given the seconds and the operations of each batch."""
        self._queue = queue
        self._encoder = encoder
        self._machine = machine
        self._checkpoints = checkpoints
        self._commit_seconds, self._commit_operations = commits
        self._thread = Thread(target=self._run, name="content-writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Waits for the end of the thread."""
        self._thread.join()

    def take_over_later(self, compacted: NodeState) -> Future[None]:
        """Has the node go on with that state, between two batches. Any thread."""

        def take_over() -> None:
            with outside_arenas():  # what was logged meanwhile is decoded once more
                self._machine.take_over(compacted)

        return self._queue.add_action(take_over)

    def _run(self) -> None:
        while True:
            batch, control = self._queue.take()
            if batch:
                self._process(batch)
            if control is not None:
                if control.action is None:
                    return
                control.run()
            self._checkpoints.start_if_due(self.take_over_later)

    def _process(self, batch: Sequence[Waiting]) -> None:
        begun_ns = time.monotonic_ns()
        sizes_bytes = [size_bytes for _, _, size_bytes in batch]
        size_bytes, largest_bytes = sum(sizes_bytes), max(sizes_bytes, default=0)
        is_large = largest_bytes >= limits.STORE_BLOB_BYTES and is_worth(largest_bytes)
        with switching_soon, yielding_if_large(size_bytes), outside_arenas(is_large):
            entries, replies = self._encoder.encode(batch)
            try:
                answers: Sequence[object] = self._machine.log_and_apply(entries)
            except Exception as error:
                answers = [error] * len(replies)
        self._queue.note_answered(size_bytes)
        self._commit_seconds.add((time.monotonic_ns() - begun_ns) / 1e9)
        self._commit_operations.add(len(batch))
        answer_all(replies, answers)
