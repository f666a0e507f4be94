"""Conditions, `create`, timestamps and tombstones: what each operation does to a document that is, or is not, there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import force_setattr

from paperwasp import limits
from paperwasp.content.layouts.selected import matcher, oldest_tombstone_us
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Put, Refusal, Remove, Update
from paperwasp.document.types import INT
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate
from paperwasp.errors import InvalidInput
from paperwasp.schema.model import Field
from tests.content.nodes import ATTRIBUTE, MUSIC, SCHEMAS, TestNode, doc_id, put, schema, start, started, update

DONE, NEW = Outcome(True), Outcome(False)
NOT_MET, EXISTS = Outcome(True, Refusal.NOT_MET), Outcome(True, Refusal.EXISTS)
NO_DOCUMENT = Outcome(False, Refusal.NO_DOCUMENT)
MET, UNMET, NEVER = "music.year == 1", "music.year == 2", "music.plays == 1"
"""Of a document whose `year` is 1; the last compares what is not there."""


def operation(kind: str, condition: str | None, create: bool) -> Put | Update | Remove:
    if kind == "put":
        return Put(doc_id("a"), {"year": 7}, condition, create)
    if kind == "update":
        return Update(doc_id("a"), (FieldUpdate("year", Assign(7)),), create, condition)
    return Remove(doc_id("a"), condition)


# What Vespa answers: an operation with a condition needs the document, unless it may create it, and then the condition
# is not asked. A put that is to create, without a condition, is refused where there is a document.
PRESENT = [
    ("put", None, False, DONE), ("put", None, True, EXISTS),
    ("put", MET, False, DONE), ("put", MET, True, DONE),
    ("put", UNMET, False, NOT_MET), ("put", UNMET, True, NOT_MET), ("put", NEVER, False, NOT_MET),
    ("update", None, False, DONE), ("update", None, True, DONE),
    ("update", MET, False, DONE), ("update", MET, True, DONE),
    ("update", UNMET, False, NOT_MET), ("update", UNMET, True, NOT_MET), ("update", NEVER, True, NOT_MET),
    ("remove", None, False, DONE), ("remove", MET, False, DONE), ("remove", UNMET, False, NOT_MET),
]  # fmt: skip
ABSENT = [
    ("put", None, False, NEW), ("put", None, True, NEW),
    ("put", MET, False, NO_DOCUMENT), ("put", MET, True, NEW), ("put", UNMET, True, NEW),
    ("update", None, False, NEW), ("update", None, True, NEW),
    ("update", MET, False, NO_DOCUMENT), ("update", MET, True, NEW), ("update", UNMET, True, NEW),
    ("remove", None, False, NEW), ("remove", MET, False, NO_DOCUMENT),
]  # fmt: skip


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(("kind", "condition", "create", "outcome"), PRESENT)
def test_of_a_document_that_is_there(
    tmp_path: Path, kind: str, condition: str | None, create: bool, outcome: Outcome, together: bool
) -> None:
    """The same in the batch of the put, and after it."""
    with started(tmp_path) as node:
        given, asked = put("a", year=1), operation(kind, condition, create)
        if together:
            assert node.outcomes(given, asked) == [NEW, outcome]
        else:
            assert node.outcomes(given) + node.outcomes(asked) == [NEW, outcome]
        done = {"put": {"year": 7}, "update": {"year": 7}, "remove": None}[kind]
        assert node.get("a") == (done if outcome.refusal is None else {"year": 1})


@pytest.mark.parametrize(("kind", "condition", "create", "outcome"), ABSENT)
def test_of_a_document_that_is_not_there(
    tmp_path: Path, kind: str, condition: str | None, create: bool, outcome: Outcome
) -> None:
    with started(tmp_path) as node:
        assert node.outcomes(operation(kind, condition, create)) == [outcome]
        is_written = outcome.refusal is None and (kind == "put" or (kind == "update" and create))
        assert node.get("a") == ({"year": 7} if is_written else None)
        assert len(tombstones(node)) == (kind == "remove" and outcome.refusal is None)


def test_a_condition_sees_what_came_before_it_in_its_batch(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        increment = (FieldUpdate("year", Calculate("increment", 1)), FieldUpdate("tags", Add(["t"])))
        outcomes = node.outcomes(
            put("a", year=1, note="n"),
            *[Update(doc_id("a"), increment, False, f"music.year == {year}") for year in (1, 2, 2, 3)],
            Put(doc_id("a"), {"year": 9}, "music.note == 'n' and music.tags == 't'"),
            Remove(doc_id("a"), "music.note == 'n'"),
            Remove(doc_id("a"), "music.year == 9"),
            Put(doc_id("a"), {"year": 10}, "music.year == 9"),
        )
        assert outcomes == [NEW, DONE, DONE, NOT_MET, DONE, DONE, NOT_MET, DONE, NO_DOCUMENT]
        assert node.get("a") is None


@pytest.mark.parametrize("together", [False, True])
def test_a_required_time(tmp_path: Path, together: bool) -> None:
    """A document that was changed since, in place or not, is left alone; so it is when the log is applied again."""
    node = start(tmp_path)
    for operation_ in (put("a", year=1), put("b", year=1), put("c", year=1, note="n"), put("d", year=1)):
        node.apply(operation_)  # one by one: the lids are in this order
    a, b, c, d = node.node.reader.view().timestamps[:4].tolist()
    add = (FieldUpdate("year", Calculate("increment", 10)),)
    asked: list[Put | Update | Remove] = [
        Update(doc_id("a"), add, required_us=a),
        Update(doc_id("a"), add, required_us=a),  # changed in place just now
        Update(doc_id("b"), add, required_us=b - 1),
        Update(doc_id("c"), (FieldUpdate("note", Assign("m")),)),
        Remove(doc_id("c"), required_us=c),
        Remove(doc_id("d"), required_us=d),
        Remove(doc_id("none"), required_us=d),
        Update(doc_id("made"), add, create=True, required_us=d),
    ]
    outcomes = node.outcomes(*asked) if together else [node.outcomes(one)[0] for one in asked]
    assert outcomes == [DONE, NOT_MET, NOT_MET, DONE, NOT_MET, DONE, NO_DOCUMENT, NEW]
    left = {"a": {"year": 11}, "b": {"year": 1}, "c": {"year": 1, "note": "m"}, "d": None, "made": {"year": 10}}
    assert {name: node.get(name) for name in left} == left
    node.crash()
    with started(tmp_path) as again:
        assert {name: again.get(name) for name in left} == left


def test_now_is_the_time_of_the_operation(tmp_path: Path) -> None:
    """In seconds; and the same when the log is applied again."""
    node = start(tmp_path)
    node.apply(put("a", year=1))
    remembered = update("a", plays=node.node.reader.view().timestamps[0].item() // 1_000_000)
    condition = "music.plays > now() - 100 and music.plays <= now()"
    put_on = Update(doc_id("a"), (FieldUpdate("year", Assign(2)),), False, condition)
    assert node.outcomes(remembered, put_on) == [DONE, DONE]
    expected = node.get("a")
    node.crash()
    with started(tmp_path) as again:
        assert again.get("a") == expected and expected["year"] == 2


def test_conditions_on_the_id_and_the_type(tmp_path: Path) -> None:
    """A type alone is that type; the fields of a type are those of what inherits it as well."""
    derived = schema("song", Field("year", INT, attribute=ATTRIBUTE))
    force_setattr(derived.document, "inherits", ("music",))
    with started(tmp_path, {"music": MUSIC, "song": derived}) as node:
        song = DocumentId("n", "song", "a", number=5)
        asked = [
            "id.user == 5",
            "id.user == 6",
            "song",
            "music",
            "music.year == 2",
            "book.year == 2",
            "id.scheme == 'id'",
        ]
        node.apply(Put(song, {"year": 1}))
        outcomes = node.outcomes(*[Put(song, {"year": 2}, condition) for condition in asked])
        assert [outcome.refusal is None for outcome in outcomes] == [True, False, True, False, True, False, True]


def test_a_condition_that_is_no_selection_is_refused_before_the_log(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        bad, good = node.outcomes(Remove(doc_id("a"), "music.year = ="), put("a", year=1))
        assert isinstance(bad, InvalidInput) and good == NEW


def test_what_grows_beyond_its_column_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.content.layouts.layout.LONGEST_ROW", 3)
    with started(tmp_path) as node:
        node.apply(put("a", tags=["x", "y"], note="n"))
        in_place = Update(doc_id("a"), (FieldUpdate("tags", Add(["z", "z"])), FieldUpdate("year", Assign(1))))
        anew = Update(doc_id("a"), (FieldUpdate("tags", Add(["z", "z"])), FieldUpdate("note", Assign("m"))))
        assert node.outcomes(in_place, anew) == [Outcome(True, Refusal.TOO_LARGE)] * 2
        assert node.get("a") == {"tags": ["x", "y"], "note": "n"}
        assert node.outcomes(Update(doc_id("a"), (FieldUpdate("tags", Add(["z"])),))) == [DONE]


# Times


def timestamps(node: TestNode, names: str) -> list[int]:
    view = node.node.reader.view()
    found = {document.id: view.timestamp_of(document) for _, document in view.store.scan()}
    return [found[doc_id(name).text] for name in names]


def tombstones(node: TestNode) -> dict[str, int]:
    found = (document for _, document in node.node.reader.view().store.scan(removes=True))
    return {document.id: document.timestamp_us for document in found if document.is_removed}


def test_the_time_of_the_last_change_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of changes in place too; through checkpoints, replays, layouts and new lids. What is refused changes no time."""
    monkeypatch.setattr(limits, "DEAD_ROWS_LEAST", 1)
    monkeypatch.setattr(limits, "DEAD_ROWS_SHARE", 0.1)
    node = start(tmp_path)
    node.apply(*[put(name, year=1, note="n") for name in "abc"])
    first = timestamps(node, "abc")
    node.apply(update("b", year=2), Remove(doc_id("c"), "music.year == 7"), Put(doc_id("c"), {}, None, True))
    second = timestamps(node, "abc")
    assert [second[0], second[2]] == [first[0], first[2]] and second[1] > max(first)
    node.crash()
    node = start(tmp_path)
    assert timestamps(node, "abc") == second
    node.node.checkpoint()
    without_year = schema("music", Field("year", INT), *[f for f in MUSIC.fields.values() if f.name != "year"])
    node.node.configure(2, SCHEMAS | {"music": without_year})
    assert timestamps(node, "abc") == second
    node.apply(put("d"), put("d"))
    node.close()
    with started(tmp_path, None) as again:
        assert again.node.reader.view().limit == 4 and timestamps(again, "abc") == second
        assert again.get("b") == {"year": 2, "note": "n"}


