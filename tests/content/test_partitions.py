"""Partitions that are moved between two nodes: a picture, then records, while the first node is fed."""

from __future__ import annotations

import io
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.content.checkpoints import checkpoint
from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.checkpoints.checkpoint_writer import CheckpointWriter
from paperwasp.content.log.moved_records import MovedRecord, PartitionMark
from paperwasp.content.log.records import Entry, EntryKind, Mutate, records_of
from paperwasp.content.partitions.dropping import drop_documents
from paperwasp.content.partitions.exporting import PartitionExport
from paperwasp.content.partitions.frames import (
    MAGIC,
    FrameKind,
    decode_record,
    encode_frame,
    encode_record,
    read_picture,
)
from paperwasp.content.state.digest import digest
from paperwasp.content.state.node_state import NodeState
from paperwasp.coordination.disk import Disk
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.coordination.operation_log import Mark, NewRecord, RecordKind
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.document.operations import Operation, Outcome, Refusal
from paperwasp.errors import Conflict, Corruption, InternalError, InvalidInput, NoSpace, PaperwaspError
from paperwasp.storage.documents.document_store import DocumentStore, StoreWrites
from tests.chance import SEED
from tests.content.defects import POISON, defect, poison, together
from tests.content.document_model import random_deed
from tests.content.document_schemas import VARIANTS, variant_schema
from tests.content.nodes import BOOK, MUSIC, TestNode, doc_id, put, reindexed, remove, start, started, update

__all__ = ["defect"]
OTHERS = 60


def names_of(partition: int, count: int) -> list[str]:
    """Names of documents of that partition."""
    numbers = (str(number) for number in range(100_000))
    found = (name for name in numbers if partition_of(doc_id(name).gid) == partition)
    return [next(found) for _ in range(count)]


def digest_of(node: TestNode, partition: int) -> str:
    found: list[str] = []
    node.node.operations.run(lambda: found.append(digest(node.node._current.state).partitions[partition]))
    return found[0]


def mark_of(node: TestNode, partition: int) -> PartitionMark:
    """How far a partition has come, of which the node itself has logged everything."""
    state = node.node._current.state
    return PartitionMark(node.log.identity(), state.layout.fingerprint, state.applied[partition])


def picture_of(export: PartitionExport) -> io.BytesIO:
    return io.BytesIO(b"".join(export.picture()))


def random_operation(chance: random.Random, name: str) -> Operation:
    kind = chance.randrange(6)
    if kind == 0:
        return remove(name)
    if kind == 1:
        return update(name, year=chance.randrange(2000))
    if kind == 2:
        return update(name, create=True, title=f"title {chance.randrange(9)}")
    return put(name, title=f"{chance.randrange(9)} blue", year=chance.randrange(2000))


