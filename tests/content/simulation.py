"""Two replicas of one log, simulated: one thread, one seed, a clock that only the seed moves.

A producer logs operations of every kind under changing schemas. Two replicas take the log, each at its own pace, and
write checkpoints, give their documents new rows, forget removals, crash and start again when chance says so. Wherever
both have applied the same records their digests are equal, and each operation has the same outcome in both.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM
from paperwasp.base.records import replace
from paperwasp.content.checkpoints import compaction
from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.layouts.layout import EMPTY, Layout
from paperwasp.content.log.producer import Producer
from paperwasp.content.log.records import AnyOperation, Mutate, decode_entries
from paperwasp.content.state.digest import StateDigest, digest
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.replay import replay
from paperwasp.content.state.since_checkpoint import SinceCheckpoint
from paperwasp.content.upkeep.reindexing import reindex
from paperwasp.content.views.current_state import CurrentState
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.coordination.operation_log import RecordKind
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.document.operations import Outcome, Remove
from paperwasp.document.types import DOUBLE, INT, STRING, DataType, DocumentType, array_of
from paperwasp.schema.model import Schema
from paperwasp.storage.index.text_index import TextIndex
from tests.content.document_model import random_deed
from tests.content.document_schemas import TYPES, VARIANTS, variant_schema
from tests.content.fake_log import FirstRecords, MemoryLog
from tests.content.nodes import BOOK, put

NAMES: Final = 12
STEPS: Final = 30
START_US: Final = 1_700_000_000_000_000
RETYPED: Final[Mapping[str, DataType]] = {
    "small": INT, "score": DOUBLE, "word": array_of(STRING), "numbers": array_of(STRING), "reals": STRING,
}  # fmt: skip
"""Types that fields have in some schemas."""
MADE_OF: Final = ("title", "total", "count", "tags")
"""Fields of which others are made: they stay."""


class Replica:
    """One reader of the log, with a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.place = 0
        """How many appends it has applied."""
        self._directory = directory
        self._checkpoints = Checkpoints(directory, TextIndex)
        self._open()

    def _open(self) -> None:
        state = self._checkpoints.load()
        self.current = CurrentState(state, SinceCheckpoint(state.limit))

    @property
    def state(self) -> NodeState:
        return self.current.state

    def read(self, log: MemoryLog, configurations: Mapping[int, Configuration]) -> list[Outcome]:
        """Applies what the log has more; gives the outcomes."""
        outcomes = replay(log, self.state, 1 << 30).outcomes
        layout = self.state.layout
        if layout.generation in configurations:
            self.current.configure(configurations[layout.generation], layout)
        self.current.publish()
        return outcomes

    def checkpoint(self) -> None:
        self._checkpoints.write(self._checkpoints.freeze(self.state), self.state.index)

    def compact(self, log: MemoryLog) -> None:
        """As a node that serves does it: from a checkpoint, then the rest of the log."""
        self.checkpoint()
        loaded = self._checkpoints.load_beside()
        directory = loaded.index_directory
        compacted = compaction.compact(loaded, self._checkpoints.make_index(directory), directory)
        replay(log, compacted)
        assert compacted.applied == self.state.applied
        self.current.replace_state(compacted)

    def crash(self, log: MemoryLog, configurations: Mapping[int, Configuration]) -> None:
        """Starts again from the last checkpoint; as a start does it, also with new rows."""
        self.current.close()
        self._open()
        self.read(log, configurations)
        if compaction.is_worthwhile(self.state):
            directory = self._checkpoints.new_index_directory()
            compacted = compaction.compact(self.state, self._checkpoints.make_index(directory), directory)
            self.current = CurrentState(compacted, SinceCheckpoint(0))
            self.read(log, configurations)

    def prune(self, before_us: int) -> None:
        self.state.store.prune(before_us, 1 << 20)

    def close(self) -> None:
        self.current.close()


