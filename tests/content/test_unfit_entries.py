"""Operations that a defect keeps from being applied, after they were logged: the log refuses them by a later record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.content.log.records import Entry, EntryKind, LoggedBatch, read_refusal, refusals_of
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
