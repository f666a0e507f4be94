"""A disk that is full, or fails: operations are refused, nothing is half done, and the node goes on when it can."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.base.env import Environment
from paperwasp.content import consumer
from paperwasp.content.checkpoints import checkpoint as checkpoint_module
from paperwasp.content.checkpoints.checkpoint import Checkpoints
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.state import replay as replay_module
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.relayout import change_layout
from paperwasp.coordination.disk import Disk
from paperwasp.document.operations import Outcome, Update
from paperwasp.document.updates import Calculate, FieldUpdate
from paperwasp.errors import InternalError, NoSpace
from paperwasp.storage.documents.document_store import DocumentStore, StoreWrites
from tests.chance import SEED
from tests.children import ROOT
from tests.content.nodes import (
    BOOK,
    MUSIC_FIELDS,
    SCHEMAS,
    TestNode,
    doc_id,
    put,
    remove,
    schema,
    start,
    started,
    update,
)


@pytest.mark.parametrize(("broken", "code", "error"), [
    ("write", errno.ENOSPC, NoSpace), ("fdatasync", errno.ENOSPC, NoSpace), ("fdatasync", errno.EIO, InternalError),
])  # fmt: skip
def test_operations_are_refused_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, code: int, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, "no")

    node = start(tmp_path)
    node.apply(put("a", year=1))
    before = node.node.reader.view()
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        refused = node.outcomes(put("a", year=2), update("a", year=3), remove("a"), put("b"))
        assert [type(answer) for answer in refused] == [error] * 4
        assert node.get("a") == {"year": 1} and node.get("b") is None
        assert node.node.reader.view().live_count == before.live_count == 1
    assert node.outcomes(update("a", year=4)) == [Outcome(True)]
    node.crash()
    with started(tmp_path) as again:
        assert again.get("a") == {"year": 4} and again.get("b") is None
        assert again.node.reader.view().store.get(doc_id("b").gid) is None


def test_a_disk_that_fails_at_random_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever call fails: what was acknowledged is there, and what was refused is not."""
    seed = SEED
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 2_000)
    years: dict[int, int] = {}
    is_failing = False

    def sometimes(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object, **named: object) -> object:
            if is_failing and chance.random() < 0.2:
                raise OSError(chance.choice((errno.ENOSPC, errno.EIO)), f"{name} fails")
            return real(*arguments, **named)

        monkeypatch.setattr(os, name, call)

    for name in ("write", "pwrite", "fdatasync", "fsync", "ftruncate", "rename", "mkdir", "unlink"):
        sometimes(name)
    node = start(tmp_path)
    refused = 0
    for year in range(400):
        number, is_failing = chance.randrange(9), True
        (answer,) = node.outcomes(
            put(number, year=year) if chance.random() < 0.5 else update(number, create=True, year=year)
        )
        if year % 40 == 39:
            with suppress(OSError, NoSpace, InternalError):
                node.node.checkpoint()
        is_failing = False
        if isinstance(answer, Outcome):
            years[number] = year
        else:
            assert isinstance(answer, NoSpace | InternalError)
            refused += 1
        if year % 100 == 99:
            node.apply(put("last"))  # a process that dies before it could cut off what it refused may find it again
            node.crash()
            node = start(tmp_path)
        assert {name: (node.get(name) or {}).get("year") for name in range(9)} == {
            name: years.get(name) for name in range(9)
        }, f"seed {seed}"
    node.close()
    assert refused > 20


def no_room(*_: object) -> None:
    raise NoSpace("the store has no room")