class Simulation:
    """One history, and two replicas of it."""

    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = random.Random(seed)
        self.now_us = START_US
        self.log = MemoryLog()
        self.configurations: dict[int, Configuration] = {}
        self.producer = Producer(self.log, EMPTY, 0, replace(SYSTEM, time_ns=lambda: self.now_us * 1000))
        self.ends: list[tuple[int, int]] = [(0, 0)]
        """After each append: how many records there are, and how many operations in them."""
        self.replicas = [Replica(directory / f"{number}") for number in range(2)]
        self.outcomes: list[Outcome] = []
        """Of each operation, as whoever was there first has them."""
        self.digests: dict[int, StateDigest] = {}
        """By place, those of whoever was there first."""
        self.pruned_us = 0
        self.refused = 0
        self.done: list[str] = []
        """What was done, for whoever looks for the cause of a difference."""

    def run(self) -> None:
        self.change_schema()
        steps: list[tuple[int, Callable[[], None]]] = [
            (30, self.feed), (8, self.change_schema), (6, self.reindex), (5, self.mutate), (4, self.expire),
            (2, self.restart_producer), (30, self.read), (4, self.checkpoint), (4, self.compact), (4, self.crash),
            (3, self.prune),
        ]  # fmt: skip
        weights = [weight for weight, _ in steps]
        for _ in range(STEPS):
            (step,) = self.chance.choices([step for _, step in steps], weights)
            self.done.append(step.__name__)
            step()
            self.now_us += self.chance.choice((0, 1, 1000, 10**6, -500))
        for replica in self.replicas:
            self._read_to(replica, len(self.ends) - 1)
            self._compare(replica)

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()

    # The producer

    def feed(self) -> None:
        operations: list[AnyOperation] = []
        for _ in range(self.chance.choice((1, 2, 6, 12))):
            if self.chance.random() < 0.1:
                operations.append(
                    put(self.chance.randrange(3), "book", title="one two", pages=self.chance.randrange(9))
                )
            else:
                operations.append(random_deed(self.chance, NAMES).operation())
        self._log(operations)

    def change_schema(self) -> None:
        generation = len(self.configurations) + 1
        schemas = {"thing": some_schema(self.chance)}
        if self.chance.random() < 0.1:
            schemas = {}
        if self.chance.random() < 0.7:
            schemas["book"] = BOOK
        modes = {"thing": "streaming"} if self.chance.random() < 0.1 else {}
        configured = self.configurations[generation] = Configuration(generation, schemas, modes)
        if self.producer.configure(configured).records:
            self.ends.append((len(self.log.records), self.ends[-1][1]))

    def reindex(self) -> None:
        """What reindexing makes of documents as one of the replicas has them, which may be behind."""
        queue = _Queue()
        replica = self.chance.choice(self.replicas)
        if "thing" in replica.current.reader.view().layout.types:
            request: Any = ReindexRequest("thing", documents=self.chance.choice((2, 1000)))
            reindex(replica.current.reader, queue, request, lambda _: None)  # type: ignore[arg-type]
            self._log(queue.operations)

    def mutate(self) -> None:
        gids: dict[int, bytes] = {}
        for name in range(NAMES):
            gid = DocumentId("n", "thing", str(name)).gid
            gids[partition_of(gid)] = gids.get(partition_of(gid), b"") + gid
        changes = (("count", self.chance.choice(("=", "+=", "-=")), float(self.chance.randrange(5))),)
        self._log([Mutate(DocumentId("-", "thing", "-", number=p), changes, found) for p, found in gids.items()])

    def expire(self) -> None:
        """What garbage collection removes."""
        condition = f"thing.count < {self.chance.randrange(10)} and now() > {START_US // 10**6}"
        self._log([Remove(DocumentId("n", "thing", str(name)), condition) for name in range(NAMES)])

    def restart_producer(self) -> None:
        """Goes on from the log alone."""
        layout, timestamp_us = EMPTY, 0
        for record in self.log.records:
            if record.kind == RecordKind.CONFIGURATION:
                layout = Layout.from_bytes(record.payload)
            else:
                times = (entry.timestamp_us for entry in decode_entries(record.payload, str))
                timestamp_us = max(timestamp_us, *times)
        self.producer = Producer(self.log, layout, timestamp_us, replace(SYSTEM, time_ns=lambda: self.now_us * 1000))

    def _log(self, operations: list[AnyOperation]) -> None:
        entries, _ = self.producer.encode([(operation, lambda _: None, 0) for operation in operations])
        self.refused += len(operations) - len(entries)
        if entries:
            self.producer.append(entries)
            self.ends.append((len(self.log.records), self.ends[-1][1] + len(entries)))

    # The replicas

    def read(self) -> None:
        replica = self.chance.choice(self.replicas)
        self._read_to(replica, self.chance.randint(replica.place, len(self.ends) - 1))
        self._compare(replica)

    def checkpoint(self) -> None:
        self.chance.choice(self.replicas).checkpoint()

    def compact(self) -> None:
        replica = self.chance.choice(self.replicas)
        replica.compact(self._first(replica.place))
        self._compare(replica)

    def crash(self) -> None:
        replica = self.chance.choice(self.replicas)
        replica.crash(self._first(replica.place), self.configurations)
        self._compare(replica)

    def prune(self) -> None:
        """Removals may be forgotten by each replica when it likes."""
        before_us = self.now_us - self.chance.choice((0, 1000, 10**6))
        self.chance.choice(self.replicas).prune(before_us)
        self.pruned_us = max(self.pruned_us, before_us)
        self.digests.clear()

    def _first(self, place: int) -> FirstRecords:
        return FirstRecords(self.log.records[: self.ends[place][0]])

    def _read_to(self, replica: Replica, place: int) -> None:
        outcomes = replica.read(self._first(place), self.configurations)
        first, end = self.ends[replica.place][1], self.ends[place][1]
        assert len(outcomes) == end - first, "each record is applied once"
        known = self.outcomes[first:end]
        assert outcomes[: len(known)] == known, "the outcomes differ"
        self.outcomes += outcomes[len(known) :]
        replica.place = place

    def _compare(self, replica: Replica) -> None:
        found = digest(replica.state, self.pruned_us)
        assert found == self.digests.setdefault(replica.place, found), f"the digests differ at {replica.place}"


