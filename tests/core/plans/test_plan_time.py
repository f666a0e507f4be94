"""A plan ends in the midst of each of its kernels when its time is over, and has no answer then.

Every kind of plan here takes some milliseconds, of which one kernel has nearly all. The same plan with time has an
answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pytest

from paperwasp.core import _core
from tests.core.documents.test_row_files import array, file_of

DOCUMENTS = 64_000
TERMS = 30
PAST_NS, NEVER_NS = 1, 0
OTHER = 1
"""A field beside the first with the same documents."""
ROW_BYTES = 100_000


@dataclass(frozen=True)
class Searched:
    """Documents that all have the same terms."""

    snapshot: _core.Snapshot
    rows: _core.RowFiles


@pytest.fixture(scope="module")
def searched() -> Searched:
    """Every document has each term twice, in two fields: in the order of their numbers, and the last of them apart."""
    terms = np.tile(np.concatenate([np.arange(TERMS), np.arange(TERMS)]).astype(np.uint32), DOCUMENTS)
    positions = np.tile(np.arange(2 * TERMS, dtype=np.uint32), DOCUMENTS)
    offsets = np.arange(DOCUMENTS + 1, dtype=np.uint64) * np.uint64(2 * TERMS)
    index = _core.invert(terms, positions, offsets, 2.0 * TERMS)
    reader = _core.Reader([(0, DOCUMENTS, [index, index], None)], 2)
    live = np.full(DOCUMENTS // 64, ~np.uint64(0))
    snapshot = _core.Snapshot(
        reader, live, False, DOCUMENTS, np.zeros(DOCUMENTS, np.uint8), np.zeros(12 * DOCUMENTS, np.uint8), 0, 1000
    )
    snapshot.add_column("year", np.arange(DOCUMENTS, dtype=np.int32), None)
    for number, name in enumerate(("first", "other")):
        snapshot.add_field(name, number, 2.0 * TERMS)
    snapshot.add_column("near", np.arange(DOCUMENTS, dtype=np.int32) // 4, None)
    snapshot.add_column("far", np.arange(DOCUMENTS, dtype=np.int64) * 1000, None)
    for term in range(TERMS):
        alone = (1.0, 0.5, 1, [(0, [term], DOCUMENTS)])
        snapshot.add_word("first", f"w{term}", 100, [alone])
        in_both = [(0, [term], DOCUMENTS), (OTHER, [term], DOCUMENTS)]
        snapshot.add_word("first in phrases", f"w{term}", 0, [alone])
        snapshot.add_word("both", f"w{term}", 100, [(1.0, 0.5, 1, in_both)])
        snapshot.add_word("pieces", f"w{term}", 100, [alone, (1.0, 0.5, 1, [(0, [(term + 1) % TERMS], DOCUMENTS)])])
        snapshot.add_word("joined", f"w{term}", 100, [(1.0, 0.5, 2, [(0, [term, (term + 1) % TERMS], DOCUMENTS)])])
    row = b"d:1", orjson.dumps({"a": "x" * ROW_BYTES})
    return Searched(snapshot, _core.RowFiles([array(file_of(0, [row] * 400))]))


def native(weights: tuple[float, float, float] = (1.0, 1.0, 0.0)) -> Any:
    """nativeRank in the first field, or a part of it."""
    table = np.linspace(100.0, 1.0, 64)
    numbers = np.array([0, 100, 0.5, 100, -1, -1, 0.5, 100, 0], np.float64)
    return ["first"], numbers, [table] * 4, [False], 4, (*weights, sum(weights))


def plan(
    index: str,
    composite: str,
    native: Any = None,
    fields: tuple[str, ...] = ("first",),
    counted: tuple[str, ...] = (),
    order: tuple[str, bool] | None = None,
    shown: tuple[str, ...] = (),
) -> _core.Plan:
    facets = [("{", [(name, -1, 20, 10, "[", "", ["n:"]) for name in counted])] if counted else []
    ranked = [] if native is not None else [(name, 1.2, 0.75, 0.0) for name in fields]
    form = _core.PageForm([b'"a":'], True, 0, 0, [b""], b"", b"", b"index:c/0/" if shown else b"")
    return _core.Plan(
        _core.PlanWords([index], f"{index} in phrases", composite, 100, TERMS, 64),
        None,
        _core.PlanRanking(fields=ranked, native=native, order=order),
        _core.PlanShown(form, shown, facets, 100),
    )


WORDS = " ".join(f"w{number}" for number in range(TERMS))
PLANS: Mapping[str, tuple[_core.Plan, str, int]] = {
    "or": (plan("first", "or"), WORDS, 10),
    "and": (plan("first", "and"), WORDS, 10),
    "and over two fields": (plan("both", "and"), WORDS, 10),
    "weakAnd": (plan("first", "weakAnd"), WORDS, 10),
    "phrase": (plan("first", "phrase"), "w3 w4 w5", 10),
    "words of several parts": (plan("pieces", "or"), WORDS, 10),
    "words that are phrases": (plan("joined", "or"), WORDS, 10),
    "nativeRank of any": (plan("first", "or", native()), WORDS, 10),
    "nativeRank of all": (plan("first", "and", native()), WORDS, 10),
    "nativeRank of a phrase": (plan("first", "phrase", native()), "w3 w4 w5", 10),
    "nativeRank of words of several parts": (plan("pieces", "or", native()), "w1 w4 w7", 10),
    "nativeFieldMatch": (plan("first", "or", native((1.0, 0.0, 0.0))), WORDS, 10),
    "in the order of an attribute": (plan("first", "or", order=("year", True)), WORDS, 10),
    "nativeRank of as many as are wanted": (plan("first", "or", native()), WORDS, DOCUMENTS),
}
"""Plans with a text, and how many hits are wanted."""


def run_of(of: Searched, made: _core.Plan, text: str, hits: int, match_end_ns: int, end_ns: int) -> _core.PlanRun:
    run = made.run_of(of.snapshot, of.rows, text, hits, 0, match_end_ns, end_ns, None, 0.0, b"", None)
    assert isinstance(run, _core.PlanRun)
    run.run()
    return run


@pytest.mark.parametrize("kind", PLANS)
def test_a_plan_ends_when_its_time_is_over(searched: Searched, kind: str) -> None:
    made, text, hits = PLANS[kind]
    assert run_of(searched, made, text, hits, NEVER_NS, NEVER_NS).answer is not None
    assert run_of(searched, made, text, hits, PAST_NS, NEVER_NS).answer is None


def test_writing_hits_ends_when_the_time_is_over(searched: Searched) -> None:
    made = plan("first", "or")
    found = run_of(searched, made, "w1", 40, NEVER_NS, NEVER_NS)
    assert found.answer is not None and len(found.answer) > 40 * ROW_BYTES
    assert run_of(searched, made, "w1", 40, NEVER_NS, PAST_NS).answer is None


def test_writing_values_of_columns_ends_when_the_time_is_over(searched: Searched) -> None:
    made = plan("first", "or", shown=("year",))
    found = run_of(searched, made, "w1", DOCUMENTS, NEVER_NS, NEVER_NS)
    assert found.answer is not None and found.answer.count(b'"fields":{"a":') == DOCUMENTS and not found.left
    assert run_of(searched, made, "w1", DOCUMENTS, NEVER_NS, PAST_NS).answer is None


@pytest.mark.parametrize("column", ["near", "far"])
def test_counting_ends_when_the_time_is_over(searched: Searched, column: str) -> None:
    """All groups are equally large, so that all documents are scored."""
    made = plan("first", "or", counted=(column,))
    assert run_of(searched, made, "w1", 0, NEVER_NS, NEVER_NS).answer is not None
    assert run_of(searched, made, "w1", 0, NEVER_NS, PAST_NS).answer is None


def test_a_column_that_is_too_short_is_not_counted(searched: Searched) -> None:
    searched.snapshot.add_column("short", np.zeros(DOCUMENTS - 1, np.int8), None)
    made = plan("first", "or", counted=("short",))
    assert run_of(searched, made, "w1", 0, NEVER_NS, NEVER_NS).answer is None


def test_hits_that_a_column_lacks_are_left(searched: Searched) -> None:
    searched.snapshot.add_column("three", np.arange(3, dtype=np.float32), None)
    found = run_of(searched, plan("first", "or", shown=("three",)), "w1", 5, NEVER_NS, NEVER_NS)
    assert found.answer is not None and found.answer.count(b'"fields":{"a":') == 3
    assert [lid for _, lid, _ in found.left] == [3, 4]


def test_columns_are_shown_one_for_each_key_of_a_form_with_a_prefix_of_ids() -> None:
    for shown in (("year", "near"), ("year",)):
        form = _core.PageForm([b'"a":'], True, 0, 0, [b""], b"", b"", b"" if len(shown) == 1 else b"i")
        with pytest.raises(ValueError, match="a column for each key"):
            _core.PlanShown(form, shown, [], 9)


def test_floats_are_not_counted(searched: Searched) -> None:
    searched.snapshot.add_column("floats", np.zeros(DOCUMENTS), None)
    made = plan("first", "or", counted=("floats",))
    assert run_of(searched, made, "w1", 0, NEVER_NS, NEVER_NS).answer is None


def test_what_cannot_be_counted_is_refused(searched: Searched) -> None:
    with pytest.raises(ValueError, match="codes"):
        searched.snapshot.add_column("wrong", np.zeros(DOCUMENTS, np.int32), _core.ColumnStrings(["a"]))
    form = _core.PageForm([b'"a":'], True, 0, 0, [b""], b"", b"", b"")
    facet = ("near", -1, 0, 10, "[", "", list[str]())
    with pytest.raises(ValueError, match="one group"):
        _core.PlanShown(form, [], [("{", [facet])], 9)
