"""Operations that a defect keeps from being applied, after they were logged: the log refuses them by a later record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.content.log.records import Entry, EntryKind, LoggedBatch, read_refusal, refusals_of
from paperwasp.content.state import apply
from paperwasp.content.state.digest import digest
from paperwasp.coordination.operation_log import Mark, NewRecord, RecordKind
from paperwasp.document.operations import Outcome, Refusal
from paperwasp.errors import Corruption, InternalError, NoSpace
from tests.content.defects import POISON, defect, together
from tests.content.nodes import TestNode, doc_id, put, remove, start, started

__all__ = ["defect"]


def shown(node: TestNode, *names: str) -> list[str]:
    return [name for name in names if node.get(name) is not None]


def test_the_others_of_the_batch_are_applied(tmp_path: Path, defect: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        node.apply(put("before", title="a"))
        outcomes = together(node, put("one", title="a"), put("bad", title=POISON), put("two", title="b"))
        assert outcomes == [Outcome(False), Outcome(False, Refusal.UNFIT), Outcome(False)]
        assert together(node, put("bad", title="fine"), remove("two")) == [Outcome(False), Outcome(True)]
        assert node.fault() is None
        found = digest(node.node._current.state)
    defect.undo()
    with started(tmp_path) as node:
        assert shown(node, "before", "one", "bad", "two") == ["before", "one", "bad"]
        assert digest(node.node._current.state) == found


def test_what_was_refused_stays_refused_where_the_defect_is_mended(tmp_path: Path, defect: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        assert together(node, put("bad", title=POISON)) == [Outcome(False, Refusal.UNFIT)]
    defect.undo()
    for _ in range(2):
        with started(tmp_path) as node:
            assert shown(node, "bad") == []


def test_more_than_the_limit_are_not_refused(
    tmp_path: Path, defect: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNFIT_ENTRIES", 2)
    node = start(tmp_path)
    answers = together(node, *(put(number, title=POISON) for number in range(3)))
    assert all(isinstance(answer, InternalError) and "this is logged" in answer.message for answer in answers)
    assert node.fault() is not None
    node.close()
    defect.undo()
    with started(tmp_path) as node:
        assert shown(node, "0", "1", "2") == ["0", "1", "2"], "they are logged"


def test_a_refusal_that_cannot_be_logged_is_logged_later(tmp_path: Path, defect: pytest.MonkeyPatch) -> None:
    with started(tmp_path) as node:
        append, fails = node.log.append, [True]

        def append_or_fail(records: Sequence[NewRecord]) -> list[Mark]:
            if fails and any(record.kind == RecordKind.REFUSED for record in records):
                raise NoSpace("no room")
            return append(records)

        defect.setattr(node.log, "append", append_or_fail)
        answers = together(node, put("bad", title=POISON), put("good", title="a"))
        assert [type(answer) for answer in answers] == [NoSpace, NoSpace]
        fails.clear()
        node.node.operations.run(node.node._recover)
        assert node.fault() is None
        assert shown(node, "bad", "good") == ["good"]


def killed_before_the_refusal(path: Path, defect: pytest.MonkeyPatch, *titles: str) -> None:
    """Documents with these titles are put as one batch, which is logged; what cannot be applied is not refused."""
    node = start(path)
    node.apply(put("before", title="a"))

    def full(*_: object) -> None:
        raise NoSpace("no room")

    with defect.context() as patch:
        patch.setattr(node.node._producer, "refuse", full)
        together(node, *(put(number, title=title) for number, title in enumerate(titles)))
        node.crash()


def test_a_start_without_the_refusal_says_what_cannot_be_applied(tmp_path: Path, defect: pytest.MonkeyPatch) -> None:
    """Nothing is lost: a program without the defect applies it."""
    killed_before_the_refusal(tmp_path, defect, "fine", POISON)
    with pytest.raises(InternalError, match=r"\.log: offset \d+: an operation on id:n:music::1 is logged and cannot"):
        start(tmp_path)
    defect.undo()
    with started(tmp_path) as node:
        assert shown(node, "before", "0", "1") == ["before", "0", "1"]


def test_a_repair_refuses_what_cannot_be_applied(tmp_path: Path, defect: pytest.MonkeyPatch) -> None:
    killed_before_the_refusal(tmp_path, defect, "fine", POISON, POISON, "fine")
    start(tmp_path, repair=True).close()
    defect.undo()
    with started(tmp_path) as node:
        assert shown(node, "before", "0", "1", "2", "3") == ["before", "0", "3"]


def test_a_repair_refuses_no_more_than_the_limit(
    tmp_path: Path, defect: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNFIT_ENTRIES", 1)
    killed_before_the_refusal(tmp_path, defect, POISON, POISON)
    with pytest.raises(InternalError, match="at most 1 at a start"):
        start(tmp_path, repair=True)
    start(tmp_path, repair=True).close()


def test_a_start_applies_one_by_one_what_fails_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = start(tmp_path)
    together(node, *(put(number, title="a") for number in range(3)))
    node.crash()
    written = apply._Batch._give_lids

    def give_lids(batch: Any, rows: Any) -> None:
        if len(batch._run) > 1:
            raise TypeError("a defect")
        written(batch, rows)

    monkeypatch.setattr(apply._Batch, "_give_lids", give_lids)
    with started(tmp_path) as node:
        assert shown(node, "0", "1", "2") == ["0", "1", "2"]


def test_refusals_name_places_in_records() -> None:
    def record(partition: int, entries: int) -> NewRecord:
        return NewRecord(partition, bytes([1]) + entries.to_bytes(4, "little"))

    some = Entry(EntryKind.PUT, doc_id(1).text, doc_id(1).gid, "music", 1)
    batch = LoggedBatch([some] * 6, [record(3, 2), record(5, 4)], [Mark(7, 0), Mark(9, 0)])
    refusals = refusals_of(batch, [5, 1, 2])
    assert [(each.partition, each.kind, read_refusal(each.payload, str)) for each in refusals] == [
        (3, RecordKind.REFUSED, (7, (1,))),
        (5, RecordKind.REFUSED, (9, (0, 3))),
    ]


@pytest.mark.parametrize("payload", [b"", b"1234567", bytes(10)])
def test_a_damaged_refusal_is_corruption(payload: bytes) -> None:
    with pytest.raises(Corruption, match="here: a damaged refusal"):
        read_refusal(payload, lambda: "here")