class _Queue:
    """Takes the operations of reindexing, in place of the queue of a node."""

    def __init__(self) -> None:
        self.operations: list[AnyOperation] = []

    def waiting(self) -> int:
        return 0

    @contextmanager
    def adding(self) -> Iterator[Callable[..., None]]:
        yield lambda operation, *_: self.operations.append(operation)


def some_schema(chance: random.Random) -> Schema:
    """A variant of the schema; sometimes without some fields, or with other types of them."""
    found = variant_schema(chance.randrange(VARIANTS))
    fields, types = dict(found.fields), dict(found.document.fields)
    if chance.random() < 0.5:
        for name in chance.sample([name for name in TYPES if name not in MADE_OF], chance.randrange(8)):
            del fields[name], types[name]
    if chance.random() < 0.5:
        for name in chance.sample(list(RETYPED), 2):
            if name in fields:
                types[name] = RETYPED[name]
                fields[name] = replace(fields[name], type=RETYPED[name])
    return replace(found, document=DocumentType("thing", types), fields=fields)


@contextmanager
def simulated() -> Iterator[Path]:
    """A directory for simulations, in memory where there is such a place; nothing is synced, and few rows count as
    many."""
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="paperwasp-", dir=memory if os.access(memory, os.W_OK) else None))
    before = os.fsync, os.fdatasync, limits.DEAD_ROWS_LEAST
    os.fsync = os.fdatasync = lambda _: None  # type: ignore[assignment]
    limits.DEAD_ROWS_LEAST = 5  # type: ignore[misc]
    try:
        yield directory
    finally:
        os.fsync, os.fdatasync, limits.DEAD_ROWS_LEAST = before  # type: ignore[misc]
        shutil.rmtree(directory, ignore_errors=True)


def simulate(seed: int, directory: Path) -> Simulation:
    """Runs the history of a seed. Errors: AssertionError with the seed in it."""
    simulation = Simulation(seed, directory / f"{seed}")
    try:
        simulation.run()
    except BaseException as error:
        raise AssertionError(f"seed {seed}: {error!r} after {simulation.done}") from error
    finally:
        simulation.close()
        shutil.rmtree(directory / f"{seed}", ignore_errors=True)
    return simulation