def test_a_batch_that_was_not_applied_is_applied_to_a_state_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails once: nobody but the log notices."""
    with started(tmp_path) as node:
        node.apply(put("a", year=1, title="first"), put("gone"))
        node.node.checkpoint()
        node.apply(put("b", year=1))
        calls: list[int] = []
        write = DocumentStore.write

        def fail_once(store: DocumentStore, writes: StoreWrites) -> None:
            calls.append(1)
            if len(calls) == 1:
                no_room()
            write(store, writes)

        with monkeypatch.context() as patch:
            patch.setattr(DocumentStore, "write", fail_once)
            answers = node.outcomes(update("a", year=2), put("c", year=3), remove("gone"), update("nobody", year=1))
        assert answers == [Outcome(True), Outcome(False), Outcome(True), Outcome(False)]
        assert node.fault() is None
        assert [node.get(name) for name in ("a", "b", "c", "gone")] == [
            {"year": 2, "title": "first"}, {"year": 1}, {"year": 3}, None
        ]  # fmt: skip
        assert node.apply(put("a", year=5)) == [True]
        node.node.checkpoint()
    with started(tmp_path) as again:
        assert again.get("a") == {"year": 5} and again.get("c") == {"year": 3} and again.get("gone") is None


@pytest.mark.parametrize(("cause", "refusal"), [
    (NoSpace("no room"), NoSpace), (InternalError("no disk"), InternalError), (ValueError("a defect"), InternalError),
])  # fmt: skip
def test_a_store_that_goes_on_failing_is_told_of_until_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: Exception, refusal: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise cause

    clock = [0]
    node = start(tmp_path)
    node.node.fault._environment = Environment(monotonic_ns=lambda: clock[0])
    node.apply(put("a", year=1))
    with monkeypatch.context() as patch:
        patch.setattr(DocumentStore, "write", fail)
        assert [type(answer) for answer in node.outcomes(put("b", year=2))] == [refusal]
        assert node.node.fault.reason is not None and str(cause) in node.node.fault.reason
        with pytest.raises(refusal, match=str(cause)):
            node.node.operations.submit(put("c"), lambda _: None)
        with pytest.raises(refusal, match=str(cause)):
            node.node.configure(2, SCHEMAS)
        with pytest.raises(refusal, match=str(cause)):
            node.node.checkpoint()
        assert node.get("a") == {"year": 1}, "reads go on"
        clock[0] += 40 * 10**9
        with pytest.raises(refusal, match=str(cause)):
            node.node.recover_if_due()
    node.node.recover_if_due()
    assert node.fault() is not None, "it is not due yet"
    clock[0] += 40 * 10**9
    node.node.recover_if_due()
    assert node.fault() is None
    assert node.get("b") == {"year": 2}, "what was logged is applied"
    assert node.get("c") is None, "what was refused before the log has not happened"
    assert node.apply(put("c", year=3)) == [False]
    node.node.configure(2, SCHEMAS)
    node.close()
    with started(tmp_path) as again:
        assert [again.get(name) for name in "abc"] == [{"year": 1}, {"year": 2}, {"year": 3}]


def recover(node: TestNode) -> None:
    node.node.fault._not_before_ns = 0
    node.node.recover_if_due()


def test_what_was_logged_is_applied_once_and_what_is_refused_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever repeats what was answered with an error repeats something that has happened: a sum counts it twice."""
    node = start(tmp_path)
    node.apply(put("a", year=1))
    add_ten = Update(doc_id("a"), (FieldUpdate("year", Calculate("increment", 10)),))
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(consumer, "apply_entries", no_room)
            patch.setattr(replay_module, "apply_entries", no_room)
            (answer,) = node.outcomes(add_ten)
            assert isinstance(answer, NoSpace) and "is logged, and is applied as soon as" in answer.message
            with pytest.raises(NoSpace, match="takes no operations until it can apply"):
                node.outcomes(add_ten)
        recover(node)
    assert node.get("a") == {"year": 31}
    assert node.outcomes(put("a", year=2)) == node.outcomes(put("a", year=2)) == [Outcome(True)]
    node.crash()
    with started(tmp_path) as again:
        assert again.get("a") == {"year": 2}


def test_a_layout_that_is_logged_is_applied_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = start(tmp_path)
    node.apply(put("a", year=1, note="kept"))
    before = node.node.reader.view()
    fewer = schema("music", *(field for field in MUSIC_FIELDS if field.name != "year"))
    with monkeypatch.context() as patch:
        patch.setattr(consumer, "change_layout", no_room)
        patch.setattr(Checkpoints, "load_aside", no_room)
        with pytest.raises(NoSpace, match="is logged, and is applied as soon as"):
            node.node.configure(2, {"music": fewer, "book": BOOK})
        assert node.node.reader.view() is before
    recover(node)
    view = node.node.reader.view()
    assert view.generation == 2 and view.schemas["music"] is fewer
    assert node.get("a") == {"note": "kept"}
    assert node.apply(update("a", note="changed")) == [True]
    node.crash()
    with started(tmp_path, {"music": fewer, "book": BOOK}) as again:
        assert again.get("a") == {"note": "changed"}


def test_a_layout_that_could_not_be_applied_is_applied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails once while a deployment gives the documents another layout."""
    with started(tmp_path) as node:
        node.apply(put("a", year=1, note="kept"))
        calls: list[int] = []

        def fail_once(state: NodeState, layout: Layout) -> None:
            calls.append(1)
            if len(calls) == 1:
                no_room()
            change_layout(state, layout)

        fewer = schema("music", *(field for field in MUSIC_FIELDS if field.name != "year"))
        with monkeypatch.context() as patch:
            patch.setattr(consumer, "change_layout", fail_once)
            node.node.configure(2, {"music": fewer, "book": BOOK})
        assert node.fault() is None
        assert node.get("a") == {"note": "kept"}


def test_a_store_that_really_fails(tmp_path: Path) -> None:
    """RocksDB cannot write its table, and refuses all writes from then on, while the log has room."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.content.small_files", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    with started(tmp_path) as node:
        assert node.node.reader.view().live_count == int(ended.stdout)


def test_checkpoints_that_fail_one_after_the_other_leave_the_last_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever of the index was written for checkpoints that never counted: the files of the one that does stay."""

    class FullDisk(Disk, frozen=True):
        def write_whole(self, path: Path, content: bytes) -> None:
            raise OSError(errno.ENOSPC, "no room for the manifest")

    node = start(tmp_path)
    for round_ in range(6):
        for number in range(20):
            node.apply(put(f"{round_}-{number}", title=f"word {number}", year=round_))
        if round_ == 0:
            node.node.checkpoint()
            continue
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint_module, "REAL_DISK", FullDisk())
            with pytest.raises(OSError, match="no room"):
                node.node.checkpoint()
    node.crash()
    with started(tmp_path) as again:
        assert all(again.get(f"{round_}-{number}") for round_ in range(6) for number in range(20))