class Feeder(threading.Thread):
    """Feeds documents of all partitions until it is stopped."""

    def __init__(self, node: TestNode, names: list[str], chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._node, self._names, self._chance = node, names, chance
        self.stopped = threading.Event()
        self.batches = threading.Semaphore(0)

    def run(self) -> None:
        while not self.stopped.is_set():
            names = self._chance.choices(self._names, k=self._chance.choice((1, 3, 20)))
            self._node.apply(*(random_operation(self._chance, name) for name in names))
            self.batches.release()

    def wait(self) -> None:
        """Returns when something more was fed."""
        for _ in range(3):
            assert self.batches.acquire(timeout=60)


@pytest.mark.parametrize("number", range(10))
def test_a_partition_moves_under_a_feed(tmp_path: Path, number: int) -> None:
    print(f"seed {SEED + number}")  # noqa: T201
    chance = random.Random(SEED + number)
    partition = chance.randrange(limits.PARTITIONS)
    names = names_of(partition, 40) + [str(name) for name in range(OTHERS)]
    with started(tmp_path / "first") as first, started(tmp_path / "second") as second:
        first.apply(*(put(name, title="before", year=1) for name in names))
        second.apply(*(put(name, title="of the second node") for name in chance.sample(names, 30)))
        second.apply(*(remove(name) for name in chance.sample(names, 5)))
        others = [digest_of(second, other) for other in range(limits.PARTITIONS)]
        feeder = Feeder(first, names, random.Random(chance.random()))
        feeder.start()
        feeder.wait()
        with first.node.export_partition(partition) as export:
            feeder.wait()
            importer = second.node.partition_importer(partition)
            assert importer.take_picture(picture_of(export)) == export.mark
            given: list[bytes] = []
            for _ in range(chance.randrange(1, 4)):
                feeder.wait()
                if chance.random() < 0.5:
                    first.node.checkpoint()  # which would have the log forget what the export needs
                if chance.random() < 0.3:
                    first.node.compact()
                taken = len(given)
                given += export.records()
                importer.take_records(given[chance.randrange(taken + 1) :])  # some that it has had already
                if chance.random() < 0.3:
                    second.crash()
                    second.__dict__.update(start(tmp_path / "second").__dict__)
                    importer = second.node.partition_importer(partition)
            feeder.stopped.set()
            feeder.join()
            given += export.records()
            importer.take_records(given)
        assert digest_of(second, partition) == digest_of(first, partition)
        there = [digest_of(second, other) for other in range(limits.PARTITIONS)]
        others[partition] = there[partition]
        assert there == others
        second.apply(*(put(name, title="afterwards") for name in names[:40]))
        after = digest_of(second, partition)
        second.crash()
        second.__dict__.update(start(tmp_path / "second").__dict__)
        assert digest_of(second, partition) == after
        assert second.get(names[0])["title"] == "afterwards"


def moved(first: TestNode, partition: int) -> tuple[bytes, PartitionExport]:
    """The picture of a partition, and what it is from."""
    export = first.node.export_partition(partition)
    return b"".join(export.picture()), export


def frames_of(picture: bytes) -> list[bytes]:
    """The bytes of each frame of a picture."""
    offsets = [frame.offset for frame in read_picture(io.BytesIO(picture))] + [len(picture)]
    return [picture[begin:end] for begin, end in pairwise(offsets)]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[TestNode, TestNode]]:
    """Two nodes with documents; the second has others of them."""
    names = [*names_of(3, 12), *names_of(4, 3)]
    with started(tmp_path / "first") as first, started(tmp_path / "second") as second:
        first.apply(*(put(name, title=f"title {name}", year=7) for name in names))
        first.apply(*(remove(name) for name in names[:2]), update(names[3], year=8))
        second.apply(*(put(name, title="another") for name in names[5:]), remove(names[2]))
        yield first, second


