"""The two halves of a writer: who logs, and who applies what was logged, whatever the log does in between."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import paperwasp.content
from paperwasp import limits
from paperwasp.content.layouts.configuration import Configuration
from paperwasp.content.layouts.layout import EMPTY
from paperwasp.content.log.producer import Producer
from paperwasp.content.log.records import Entry, EntryKind, LoggedBatch, Reindex, markers_of
from paperwasp.content.state.apply import apply_entries
from paperwasp.content.state.digest import digest
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.replay import Replay, marks_after, replay
from paperwasp.coordination.operation_log import FileOperationLog, NewRecord
from paperwasp.document.operations import Operation, Outcome, Refusal
from paperwasp.errors import Corruption, InternalError, NoSpace
from paperwasp.schema.model import Field
from paperwasp.storage.documents.document_store import DocumentStore
from paperwasp.storage.index.text_index import TextIndex
from tests.chance import SEED
from tests.content.fake_log import FakeLog, FirstRecords, MemoryLog
from tests.content.nodes import (
    BOOK,
    MUSIC_FIELDS,
    SCHEMAS,
    doc_id,
    put,
    remove,
    schema,
    start,
    started,
    update,
)  # fmt: skip

FEWER = schema("music", *(field for field in MUSIC_FIELDS if field.name not in ("year", "note")))


@contextmanager
def states(directory: Path, count: int) -> Iterator[list[NodeState]]:
    made = []
    for number in range(count):
        folder = directory / f"index-{number}"
        made.append(NodeState(TextIndex(folder), DocumentStore(directory / f"store-{number}"), folder))
    try:
        yield made
    finally:
        for state in made:
            state.store.close()
            state.index.close()


def log_all(producer: Producer, operations: Sequence[Operation]) -> LoggedBatch:
    entries, _ = producer.encode([(operation, lambda _: None, 0) for operation in operations])
    return producer.append(entries)


def some_operation(chance: random.Random) -> Operation:
    name = chance.randrange(30)
    choice = chance.random()
    if choice < 0.4:
        return put(name, title=f"word{chance.randrange(5)}", plays=chance.randrange(9))
    if choice < 0.5:
        return remove(name)
    return update(name, create=chance.random() < 0.5, plays=chance.randrange(9), genre=f"g{chance.randrange(3)}")


def history(log: MemoryLog, chance: random.Random, batches: int = 12) -> None:
    """Operations under changing layouts."""
    producer = Producer(log, EMPTY, 0)
    for number in range(batches):
        if number % 4 == 0:
            producer.configure(Configuration(number, {"music": FEWER} if number % 8 else SCHEMAS))
        log_all(producer, [some_operation(chance) for _ in range(chance.randrange(1, 12))])


def test_a_log_that_mixes_repeats_and_delays_is_applied_once(tmp_path: Path) -> None:
    for seed in range(SEED, SEED + 8):
        print(f"seed {seed}")  # noqa: T201
        chance, log = random.Random(seed), MemoryLog()
        history(log, chance)
        with states(tmp_path / f"{seed}", 2) as (plain, other):
            replay(log, plain)
            fake = FakeLog(log, chance)
            while tuple(other.applied) != log.last():
                replay(fake, other)
                digest(other)
            assert digest(other) == digest(plain), f"seed {seed}"


@pytest.mark.parametrize(("fault", "message"), [
    ("gap", "where [0-9]+ is due"),
    ("swap", "is another than the one that was applied"),
    ("backwards", "comes again, [0-9]+ records late"),
])  # fmt: skip
def test_a_log_that_lacks_or_swaps_something_stops_whoever_applies_it(tmp_path: Path, fault: str, message: str) -> None:
    for seed in range(SEED, SEED + 8):
        print(f"seed {seed}")  # noqa: T201
        chance, log = random.Random(seed), MemoryLog()
        history(log, chance)
        with states(tmp_path / f"{seed}", 1) as (state,):
            fake = FakeLog(log, chance)
            with pytest.raises(Corruption, match=f"memory: offset [0-9]+: record [0-9]+ of partition [0-9]+ {message}"):
                while True:
                    replay(fake, state)
                    assert tuple(state.applied) != log.last() or not fake.faults, f"seed {seed}: nothing was done"
                    fake.faults = [fault]


def test_a_record_of_long_ago_is_not_taken_for_a_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REPLAY_REPEATS", 3)
    log = MemoryLog()
    producer = Producer(log, EMPTY, 0)
    producer.configure(Configuration(1, SCHEMAS))
    for year in range(4):
        log_all(producer, [put("a", year=year)])
    with states(tmp_path, 1) as (state,):
        replaying = Replay(state)
        for record in log.records:
            replaying.take(record)
        for record in log.records[-3:]:
            replaying.take(record)
        with pytest.raises(Corruption, match="comes again, 3 records late"):
            replaying.take(log.records[-4])
        replaying.apply()
        assert replaying.operations == 4


def test_a_layout_that_some_partitions_lack_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    producer = Producer(log, EMPTY, 0)
    producer.configure(Configuration(1, SCHEMAS))
    log_all(producer, [put(number, note="x" * 100) for number in range(50)])
    with states(tmp_path, 1) as (state,):
        replaying = Replay(state)
        late = [record for record in log.records if record.partition == 7]
        for record in log.records:
            if record.partition != 7:
                replaying.take(record)
        replaying.apply()
        assert state.layout.types == {} and state.live_count == 0, "nothing may be applied under another layout"
        assert [record.partition for record in replaying.missing_markers()] == [7]
        for record in late:
            replaying.take(record)
        replaying.apply()
        assert state.live_count == 50 and not replaying.missing_markers()
        assert tuple(state.applied) == log.last()
    monkeypatch.setattr(limits, "REPLAY_HELD_BYTES", 100_000)
    with states(tmp_path / "again", 1) as (state,):
        replaying = Replay(state)
        with pytest.raises(Corruption, match=r"wait for the marker of a layout that partitions \[7\] lack"):
            for record in log.records:
                if record.partition != 7:
                    replaying.take(record)
                    log.records.append(record)


def test_markers_of_different_layouts_do_not_make_one(tmp_path: Path) -> None:
    log = MemoryLog()
    producer = Producer(log, EMPTY, 0)
    producer.configure(Configuration(1, SCHEMAS))
    other = Producer(MemoryLog(), EMPTY, 0).configure(Configuration(2, {"book": BOOK}))
    log.records[3] = log.records[3]._replace(payload=other.records[3].payload)
    with states(tmp_path, 1) as (state,), pytest.raises(Corruption, match="offset 3: another layout than"):
        replay(log, state)


def test_a_change_of_layout_that_was_logged_by_half_is_ended_by_the_next_start(tmp_path: Path) -> None:
    """A process was killed, or lost power, while it wrote the markers."""
    with started(tmp_path) as node:
        node.apply(*(put(number, year=number, title="t") for number in range(40)))
    log = FileOperationLog(tmp_path / "log")
    layout = EMPTY.changed(2, [schema("music", Field("year", MUSIC_FIELDS[2].type)), BOOK], {})
    log.append(markers_of(layout)[:5])
    log.close()
    for _ in range(2):
        node = start(tmp_path, None)
        assert node.node.reader.view().layout.types == layout.types
        assert [mark.sequence for mark in node.log.last()] == [
            mark.sequence for mark in node.node._current.state.applied
        ]
        node.crash()


def test_what_is_handed_over_is_what_the_log_has(tmp_path: Path) -> None:
    """Applied from the entries, or read from the log: the same state."""
    for seed in range(SEED, SEED + 4):
        chance = random.Random(seed)
        print(f"seed {seed}")  # noqa: T201
        node = start(tmp_path / f"{seed}")
        for _ in range(10):
            node.apply(*(some_operation(chance) for _ in range(chance.randrange(1, 12))))
        with states(tmp_path / f"other-{seed}", 1) as (state,):
            replay(node.log, state)
            assert digest(state) == digest(node.node._current.state)
            assert state.timestamp_us == node.node._current.state.timestamp_us
        node.close()


def test_entries_that_do_not_follow_are_not_applied() -> None:
    log = MemoryLog()
    records = [NewRecord(3, b"a"), NewRecord(4, b"b")]
    first, second = log.append(records), log.append(records)
    assert marks_after(MemoryLog().last(), records, first)[3:5] == first
    with pytest.raises(Corruption, match="record 2 of partition 3 where 1 is due"):
        marks_after(MemoryLog().last(), records, second)


def test_what_another_has_logged_before_is_read_first(tmp_path: Path) -> None:
    """The entries that are handed over do not follow what was applied: then the log says what is between."""
    with started(tmp_path) as node:
        other = Producer(node.log, node.node.reader.view().layout, 10**18)
        for year in range(3):
            log_all(other, [put("a", year=year, title="t")])
            assert node.outcomes(update("a", note="n")) == [Outcome(True)]
            assert node.get("a") == {"year": year, "title": "t", "note": "n"}
        assert node.fault() is None


def test_a_layout_that_another_has_logged_is_not_taken_for_the_own(tmp_path: Path) -> None:
    """The node stops: what it goes on to log would mean something else than it was answered. A start goes on under the
    layout of the log, and so does everyone who reads it."""
    with started(tmp_path) as node:
        node.apply(put("a", title="t", year=1))
        other = Producer(node.log, node.node.reader.view().layout, 10**18)
        other.configure(Configuration(2, {"music": FEWER}))
        (answer,) = node.outcomes(put("b", title="t", year=2))
        assert isinstance(answer, InternalError) and "another producer logged it" in answer.message
        with pytest.raises(InternalError, match="another producer logged it"):
            node.apply(put("c", title="t"))
        assert node.get("a") == {"title": "t", "year": 1} and node.get("b") is None
        node.crash()
    with started(tmp_path, {"music": FEWER}) as node, states(tmp_path / "other", 1) as (state,):
        assert node.get("a") == {"title": "t"} and node.get("b")["title"] == "t"
        replay(node.log, state)
        assert digest(state) == digest(node.node._current.state)


def test_what_no_replica_can_do_is_refused_by_all(tmp_path: Path) -> None:
    """Records that another producer may have written: they change nothing, and what comes after them is applied."""

    def entry(kind: EntryKind, body: bytes = b"", document_type: str = "music", **more: Any) -> Entry:
        document_id = doc_id("a", document_type)
        return Entry(kind, document_id.text, document_id.gid, document_type, 5, body, **more)

    unfit = [
        entry(EntryKind.PUT, b"{}", "unknown"),
        entry(EntryKind.REMOVE, document_type="unknown"),
        entry(EntryKind.PUT, b"no json"),
        entry(EntryKind.PUT, b'{"year":"words"}'),
        entry(EntryKind.UPDATE, b'{"nothing":{"assign":1}}'),
        entry(EntryKind.UPDATE, b'{"title":{"increment":1}}'),
        entry(EntryKind.REINDEX, b"short"),
        entry(EntryKind.MUTATE, b"\x09\0\0\0"),
        entry(EntryKind.REMOVE, condition="music.year >"),
    ]
    log = MemoryLog()
    Producer(log, EMPTY, 0).configure(Configuration(1, SCHEMAS))
    with states(tmp_path, 1) as (state,):
        replay(log, state)
        year = entry(EntryKind.PUT, b'{"year":1}')
        assert apply_entries(state, [year]) == [Outcome(False)]
        before = digest(state)
        for refused in unfit:
            outcomes = apply_entries(state, [refused, entry(EntryKind.UPDATE, b'{"year":{"assign":1}}')])
            assert outcomes == [Outcome(False, Refusal.UNFIT), Outcome(True)], refused
            assert digest(state) == before, refused


def test_reindexing_counts_whatever_is_applied_with_it(tmp_path: Path) -> None:
    """Together with the put that it was made of, as a replay applies them, or after it."""
    log = MemoryLog()
    producer = Producer(log, EMPTY, 0)
    producer.configure(Configuration(1, SCHEMAS))
    stamped = log_all(producer, [put("a", year=1), put("b", year=1)]).entries
    times = {entry.id: entry.timestamp_us for entry in stamped}
    made = [
        Reindex(doc_id("a"), {"genre": "made"}, times[doc_id("a").text]),
        Reindex(doc_id("b"), {"genre": "made"}, times[doc_id("b").text] - 1),
    ]
    entries, _ = producer.encode([(operation, lambda _: None, 0) for operation in made])
    producer.append(entries)
    with states(tmp_path, 2) as (together, apart):
        outcomes = replay(log, together, 2).outcomes
        assert {outcome.refusal for outcome in outcomes} == {None, Refusal.NOT_MET}
        for number in range(len(log.records) + 1):
            replay(FirstRecords(log.records[:number]), apart)
        assert digest(apart) == digest(together)


@pytest.mark.parametrize("error", [ValueError("half way"), NoSpace("no room")])
def test_an_error_of_the_machine_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    log = MemoryLog()
    producer = Producer(log, EMPTY, 0)
    producer.configure(Configuration(1, SCHEMAS))
    with states(tmp_path, 1) as (state,):
        replay(log, state)
        log_all(producer, [put("a", title="x"), remove("a")])
        monkeypatch.setattr(DocumentStore, "write", fail)
        with pytest.raises(type(error), match=str(error)):
            replay(log, state)


def test_a_producer_goes_on_after_the_last_time_of_the_log(tmp_path: Path) -> None:
    """Also where the clock was set back; and it needs nothing but the end of the log."""
    log = MemoryLog()
    producer = Producer(log, EMPTY, 10**18)
    producer.configure(Configuration(1, SCHEMAS))
    log_all(producer, [put("a", year=1)])
    with states(tmp_path, 1) as (state,):
        replay(log, state)
        assert state.timestamp_us == 10**18 + 1
        again = Producer(log, state.layout, state.timestamp_us)
        assert not again.configure(Configuration(2, SCHEMAS)).records, "the log has this layout"
        log_all(again, [update("a", year=2)])
        replay(log, state)
        assert state.timestamp_us == 10**18 + 2 and state.live_count == 1


def imports_of(name: str, seen: set[str]) -> set[str]:
    """The modules of content that one of them imports, and those that these import."""
    path = Path(paperwasp.content.__path__[0]) / f"{name.replace('.', '/')}.py"
    if name in seen or not path.is_file():
        return seen
    seen.add(name)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("paperwasp.content."):
            imports_of(node.module.removeprefix("paperwasp.content."), seen)
    return seen


def test_the_two_halves_do_not_know_each_other() -> None:
    producer, consumer = imports_of("log.producer", set()), imports_of("consumer", set())
    assert {name.split(".")[0] for name in producer} == {"log", "layouts"}
    assert {"state.apply", "views.view"} <= consumer
    assert not consumer & {"log.producer", "log.late_operations", "log.operation_queue", "writer"}