def test_removals_are_remembered_and_pruned(tmp_path: Path) -> None:
    node = start(tmp_path)
    node.apply(put("a"), Remove(doc_id("a")), Remove(doc_id("never")), put("b"), Remove(doc_id("b")), put("b"))
    found = tombstones(node)
    assert list(found) == sorted((doc_id("a").text, doc_id("never").text), key=lambda text: DocumentId.parse(text).gid)
    node.crash()
    node = start(tmp_path)
    assert tombstones(node) == found
    between_us = max(found.values())
    assert node.node.prune(between_us, 10) == 1 and len(tombstones(node)) == 1
    assert node.node.prune(2**63, 1) == 1 and node.node.prune(2**63, 10) == 1 and node.node.prune(2**63, 10) == 0
    assert tombstones(node) == {} and node.get("b") == {}
    node.close()


def test_removals_are_remembered_for_two_weeks() -> None:
    assert oldest_tombstone_us(2_000_000_000_000_000) == 2_000_000_000_000_000 - 14 * 24 * 3600 * 1_000_000


# Getting


def test_some_fields(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1, note="n", title="t"), update("a", year=2))

        def get(*fields: str) -> Any:
            return node.node.reader.get(doc_id("a"), frozenset(fields))

        assert get("year", "nothing") == b'{"year":2}' and get() == b"{}" and get("note") == b'{"note":"n"}'


def test_the_last_long_selection_is_not_read_again() -> None:
    long, other = (" or ".join([text] * 400) for text in (MET, UNMET))
    assert len(long) > limits.SELECTION_KEPT_CHARACTERS
    first = matcher(long)
    assert matcher(MET) is matcher(MET) and matcher(long) is first
    assert matcher(other) is not first and matcher(long) is not first