def test_operations_go_on_while_a_partition_is_opened(
    pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    begun, go_on, load = threading.Event(), threading.Event(), Checkpoints.load_beside

    def held(checkpoints: Checkpoints) -> NodeState:
        begun.set()
        assert go_on.wait(60)
        return load(checkpoints)

    monkeypatch.setattr(Checkpoints, "load_beside", held)
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(first.node.export_partition, 3)
        try:
            assert begun.wait(60)
            first.apply(put(names_of(3, 1)[0], title="meanwhile"))
        finally:
            go_on.set()
        with opening.result() as export:
            importer = second.node.partition_importer(3)
            importer.take_picture(picture_of(export))
            assert importer.take_records(export.records()).sequence == export.mark.sequence + 1
    assert digest_of(second, 3) == digest_of(first, 3)


def test_a_picture_comes_in_chunks(pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = pair
    monkeypatch.setattr(limits, "PARTITION_CHUNK_DOCUMENTS", 5)
    picture, export = moved(first, 3)
    kinds = [frame.kind for frame in read_picture(io.BytesIO(picture))]
    assert kinds == [FrameKind.HEADER, *[FrameKind.DOCUMENTS] * 3, FrameKind.END]
    assert second.node.partition_importer(3).take_picture(io.BytesIO(picture)) == export.mark
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


@pytest.mark.parametrize("change", ["cut", "flipped", "more", "left out", "twice", "another order", "foreign document"])
def test_a_damaged_picture_changes_nothing(
    pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    first, second = pair
    monkeypatch.setattr(limits, "PARTITION_CHUNK_DOCUMENTS", 5)
    picture, export = moved(first, 3)
    export.close()
    frames = frames_of(picture)
    chance, before = random.Random(SEED), [digest_of(second, partition) for partition in range(limits.PARTITIONS)]
    damaged: list[bytes]
    if change == "cut":
        damaged = [picture[:size] for size in range(0, len(picture), 7)]
    elif change == "flipped":
        places = chance.sample(range(len(picture)), 100)
        damaged = [picture[:p] + bytes((picture[p] ^ 1 << chance.randrange(8),)) + picture[p + 1 :] for p in places]
    elif change == "more":
        damaged = [picture + b"x", picture + frames[1]]
    elif change == "left out":
        damaged = [MAGIC + b"".join(frames[:n] + frames[n + 1 :]) for n in range(len(frames))]
    elif change == "twice":
        damaged = [MAGIC + b"".join(frames[: n + 1] + frames[n:]) for n in range(len(frames))]
    elif change == "another order":
        damaged = [MAGIC + b"".join([frames[0], frames[2], frames[1], *frames[3:]])]
    else:
        other, opened = moved(first, 4)
        opened.close()
        damaged = [MAGIC + b"".join([frames[0], frames_of(other)[1], *frames[2:]])]
    for data in damaged:
        with pytest.raises((Corruption, InvalidInput)):
            second.node.partition_importer(3).take_picture(io.BytesIO(data))
    assert [digest_of(second, partition) for partition in range(limits.PARTITIONS)] == before


def test_foreign_input_is_named(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    export.close()
    with pytest.raises(InvalidInput, match="this is partition 3, not 4"):
        second.node.partition_importer(4).take_picture(io.BytesIO(picture))
    with pytest.raises(InvalidInput, match="does not begin as one"):
        second.node.partition_importer(3).take_picture(io.BytesIO(b"PK" + picture))
    with pytest.raises(InvalidInput, match="no partition 16"):
        second.node.export_partition(16)
    with started(tmp_path / "third", {"music": MUSIC}) as third, pytest.raises(Conflict, match="the schemas"):
        third.node.partition_importer(3).take_picture(io.BytesIO(picture))
    future = encode_frame(FrameKind.HEADER, frames_of(picture)[0][9:].replace(b'"version":2', b'"version":9', 1))
    with pytest.raises(PaperwaspError, match="version 9; known is 2"):
        second.node.partition_importer(3).take_picture(io.BytesIO(MAGIC + future))


def test_types_may_have_other_numbers(tmp_path: Path) -> None:
    with started(tmp_path / "first", {"book": BOOK}) as first, started(tmp_path / "second", {"music": MUSIC}) as second:
        for node, types in ((first, {"music": MUSIC, "book": BOOK}), (second, {"book": BOOK, "music": MUSIC})):
            node.node.configure(2, types)
        name = names_of(5, 1)[0]
        first.apply(put(name, title="blue"), put(name, "book", title="train"))
        picture, export = moved(first, 5)
        export.close()
        second.node.partition_importer(5).take_picture(io.BytesIO(picture))
        assert second.get(name) == {"title": "blue"}


def test_an_import_that_fails_leaves_what_was(
    pair: tuple[TestNode, TestNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    export.close()
    before = [digest_of(second, partition) for partition in range(limits.PARTITIONS)]

    def full(*_: object) -> None:
        raise NoSpace("the disk is full")

    importer = second.node.partition_importer(3)
    for place in (
        "paperwasp.content.partitions.importing.apply_entries",
        "paperwasp.content.checkpoints.checkpoint.write_arrays",
    ):
        monkeypatch.setattr(place, full)
        with pytest.raises(NoSpace, match="the disk is full"):
            importer.take_picture(io.BytesIO(picture))
        monkeypatch.undo()
        assert [digest_of(second, partition) for partition in range(limits.PARTITIONS)] == before
        assert second.fault() is None
    importer.take_picture(io.BytesIO(picture))
    after = digest_of(second, 3)
    assert after == digest_of(first, 3) != before[3]
    second.crash()
    second.__dict__.update(start(tmp_path / "second").__dict__)
    assert digest_of(second, 3) == after


def test_an_import_waits_for_a_checkpoint_that_is_being_written(
    pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write to the index, each removing the files that the other has not named yet."""
    first, second = pair
    picture, export = moved(first, 3)
    export.close()
    go_on, is_written, write = threading.Event(), [], Checkpoints.write
    interrupt, writers = CheckpointWriter.interrupt, second.node._checkpoints

    def held(checkpoints: Checkpoints, *arguments: Any) -> None:
        assert go_on.wait(60)
        write(checkpoints, *arguments)

    def interrupted(checkpoints: CheckpointWriter) -> None:
        go_on.set()
        interrupt(checkpoints)

    def dropped(state: NodeState, partition: int) -> None:
        is_written.append(writers._thread is not None and writers._thread.is_alive())
        go_on.set()
        drop_documents(state, partition)

    monkeypatch.setattr(Checkpoints, "write", held)
    second.node.operations.run(writers.start)
    monkeypatch.setattr(CheckpointWriter, "interrupt", interrupted)
    monkeypatch.setattr("paperwasp.content.partitions.importing.drop_documents", dropped)
    second.node.partition_importer(3).take_picture(io.BytesIO(picture))
    assert is_written == [False]
    assert digest_of(second, 3) == digest_of(first, 3)


def test_new_rows_that_begin_after_the_checkpoint_before_are_given_up(pair: tuple[TestNode, TestNode]) -> None:
    """They would wait for the writer, which waits for the next checkpoint, which waits for them."""
    writers = pair[1].node._checkpoints

    def start_and_interrupt() -> None:
        writers.start(pair[1].node._writer.take_over_later)
        writers.interrupt()
        assert writers._compactor._cancelled.is_set()

    pair[1].node.operations.run(start_and_interrupt)


def test_what_counts_is_no_error_where_the_log_cannot_be_trimmed(
    pair: tuple[TestNode, TestNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    export.close()

    def full(*_: object) -> None:
        raise NoSpace("the disk is full")

    monkeypatch.setattr(second.log, "trim", full)
    assert second.node.partition_importer(3).take_picture(io.BytesIO(picture)) == export.mark
    monkeypatch.undo()
    assert second.fault() is None
    again(second, tmp_path / "second")
    assert digest_of(second, 3) == digest_of(first, 3)


def test_a_checkpoint_that_fails_says_so_though_another_counts(
    pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one has begun before its caller asks what became of it."""
    node = pair[0].node
    start, write, failures = CheckpointWriter.start, Checkpoints.write, [NoSpace("the disk is full")]

    def twice(checkpoints: CheckpointWriter) -> object:
        started = start(checkpoints)
        start(checkpoints)
        return started

    def fail_first(checkpoints: Checkpoints, *arguments: Any) -> None:
        if failures:
            raise failures.pop()
        write(checkpoints, *arguments)

    monkeypatch.setattr(CheckpointWriter, "start", twice)
    monkeypatch.setattr(Checkpoints, "write", fail_first)
    with pytest.raises(NoSpace, match="the disk is full"):
        node.checkpoint()
    monkeypatch.undo()


def test_records_follow_each_other(pair: tuple[TestNode, TestNode]) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    importer, names = second.node.partition_importer(3), names_of(3, 12)
    for number in range(5):
        first.apply(put(names[number], title=f"later {number}"))
    frames = list(export.records())
    with pytest.raises(Conflict, match="its picture comes first"):
        importer.take_records(frames)
    importer.take_picture(io.BytesIO(picture))
    before = digest_of(second, 3)
    with pytest.raises(Corruption, match=f"record {export.mark.sequence + 2} comes after {export.mark.sequence}"):
        importer.take_records(frames[1:])
    with pytest.raises(Corruption, match="cut or damaged"):
        importer.take_records([frames[0][:-1]])
    first_record = decode_record(frames[0])
    with pytest.raises(Corruption, match="of kind 9"):
        importer.take_records([encode_record(first_record._replace(kind=9))])
    assert digest_of(second, 3) == before
    assert importer.take_records(frames).mark == decode_record(frames[-1]).mark
    last = decode_record(frames[-1])
    with pytest.raises(Corruption, match="is another than was taken before"):
        importer.take_records([encode_record(last._replace(mark=last.mark._replace(crc=1)))])
    assert importer.take_records(frames).mark == last.mark
    assert digest_of(second, 3) == digest_of(first, 3)
    with pytest.raises(Conflict, match="was taken already"):
        importer.take_picture(io.BytesIO(picture))
    export.close()


def test_a_change_of_schemas_on_the_way(pair: tuple[TestNode, TestNode]) -> None:
    """One that the other node has too is passed over; another ends the move."""
    first, second = pair
    for node in pair:
        node.node.configure(2, {"music": MUSIC})
    picture, export = moved(first, 3)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    name = names_of(3, 8)[7]
    assert second.get(name) == first.get(name) is not None
    first.node.configure(3, {"music": MUSIC, "book": BOOK})
    first.apply(put(name, title="after the change"))
    frames = list(export.records())
    with pytest.raises(Conflict, match="the schemas"):
        importer.take_records(frames)
    second.node.configure(3, {"music": MUSIC, "book": BOOK})
    importer.take_records(frames)
    assert second.get(name) == {"title": "after the change"}
    export.close()


@pytest.mark.parametrize("importer_of", ["before", "picture", "configuration", "start"])
def test_operations_under_other_schemas_are_not_taken(
    pair: tuple[TestNode, TestNode], tmp_path: Path, importer_of: str
) -> None:
    """This node was given other ones too early: what has no place there would be lost without a word."""
    first, second = pair
    picture, export = moved(first, 3)
    importer, name = second.node.partition_importer(3), names_of(3, 8)[7]
    importer.take_picture(io.BytesIO(picture))
    if importer_of == "picture":
        importer = second.node.partition_importer(3)
    first.apply(put(name, title="before the change", year=5))
    second.node.configure(2, {"book": BOOK})
    if importer_of == "start":
        second.crash()
        second.__dict__.update(start(tmp_path / "second", {"book": BOOK}).__dict__)
    if importer_of in ("start", "configuration"):
        importer = second.node.partition_importer(3)
    with pytest.raises(Conflict, match="the schemas are not those of this node"):
        importer.take_records(export.records())
    assert importer.take_records([]) == export.mark
    export.close()


def test_a_change_of_schemas_that_came_is_known_after_a_crash(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    for node in pair:
        node.node.configure(2, {"music": MUSIC})
    taken = importer.take_records(export.records())
    assert taken.sequence == export.mark.sequence + 1
    second.crash()
    second.__dict__.update(start(tmp_path / "second", {"music": MUSIC}).__dict__)
    importer = second.node.partition_importer(3)
    assert importer.take_records([]) == taken
    name = names_of(3, 8)[7]
    first.apply(put(name, title="after the crash"))
    importer.take_records(export.records())
    assert second.get(name) == {"title": "after the crash"}
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


def test_a_partition_that_came_moves_on(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    importer, names = second.node.partition_importer(3), names_of(3, 12)
    importer.take_picture(io.BytesIO(picture))
    with started(tmp_path / "third") as third:
        again, onwards = moved(second, 3)
        last = third.node.partition_importer(3)
        last.take_picture(io.BytesIO(again))
        first.apply(put(names[4], title="on its way"))
        importer.take_records(export.records())
        second.node.compact()
        second.apply(put(names[5], title="and more"))
        last.take_records(onwards.records())
        onwards.close()
        assert digest_of(third, 3) == digest_of(second, 3) != digest_of(first, 3)
        assert third.get(names[4])["title"] == "on its way"
    export.close()


def test_records_and_marks_of_another_log_are_refused(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    """Though their sequences would follow: the third node has logged as much as the first one."""
    first, second = pair
    name = names_of(3, 1)[0]
    with started(tmp_path / "third") as third:
        picture, export = moved(first, 3)
        while third.log.last()[3].sequence < export.mark.sequence:
            third.apply(put(name, title="of the third node"))
        _, other = moved(third, 3)
        importer = second.node.partition_importer(3)
        importer.take_picture(io.BytesIO(picture))
        third.apply(put(name, title="of the third node"))
        before = digest_of(second, 3)
        for _ in range(2):
            with pytest.raises(Conflict, match="is of another log than partition 3 was taken from"):
                importer.take_records(other.records(other.mark))
            assert importer.take_records([]) == export.mark and digest_of(second, 3) == before
            again(second, tmp_path / "second")
            importer = second.node.partition_importer(3)
        with pytest.raises(Conflict, match="is of another log"):
            list(other.records(export.mark))
        other.close()
        with pytest.raises(Conflict, match="is of another log"):
            third.node.drop_partition(3, export.mark)
        export.close()


def test_a_partition_of_an_older_checkpoint_takes_no_records(
    pair: tuple[TestNode, TestNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not say of which log the partition is."""
    first, second = pair
    picture, export = moved(first, 3)
    monkeypatch.setattr(checkpoint, "_describe_imported", lambda found: [[3, *found[3].mark]])
    second.node.partition_importer(3).take_picture(io.BytesIO(picture))
    again(second, tmp_path / "second")
    first.apply(put(names_of(3, 1)[0], title="on its way"))
    importer = second.node.partition_importer(3)
    with pytest.raises(Conflict, match="is of another log than"):
        importer.take_records(export.records())
    assert importer.take_picture(io.BytesIO(picture)) == export.mark
    export.close()


def test_a_picture_of_another_log_may_be_of_a_lower_sequence(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    export.close()
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    with started(tmp_path / "third") as third:
        picture, other = moved(third, 3)
        other.close()
        assert importer.take_picture(io.BytesIO(picture)) == other.mark
        assert other.mark.sequence < export.mark.sequence and digest_of(second, 3) == digest_of(third, 3)


def test_a_partition_is_not_dropped_that_was_taken_under_other_schemas(pair: tuple[TestNode, TestNode]) -> None:
    first, _ = pair
    mark = mark_of(first, 3)._replace(layout="00" * 16)
    with pytest.raises(Conflict, match="under other schemas"):
        first.node.drop_partition(3, mark)
    assert first.get(names_of(3, 12)[4]) is not None


@pytest.mark.parametrize("with_checkpoint", [False, True])
def test_a_partition_that_is_fed_here_takes_no_more_records(
    pair: tuple[TestNode, TestNode], tmp_path: Path, with_checkpoint: bool
) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    names = names_of(3, 12)
    second.node.partition_importer(3).take_picture(io.BytesIO(picture))
    second.apply(put(names_of(4, 1)[0], title="of another partition"))
    assert second.node.partition_importer(3).take_records([]) == export.mark
    second.apply(put(names[4], title="of the second node"))
    if with_checkpoint:
        second.node.checkpoint()
    first.apply(put(names[4], title="late"))
    for _ in range(2):
        with pytest.raises(Conflict, match="was changed here since"):
            second.node.partition_importer(3).take_records(export.records(export.mark))
        again(second, tmp_path / "second")
    assert second.get(names[4])["title"] == "of the second node"
    export.close()


def test_operations_that_are_refused_for_good_end_the_move(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    """Also after a crash: nothing of the record counts as taken."""
    first, second = pair
    picture, export = moved(first, 3)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    unknown = DocumentId("n", "unknown", names_of(3, 1)[0])
    while partition_of(unknown.gid) != 3:
        unknown = DocumentId("n", "unknown", unknown.user_specified + "x")
    entry = Entry(EntryKind.REMOVE, unknown.text, unknown.gid, "unknown", 1)
    following = Mark(export.mark.sequence + 1, 5)
    record = MovedRecord(export.mark.log, following, RecordKind.OPERATIONS, records_of([entry])[0].payload)
    with pytest.raises(Corruption, match="cannot be applied by this node: begin with a new picture"):
        importer.take_records([encode_record(record)])
    for _ in range(2):
        with pytest.raises(Conflict, match="its picture comes first"):
            second.node.partition_importer(3).take_records([])
        again(second, tmp_path / "second")
    export.close()


def test_the_worked_example() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "internals" / "formats" / "partition.md").read_text()
    lines = page.split("## Worked example")[1].split("```")[1].strip().splitlines()
    frame = bytes.fromhex("".join(line[:30] for line in lines))
    record = MovedRecord(bytes(range(16)).hex(), Mark(7, 0x01020304), 1, b"\4\0\0\0\0")
    assert encode_record(record) == frame
    assert decode_record(frame) == record


def test_a_frame_that_says_to_be_huge_is_not_read() -> None:
    huge = MAGIC + bytes(4) + (limits.PARTITION_FRAME_BYTES + 1).to_bytes(4, "little") + bytes(100)
    with pytest.raises(Corruption, match="a frame of 1073742849 bytes"):
        list(read_picture(io.BytesIO(huge)))


def test_records_are_taken_in_chunks(pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of frames that are damaged further on, those before them are applied."""
    first, second = pair
    picture, export = moved(first, 3)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    monkeypatch.setattr(limits, "PARTITION_CHUNK_BYTES", 1)
    for name in names_of(3, 4):
        first.apply(put(name, title="in a chunk of its own"))
    frames = list(export.records())
    with pytest.raises(Corruption):
        importer.take_records([*frames[:3], frames[3][:-1]])
    assert importer.take_records([]).mark == decode_record(frames[2]).mark
    importer.take_records(frames)
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


@pytest.mark.parametrize("wrong", ["damaged", "gap", "cut off"])
def test_records_before_a_wrong_one_are_taken(pair: tuple[TestNode, TestNode], wrong: str) -> None:
    """And the others are given again, by what the other node has."""
    first, second = pair
    picture, export = moved(first, 3)
    importer, names = second.node.partition_importer(3), names_of(3, 6)
    importer.take_picture(io.BytesIO(picture))
    for name in names:
        first.apply(put(name, title="on its way"))
    given: list[bytes] = []

    def stream() -> Iterator[bytes]:
        for number, frame in enumerate(export.records()):
            if number == 3 and wrong == "cut off":
                raise ConnectionError("the stream is cut off")
            if number == 3 and wrong == "gap":
                continue
            given.append(frame)
            yield frame[:-1] if number == 3 else frame

    with pytest.raises((Corruption, ConnectionError)):
        importer.take_records(stream())
    taken = importer.take_records([])
    assert taken.mark == decode_record(given[2]).mark
    assert importer.take_records(export.records(taken)).sequence == export.mark.sequence + len(names)
    assert digest_of(second, 3) == digest_of(first, 3)
    assert not list(export.records())
    export.close()


def test_a_frame_is_given_once_the_next_is_asked_for(pair: tuple[TestNode, TestNode]) -> None:
    first, _ = pair
    _, export = moved(first, 3)
    for name in names_of(3, 3):
        first.apply(put(name, title="on its way"))
    frames = export.records()
    first_frame, second_frame = next(frames), next(frames)
    assert first_frame != second_frame == next(export.records())
    export.close()


def test_records_wait_for_the_end_of_a_fault(pair: tuple[TestNode, TestNode], monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations of another partition are applied by half: nothing is applied on top of that, or shown."""
    first, second = pair
    picture, export = moved(first, 3)
    importer, name, other = second.node.partition_importer(3), names_of(3, 12)[11], names_of(4, 1)[0]
    importer.take_picture(io.BytesIO(picture))
    first.apply(put(name, title="on its way"))
    frames = list(export.records())

    def full(*_: object) -> None:
        raise NoSpace("the disk is full")

    monkeypatch.setattr(DocumentStore, "write", full)
    monkeypatch.setattr(Checkpoints, "load_aside", full)
    (answer,) = second.outcomes(put(other, title="applied by half"))
    assert isinstance(answer, NoSpace) and second.fault() is not None
    shown, logged = second.get(name), second.log.last()
    with pytest.raises(NoSpace, match="the disk is full"):
        importer.take_records(frames)
    assert second.get(name) == shown and second.log.last() == logged
    monkeypatch.undo()
    second.node.operations.run(second.node._recover)
    assert importer.take_records(frames).mark == decode_record(frames[-1]).mark
    assert digest_of(second, 3) == digest_of(first, 3)
    assert second.get(other) == {"title": "applied by half"}
    export.close()


def again(node: TestNode, path: Path) -> None:
    """Kills the node and starts it again."""
    node.crash()
    node.__dict__.update(start(path).__dict__)


def test_what_the_log_refuses_does_not_move(pair: tuple[TestNode, TestNode], defect: pytest.MonkeyPatch) -> None:
    """The client was told so: the other node does not apply it either, though it could."""
    first, second = pair
    picture, export = moved(first, 3)
    names = names_of(3, 12)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    answers = together(first, put(names[3], title="fine"), put(names[4], title=POISON), put(names[5], title="fine"))
    assert answers[1] == Outcome(False, Refusal.UNFIT)
    defect.undo()
    first.apply(put(names[6], title="afterwards"))
    assert importer.take_records(export.records()) == mark_of(first, 3)
    assert [second.get(name)["title"] for name in names[3:7]] == ["fine", f"title {names[4]}", "fine", "afterwards"]
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


def test_nothing_moves_that_may_be_refused_yet(pair: tuple[TestNode, TestNode], defect: pytest.MonkeyPatch) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    names, append, fails = names_of(3, 12), first.log.append, [True]
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))

    def append_or_fail(records: Sequence[NewRecord]) -> list[Mark]:
        if fails and any(record.kind == RecordKind.REFUSED for record in records):
            raise NoSpace("no room")
        return append(records)

    defect.setattr(first.log, "append", append_or_fail)
    assert [type(answer) for answer in together(first, put(names[4], title=POISON))] == [NoSpace]
    with pytest.raises(InternalError, match="until it can apply what it has logged"):
        importer.take_records(export.records())
    fails.clear()
    first.node.operations.run(first.node._recover)
    importer.take_records(export.records())
    assert second.get(names[4]) == first.get(names[4]) == {"title": f"title {names[4]}", "year": 7}
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


def test_a_node_that_cannot_apply_a_record_says_so_and_goes_on(
    pair: tuple[TestNode, TestNode], tmp_path: Path, defect: pytest.MonkeyPatch
) -> None:
    """The other node has applied it: the two are not equal before a new picture was taken, also after a crash."""
    first, second = pair
    picture, export = moved(first, 3)
    names, other = names_of(3, 12), names_of(4, 1)[0]
    defect.undo()
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    first.apply(put(names[4], title=POISON))
    first.apply(put(names[5], title="fine"))
    poison(defect)
    frames = list(export.records())
    with pytest.raises(Corruption, match="cannot be applied by this node: begin with a new picture"):
        importer.take_records(frames)
    assert second.fault() is None and second.apply(put(other, title="as before")) == [True]
    export.close()
    defect.undo()
    for _ in range(2):
        with pytest.raises(Conflict, match="its picture comes first"):
            second.node.partition_importer(3).take_records(frames[1:])
        assert second.get(names[4])["title"] == f"title {names[4]}", "refused by the log, whatever is mended"
        again(second, tmp_path / "second")
    picture, export = moved(first, 3)
    second.node.partition_importer(3).take_picture(io.BytesIO(picture))
    assert digest_of(second, 3) == digest_of(first, 3)
    export.close()


def test_a_partition_is_dropped_once_another_node_has_it(pair: tuple[TestNode, TestNode], tmp_path: Path) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    names, other = names_of(3, 12), names_of(4, 1)[0]
    second.node.partition_importer(3).take_picture(io.BytesIO(picture))
    with pytest.raises(Conflict, match="is being read for another node"):
        first.node.drop_partition(3, export.mark)
    export.close()
    first.apply(put(names[4], title="which the other node lacks"))
    with pytest.raises(Conflict, match=f"has come to record {export.mark.sequence + 1}, the other node to"):
        first.node.drop_partition(3, export.mark)
    assert first.get(names[4]) is not None
    kept = [digest_of(first, partition) for partition in range(limits.PARTITIONS) if partition != 3]
    for _ in range(2):
        first.node.drop_partition(3, mark_of(first, 3))
        assert [first.get(name) for name in names] == [None] * len(names)
        assert first.get(other) is not None
        again(first, tmp_path / "first")
        assert [digest_of(first, partition) for partition in range(limits.PARTITIONS) if partition != 3] == kept
    assert digest_of(first, 3) == digest_of(first, 5), "of no documents and no removals"
    first.apply(put(names[4], title="is back"))
    assert first.node.reader.view().live_counts["music"] == 1 + 3


def test_a_partition_that_came_and_was_dropped_takes_no_records(pair: tuple[TestNode, TestNode]) -> None:
    first, second = pair
    picture, export = moved(first, 3)
    importer = second.node.partition_importer(3)
    importer.take_picture(io.BytesIO(picture))
    second.node.drop_partition(3, mark_of(second, 3))
    first.apply(put(names_of(3, 1)[0], title="late"))
    with pytest.raises(Conflict, match="its picture comes first"):
        importer.take_records(export.records())
    export.close()


def test_a_crash_while_a_partition_is_dropped_leaves_all_or_nothing(
    pair: tuple[TestNode, TestNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files as they are before each step of the checkpoint and after the last: a start on them has the documents,
    or from one step on none of them."""
    first, _ = pair
    names, copies = names_of(3, 12), [tmp_path / "0"]

    def copy_first(step: Callable[..., object]) -> Callable[..., object]:
        def stepped(*arguments: Any, **more: Any) -> object:
            copies.append(tmp_path / str(len(copies)))
            shutil.copytree(tmp_path / "first", copies[-1])
            return step(*arguments, **more)

        return stepped

    shutil.copytree(tmp_path / "first", copies[0])
    for name in ("write_arrays", "sync_directory"):
        monkeypatch.setattr(checkpoint, name, copy_first(getattr(checkpoint, name)))
    for kind, name in ((Disk, "write_whole"), (Disk, "make_directory"), (StoreWrites, "forget")):
        monkeypatch.setattr(kind, name, copy_first(getattr(kind, name)))
    first.node.drop_partition(3, mark_of(first, 3))
    monkeypatch.undo()
    shutil.copytree(tmp_path / "first", tmp_path / "last")
    here = []
    for path in [*copies, tmp_path / "last"]:
        with started(path) as node:
            here.append([node.get(name) is not None for name in names])
            assert node.get(names_of(4, 1)[0]) is not None
    assert here == sorted(here, reverse=True)
    assert {sum(found) for found in here} == {0, 10}


@pytest.mark.parametrize("variant", range(VARIANTS))
def test_documents_of_every_kind_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: int) -> None:
    """Every type of field, as puts, updates, mutations and reindexing leave it; digests say whether all is there."""
    chance, schemas = random.Random(SEED + variant), {"thing": variant_schema(variant)}
    others = {"thing": variant_schema((variant + 1) % VARIANTS)}
    print(f"seed {SEED + variant}")  # noqa: T201
    monkeypatch.setattr(limits, "PARTITION_CHUNK_DOCUMENTS", 3)
    with started(tmp_path / "first", schemas) as first, started(tmp_path / "second", schemas) as second:

        def feed(deeds: int) -> None:
            first.apply(*(random_deed(chance, 100).operation() for _ in range(deeds)))
            gids = [DocumentId("n", "thing", str(name)).gid for name in range(100)]
            for partition in range(limits.PARTITIONS):
                changed = b"".join(gid for gid in gids if partition_of(gid) == partition)
                changes = (("count", "+=", float(chance.randrange(5))),)
                first.apply(Mutate(DocumentId("-", "thing", "-", number=partition), changes, changed))

        feed(200)
        if chance.random() < 0.5:
            reindexed(first.node, ReindexRequest("thing"))
        first.node.configure(2, others)
        second.node.configure(2, others)
        reindexed(first.node, ReindexRequest("thing"))  # so that nothing is stored as an earlier layout has it
        first.node.compact()
        for partition in chance.sample(range(limits.PARTITIONS), 2):
            picture, export = moved(first, partition)
            importer = second.node.partition_importer(partition)
            importer.take_picture(io.BytesIO(picture))
            feed(60)
            importer.take_records(export.records())
            export.close()
            assert digest_of(second, partition) == digest_of(first, partition)
