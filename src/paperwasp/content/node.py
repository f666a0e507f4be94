"""The content node: makes operations durable, applies them in order, and publishes what readers see.

    submit → bounded queue → writer: take what waits → encode by partition → log, one sync → apply → publish → replies

One writer thread logs (`log.producer`) and owns the state (`consumer`). Readers take a view (`views.reader`), a
reference that the writer swaps after each batch, so an operation that is answered is durable and is seen by the next
query. A start loads the last checkpoint and applies the log after it.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.measurements import Numbers, Windows
from paperwasp.content.checkpoints import compaction
from paperwasp.content.checkpoints.checkpoint import Checkpoints, IndexFactory
from paperwasp.content.checkpoints.checkpoint_writer import CheckpointWriter
from paperwasp.content.consumer import Consumer
from paperwasp.content.fault import Fault
from paperwasp.content.layouts.configuration import NO_MODES, Configuration
from paperwasp.content.log.moved_records import PartitionMark
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.log.producer import Producer
from paperwasp.content.log.records import LoggedBatch, refusals_of
from paperwasp.content.partitions.dropping import drop_documents
from paperwasp.content.partitions.exporting import PartitionExport
from paperwasp.content.partitions.frames import check_partition
from paperwasp.content.partitions.importing import PartitionImporter
from paperwasp.content.state.apply import UNFIT_ERRORS
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.replay import Replay, UnfitEntry, replay, replay_one_by_one
from paperwasp.content.state.since_checkpoint import SinceCheckpoint
from paperwasp.content.upkeep.graph_building import GraphBuilding
from paperwasp.content.views.current_state import CurrentState
from paperwasp.content.writer import Writer
from paperwasp.coordination.disk import REAL_DISK
from paperwasp.coordination.operation_log import Mark, NewRecord, OperationLog
from paperwasp.errors import Conflict, InternalError
from paperwasp.schema.model import Schema
from paperwasp.storage.index.text_index import TextIndex

_LOGGER: Final = logging.getLogger(__name__)


class ContentNode:
    """All documents of one content cluster, in one data directory: opened, configured, closed.

    Feed it by `operations`, read it by `reader`; `fault` says why operations are refused. The caller opens and closes
    the log.
    """

    def __init__(
        self,
        directory: Path,
        log: OperationLog,
        make_index: IndexFactory = TextIndex,
        *,
        repair: bool = False,
        environment: Environment = SYSTEM,
    ) -> None:
        REAL_DISK.make_directory(directory)
        self._log = log
        self._lock = _lock_directory(directory)
        try:
            checkpoints = Checkpoints(directory, make_index)
            state, since, self.replayed_operations = _open_state(checkpoints, log, repair)
        except BaseException:
            os.close(self._lock)
            raise
        self._producer = Producer(log, state.layout, state.timestamp_us, environment)
        self.fault: Final = Fault(environment)
        self._current = CurrentState(state, since)
        self.reader: Final = self._current.reader
        self.operations: Final = OperationQueue(self._producer, self.fault)
        self._checkpoints = CheckpointWriter(checkpoints, log, self._current, self.fault, environment)
        self._consumer = Consumer(log, self._current, self.fault, self._checkpoints)
        self.windows: Final = Windows(environment)
        self.commits: Final = (Numbers(), Numbers())
        """Of each batch of operations, the seconds from when it was taken until it was published, and how many they
        were. The writer adds."""
        self._writer = Writer(
            self.operations, self._producer, self._consumer, self.fault, self._checkpoints, self.commits
        )
        self._writer.start()

    def check(self, generation: int, schemas: Mapping[str, Schema], modes: Mapping[str, str] = NO_MODES) -> None:
        """Raise what `configure` would refuse these schemas with; change nothing."""
        self.fault.check()
        self._producer.check(Configuration(generation, schemas, modes))

    def configure(
        self,
        generation: int,
        schemas: Mapping[str, Schema],
        modes: Mapping[str, str] = NO_MODES,
        distribution_key: int = 0,
    ) -> None:
        """Go on under these schemas; return when queries see them. Queries under way see what was before.

        Documents of types that are not among the schemas are gone. `modes`, by document type, where the mode is not
        "index": such documents are stored, and not searched. Errors: those of `Writer.configure`.
        """
        configured = Configuration(
            generation, MappingProxyType(dict(schemas)), MappingProxyType(dict(modes)), distribution_key
        )
        self.operations.run(lambda: self._writer.configure(configured))

    @property
    def generation(self) -> int:
        """The generation under whose layout operations are logged from now on. Any thread."""
        return self._producer.layout.generation

    def graph_building(self) -> GraphBuilding:
        """Return the chore that builds missing graphs over vectors."""
        return GraphBuilding(self._current, self.operations, self.fault)

    def recover_if_due(self) -> None:
        """Try to end a fault where that is due; a failure is tried again later."""
        if self.fault.is_due:
            self.operations.run(self._recover)

    def _recover(self) -> None:
        if not self.operations.is_closed:
            self._writer.recover()

    def sizes_bytes(self) -> dict[str, int]:
        """Approximate sizes of what is kept, in bytes, by kind."""
        state = self._current.state
        columns = sum(column.size_bytes() for column in list(state.columns.values()))
        return {
            "attributes": columns,
            "index_memory": state.index.memory_bytes(),
            "store": state.store.size_bytes(),
            "rows": state.rows.size_bytes(),
        }

    def log_sizes(self) -> tuple[int, int]:
        """The bytes of the operation log, and the operations since the last checkpoint, which a start applies again."""
        return self._log.size_bytes(), self._current.since_checkpoint.changes

    def checkpoint(self) -> None:
        """Write a checkpoint now; return when it counts. Errors: what writing it raised."""
        started: list[Future[None]] = []
        self.operations.run(lambda: started.append(self._checkpoints.start()))
        started[0].result()

    def compact(self) -> None:
        """Give all documents new rows now, beside the writer; return when the attempt has ended."""
        self.operations.run(lambda: self._checkpoints.start(self._writer.take_over_later))
        self._checkpoints.wait_for_compaction()

    def prune(self, before_us: int, most: int) -> int:
        """Forget removals from before that time, oldest first; return how many were looked at: `most` says that there
        may be more. Runs between two batches. Not logged: whoever reads hides what is that old.
        """
        looked_at: list[int] = []
        self.operations.run(lambda: looked_at.append(self._current.state.store.prune(before_us, most)))
        return looked_at[0]

    def export_partition(self, partition: int) -> PartitionExport:
        """Open a partition to be read by another node, while this one goes on. Errors: those of a checkpoint."""
        check_partition(partition)
        self.checkpoint()
        opened: list[Future[tuple[NodeState, Callable[[], object]]]] = []
        self.operations.run(lambda: opened.append(self._checkpoints.open_last(partition)))
        return PartitionExport(partition, *opened[0].result(), self._log, partial(self._last_applied, partition))

    def _last_applied(self, partition: int) -> Mark:
        """Return the mark of the last record of a partition, which is applied. Errors: those of a fault."""
        found: list[Mark] = []

        def find() -> None:
            self.fault.check()
            found.append(self._current.state.applied[partition])

        self.operations.run(find)
        return found[0]

    def drop_partition(self, partition: int, mark: PartitionMark) -> None:
        """Forget all documents of a partition that another node has taken up to `mark`, and that any was removed. They
        are gone for good when it returns; a crash before leaves all of them. Done twice, it is done once.

        Errors: Conflict while the partition is exported, or where it has other records than up to `mark`, or other
        schemas; those of `Consumer.change_beside_log`.
        """
        check_partition(partition)
        if mark.log != self._log.identity():
            raise Conflict(f"what the other node has of partition {partition} is of another log than this node's")

        def drop() -> None:
            self._consumer.check()
            self._checkpoints.check_not_exported(partition)
            if (last := self._current.state.applied[partition]) != mark.mark:
                raise Conflict(
                    f"partition {partition} has come to record {last.sequence}, the other node to {mark.sequence}"
                )
            if self._current.state.layout.fingerprint != mark.layout:
                raise Conflict(f"partition {partition} was taken under other schemas than those of this node")
            self._consumer.change_beside_log(partial(drop_documents, partition=partition))

        self.operations.run(drop)

    def partition_importer(self, partition: int) -> PartitionImporter:
        """Return the importer that takes a partition from another node (`partitions.importing`)."""
        check_partition(partition)
        return PartitionImporter(
            partition, self._current, self.operations, self._producer, self._consumer, self._writer.apply
        )

    def stop(self, *, checkpoint: bool = True) -> None:
        """Apply what is queued, write a checkpoint unless that is not wanted, and close. The log stays open."""
        if self.operations.is_closed:
            return
        self.operations.close()
        self._checkpoints.stop_compacting()
        if checkpoint:
            self.operations.run(self._checkpoints.write_last)
        self.operations.end()
        self._writer.join()
        self.operations.refuse_rest()
        self._checkpoints.wait_for_compaction()
        self._current.close()
        os.close(self._lock)


def _lock_directory(directory: Path) -> int:
    """Take a data directory for one node, until the returned descriptor is closed. Errors: Conflict while another
    process, or node, has it."""
    descriptor = os.open(directory / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Conflict(f"{directory} is in use by another process") from None
    return descriptor


def _open_state(checkpoints: Checkpoints, log: OperationLog, repair: bool) -> tuple[NodeState, SinceCheckpoint, int]:
    """The state of the last checkpoint and of the log after it, what has changed since the checkpoint, and how many
    operations were replayed. Errors: Corruption; InternalError for operations that cannot be applied."""
    state, since, replayed = _load_and_replay(checkpoints, log, repair)
    try:
        operations = replayed.operations
        if markers := replayed.missing_markers():
            log.append(markers)
            operations += replay(log, state).operations
        since.changes = operations
        if compaction.is_worthwhile(state):
            directory = checkpoints.new_index_directory()
            state = compaction.compact(state, checkpoints.make_index(directory), directory)
            since.restart(0, changes=1)
    except BaseException:
        state.store.close()
        raise
    return state, since, operations


_Loaded = tuple[NodeState, SinceCheckpoint, Replay]


def _load_and_replay(checkpoints: Checkpoints, log: OperationLog, repair: bool) -> _Loaded:
    """Load the last checkpoint and apply the log after it. What cannot be applied in batches is applied one by one;
    with `repair` the log refuses operations that cannot be applied at all. Without, whoever put one may have been told
    that it is applied, by another version of this program: that is not for a start to undo."""
    try:
        return _replayed(checkpoints, log, repair, replay)
    except UNFIT_ERRORS:
        _LOGGER.exception("the log cannot be applied in batches, and is applied one operation after the other")
    refused = 0
    while True:
        try:
            return _replayed(checkpoints, log, repair, replay_one_by_one)
        except UnfitEntry as error:
            if not repair or refused == limits.UNFIT_ENTRIES:
                most = f"at most {limits.UNFIT_ENTRIES} at a start"
                raise InternalError(
                    f"{error}: {error.__cause__!r}; another version may apply it, and a repair refuses it, {most}"
                ) from error
            refused += 1
            record, place = error.record, error.place
            _LOGGER.error("%s; it is refused", error)
            logged = NewRecord(record.partition, record.payload, record.kind)
            log.append(refusals_of(LoggedBatch((), [logged], [record.mark]), [place]))


def _replayed(
    checkpoints: Checkpoints, log: OperationLog, repair: bool, replay_log: Callable[[OperationLog, NodeState], Replay]
) -> _Loaded:
    state = checkpoints.load()
    since = SinceCheckpoint(state.limit)
    try:
        if repair:
            state.rows.clear()  # the log may lack what rows after the checkpoint were made of
            log.skip_to(state.applied)
        return state, since, replay_log(log, state)
    except BaseException:
        state.store.close()
        raise
