"""Batches of plain changes leave the same node, and get the same outcomes, as the same operations one by one.

Authority: the general way of applying operations (`test_node_model.py`); plain Python where a kernel is asked alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

import numpy as np
import pytest

from paperwasp import limits
from paperwasp.content.log.records import AnyOperation
from paperwasp.coordination.messages.documents import ApplyChanges
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.ids import partition_of
from paperwasp.document.operations import Outcome
from paperwasp.document.plain_fields import operation_of
from paperwasp.errors import InvalidInput
from paperwasp.storage.attributes import posting
from paperwasp.storage.documents.gid_map import NO_LID
from tests.chance import SEED
from tests.content.nodes import SCHEMAS, TestNode, doc_id, remove, started
from tests.content.test_plain_changes import change_of, music

Value = Callable[[random.Random], Any]
WORDS: Final = ("", "blue", "note", "Straße", 'a "b"\n', "the end")
VALUES: Final[Mapping[str, Value]] = {
    "title": lambda choice: choice.choice(WORDS),
    "year": lambda choice: choice.choice((1, 2, 3, -(2**31), 2**31 - 1)),
    "plays": lambda choice: choice.choice((5, -(2**63), 2**63 - 1)),
    "score": lambda choice: choice.choice((0.5, -0.0, 0.1)),
    "weight": lambda choice: choice.choice((0.1, 1e300)),
    "rating": lambda choice: choice.choice((-128, 127, 0)),
    "live": lambda choice: choice.random() < 0.5,
    "genre": lambda choice: choice.choice(WORDS),
    "tags": lambda choice: choice.choices(WORDS, k=choice.randrange(3)),
}
NUMBERS: Final = ("year", "plays", "score", "weight", "rating", "live")


def random_operation(choice: random.Random, names: list[str]) -> PlainChange | None:
    """None: a removal."""
    kind = choice.choice(("put", "numbers", "numbers", "numbers", "any", "remove"))
    if kind == "remove":
        return None
    known = NUMBERS if kind == "numbers" else tuple(VALUES)
    fields = {name: VALUES[name](choice) for name in choice.sample(known, choice.choice((0, 1, 1, 2, len(known))))}
    return music(choice.choice(names), kind != "put", **fields)


def apply_together(node: TestNode, operations: list[AnyOperation]) -> list[Any]:
    """The outcomes of operations that are one batch."""
    answers: list[Any] = [None] * len(operations)
    go_on, done = Event(), Event()
    node.node.operations.add_action(go_on.wait)
    for place, operation in enumerate(operations):
        node.node.operations.submit(operation, partial(answers.__setitem__, place))
    node.node.operations.add_action(done.set)
    go_on.set()
    assert done.wait(60)
    return answers


def contents(node: TestNode, names: list[str]) -> list[Any]:
    """What is shown of documents, what their columns have, and which have a value by a posting list."""
    view = node.node.reader.view()
    columns = {field: view.columns["music", field] for field in VALUES if ("music", field) in view.columns}
    lids = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little"))
    rows = {field: column.get_all(lids.astype(np.uint32)) for field, column in columns.items()}
    found = [columns["year"].equal_bitmap(value).tolist() for value in (1, 2, 3)]
    return [[node.get(name) for name in names], repr(rows), view.changed[: view.limit].tolist(), found]


@pytest.mark.parametrize("seed", [SEED])
def test_random_batches_are_applied_as_one_by_one(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "_SMALLEST_COLUMN", 1)
    monkeypatch.setattr(posting, "_MOST_CHANGES", 40)
    choice, names = random.Random(seed), [f"d{number}" for number in range(8)]
    with started(tmp_path / "plain") as plain, started(tmp_path / "general") as general:
        for _ in range(40):
            drawn = [random_operation(choice, names) for _ in range(choice.choice((1, 5, 60)))]
            removed = [remove(choice.choice(names)) for _ in drawn]
            operations: list[AnyOperation] = [change or gone for change, gone in zip(drawn, removed, strict=True)]
            others = [operation_of(each) if isinstance(each, PlainChange) else each for each in operations]
            assert apply_together(plain, operations) == apply_together(general, list(others))
            assert contents(plain, names) == contents(general, names)
    with started(tmp_path / "plain") as plain, started(tmp_path / "general") as general:
        assert contents(plain, names)[0] == contents(general, names)[0]


def test_the_last_of_several_updates_in_a_batch_counts(tmp_path: Path) -> None:
    with started(tmp_path, SCHEMAS) as node:
        assert [outcome.existed for outcome in apply_together(node, [music("a", year=1), music("b", plays=1)])] == [
            False,
            False,
        ]
        updates = [music("a", True, year=2), music("c", True, year=9), music("a", True, year=3), music("b", True)]
        outcomes = apply_together(node, list(updates))
        assert [outcome.existed for outcome in outcomes] == [True, False, True, True]
        assert (node.get("a"), node.get("b"), node.get("c")) == ({"year": 3}, {"plays": 1}, None)
        view = node.node.reader.view()
        assert view.changed[: view.limit].tolist() == [1, 1]
        document = view.store.get(doc_id("a").gid)
        assert document is not None and view.timestamp_of(document) > document.timestamp_us


def set_rows(updates: list[PlainChange], lids: list[int], wholes: Any, rows: int = 3) -> tuple[int, Any, Any]:
    changed, timestamps = np.zeros(rows, np.uint8), np.zeros(rows, np.uint64)
    for time_us, update in enumerate(updates, 7):
        update.timestamp_us = time_us
    done = _core.set_in_place(updates, np.array(lids, np.uint32), [("whole", wholes)], changed, timestamps)
    return done, changed.tolist(), timestamps.tolist()


def test_rows_are_set_up_to_what_needs_more_than_that() -> None:
    one, two = change_of({"whole": 1}, is_update=True), change_of({"whole": 2}, is_update=True)
    for last in ({"whole": -(2**31)}, {"whole": 1, "double": 0.5}, {"text": "x"}):
        wholes = np.zeros(3, np.int32)
        updates = [one, two, two, change_of(last, is_update=True), one]
        assert set_rows(updates, [0, NO_LID, 0, 1, 2], wholes) == (3, [1, 0, 0], [9, 0, 0])
        assert wholes.tolist() == [2, 0, 0]


def test_columns_of_other_sizes_and_kinds_are_refused() -> None:
    update = change_of({"whole": 1}, is_update=True)
    for lids, wholes in (([3], np.zeros(9, np.int32)), ([2], np.zeros(2, np.int32)), ([], np.zeros(3, np.int32))):
        with pytest.raises(ValueError, match=r"row|lid"):
            set_rows([update], lids, wholes)
    with pytest.raises(ValueError, match="other numbers"):
        set_rows([update], [0], np.zeros(3, np.uint16))
    with pytest.raises(TypeError):
        set_rows([update], [0], np.zeros(6, np.int32)[::2])
    with pytest.raises(ValueError, match="no numbers"):
        _core.put_numbers([change_of({"text": "x"})], "text", np.zeros(3, np.int32), 0)
    with pytest.raises(ValueError, match="no such rows"):
        _core.put_numbers([change_of({}), change_of({})], "whole", np.zeros(3, np.int32), 2)
    with pytest.raises(ValueError, match="no such entry"):
        _core.alike_from([update], 1)
    wrong: Any = [remove("a")]
    with pytest.raises(ValueError, match="plain changes"):
        _core.gids_of(wrong)


@pytest.mark.parametrize("seed", [SEED])
def test_numbers_of_puts_and_their_global_ids(seed: int) -> None:
    choice = random.Random(seed)
    puts = [change_of({"whole": number} if choice.random() < 0.7 else {}, str(number)) for number in range(50)]
    rows = np.full(60, -1, np.int32)
    _core.put_numbers(puts, "whole", rows, 5)
    assert rows.tolist() == [-1] * 5 + [put.fields.get("whole", -1) for put in puts] + [-1] * 5
    assert _core.gids_of(puts) == b"".join(put.gid for put in puts)


def test_alike_are_changes_of_one_kind_with_the_fields_of_the_first() -> None:
    put, other = change_of({"whole": 1}), music("a", year=1)
    both = change_of({"whole": 1, "double": 0.5}, is_update=True)
    one = change_of({"whole": 1}, is_update=True)
    for entries, end in (
        ([put, put, other], 2),
        ([put, one], 1),
        ([both, one, both, one], 4),
        ([one, one, both], 2),
        ([one, remove("a")], 1),
    ):
        assert _core.alike_from(entries, 0) == entries[:end]


@pytest.mark.parametrize("seed", [SEED])
def test_plain_changes_have_times_as_they_came_and_the_order_of_the_log(seed: int) -> None:
    choice = random.Random(seed)
    changes = [choice.choice((change_of({}, str(number)), music(str(number), True))) for number in range(100)]
    batch = [(change, f"reply {number}", 9) for number, change in enumerate(changes)]
    types = _core.read_as_of(batch)
    assert types is not None and {each.name for each in types} == {"thing", "music"}
    operations, replies = _core.in_order_of_log(batch, 1000, limits.PARTITIONS)
    order = sorted(range(100), key=lambda number: partition_of(changes[number].gid))
    assert operations == [changes[number] for number in order]
    assert replies == [f"reply {number}" for number in order]
    assert [change.timestamp_us for change in changes] == list(range(1000, 1100))
    assert _core.read_as_of([]) == []
    others: Any = [*batch, (remove("a"), "reply", 9)]
    assert _core.read_as_of(others) is None
    with pytest.raises(ValueError, match="something else"):
        _core.in_order_of_log(others, 1, limits.PARTITIONS)
    with pytest.raises(ValueError, match="power of two"):
        _core.in_order_of_log(batch, 1, 3)
    wrong: Any = [(remove("a"), "reply")]
    with pytest.raises(ValueError, match="three parts"):
        _core.read_as_of(wrong)


def test_a_change_of_a_type_that_is_gone_is_refused_alone(tmp_path: Path) -> None:
    answers: list[Any] = [None, None]
    with started(tmp_path) as node:
        together, done = ApplyChanges(), Event()
        together.add([change_of({"text": "x"}), music("a", year=1)], [9, 9])
        with node.node.operations.adding():
            node.node.operations.add_changes(together, [partial(answers.__setitem__, place) for place in range(2)])
        node.node.operations.add_action(done.set)
        assert done.wait(60)
        assert isinstance(answers[0], InvalidInput) and answers[1] == Outcome(False)
        assert node.get("a") == {"year": 1}
