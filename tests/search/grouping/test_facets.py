"""Facets give what the general steps give, and what the oracle does, over the columns of attributes.

Their page is the one that pages of any tree have.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from paperwasp.base.records import replace
from paperwasp.container.search.groups_json import root_json
from paperwasp.core.clock import OutOfTime
from paperwasp.document.types import BOOL, DOUBLE, INT, LONG
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.binding import Binding, bind_filter, bound_request
from paperwasp.search.grouping.execution import Hits, execute
from paperwasp.search.grouping.expressions import Scope, bind
from paperwasp.search.grouping.facets import facet, facet_bytes, is_facet
from paperwasp.search.grouping.language import parse_grouping
from paperwasp.search.grouping.memory import held_bytes
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.request import (
    Aggregation,
    Expression,
    Filter,
    GroupingRequest,
    Level,
    OrderKey,
    ResultLayout,
)
from paperwasp.search.grouping.request_builder import layout_of
from paperwasp.search.grouping.shown_groups import ShownRoot, shown, shown_facets
from paperwasp.search.grouping.values import Kind
from paperwasp.storage.attributes.column import ColumnView
from paperwasp.storage.attributes.numeric import NumericColumn
from paperwasp.storage.attributes.string import StringColumn
from tests.chance import SEED
from tests.search.grouping.columns import ColumnSource, attribute
from tests.search.grouping.oracle import ordered_hits, tree_from, tree_of
from tests.search.grouping.random_requests import TEXTS

COUNT = Expression("count")
Columns = dict[str, tuple[Kind, list[Any]]]
FACET = GroupingRequest(0, 0, levels=(Level(1, attribute("text"), aggregations=(Aggregation(2, COUNT),)),))


def columns_of(chance: random.Random, count: int) -> Columns:
    """Strings, numbers of two sizes, and columns that facets leave to the general steps."""
    return {
        "text": (Kind.STRING, [chance.choice(TEXTS) for _ in range(count)]),
        "year": (Kind.LONG, [chance.choice([-(2**31), 2**31 - 1, 0, 3, 4]) for _ in range(count)]),
        "long": (Kind.LONG, [chance.choice([-(2**63), 2**63 - 1, 0, 7]) for _ in range(count)]),
    }


def views_of(columns: Columns) -> dict[str, ColumnView]:
    text, year, long = StringColumn(cased=True), NumericColumn(INT), NumericColumn(LONG)
    for name, column in (("text", text), ("year", year), ("long", long)):
        column.append(columns[name][1])
    return {"text": text.snapshot(), "year": year.snapshot(), "long": long.snapshot()}


def general(request: GroupingRequest, views: dict[str, ColumnView], hits: Hits) -> PartialResult:
    scope = Scope(views)

    def node(expression: Expression, given: Any) -> Any:
        return bind(expression, replace(scope, given=given))

    return execute(bound_request(request, Binding(node, lambda wanted: bind_filter(wanted, scope))), hits)


def request_of(chance: random.Random) -> GroupingRequest:
    most = chance.choice([None, 0, 1, 3])
    level = Level(
        1,
        attribute(chance.choice(["text", "year", "long"])),
        max_groups=most,
        precision=None if most is None else chance.choice([None, most, most + 1]),
        order=tuple(OrderKey(Expression("count"), chance.random() < 0.5) for _ in range(chance.randrange(2))),
        aggregations=tuple(Aggregation(tag, COUNT) for tag in range(2, 2 + chance.randrange(3))),
    )
    return GroupingRequest(3, 0, levels=(level,))


def columns_in(found: PartialResult) -> Sequence[Any]:
    """Everything in a result, as plain values."""
    return [
        (
            level.tag,
            level.parents.tolist(),
            level.ids.kind,
            level.ids.data.tolist() if level.ids.table is None else level.ids.table.values_of(level.ids.data),
            level.relevances.tolist(),
            [(type(state), list(state.shown())) for state in level.states],
        )
        for level in found.levels
    ]


def by_one(threads: int, work: Callable[[bool], None]) -> None:
    """Nobody helps."""
    work(False)


def by_all(threads: int, work: Callable[[bool], None]) -> None:
    """Another thread does all."""
    other = threading.Thread(target=work, args=(True,))
    other.start()
    other.join()
    work(False)


def test_what_a_thread_has_no_time_for_is_counted_by_the_other() -> None:
    """Which has none either, and says so, if it is the query's time."""
    columns = {name: (kind, values * 50) for name, (kind, values) in columns_of(random.Random(SEED), 20).items()}
    hits = Hits(np.arange(1000, dtype=np.uint32), np.ones(1000))

    def late(threads: int, work: Callable[[bool], None]) -> None:
        with patch("paperwasp.search.grouping.facets._core.count_values", side_effect=OutOfTime), suppress(OutOfTime):
            work(True)
        work(False)

    with patch("paperwasp.search.grouping.facets.PART_ROWS", 1):
        found = facet(FACET, views_of(columns), hits, 4, late)
    assert found is not None
    assert columns_in(found) == columns_in(general(FACET, views_of(columns), hits))


@pytest.mark.parametrize("number", range(200))
def test_facets_are_as_the_general_steps_and_the_oracle_have_them(number: int) -> None:
    chance = random.Random(SEED + number)
    count = chance.choice([0, 1, 5, 40])
    columns, request = columns_of(chance, count), request_of(chance)
    lids = sorted(chance.sample(range(count), chance.randrange(count + 1)))
    scores = chance.choice([[0.0], [1.0], [0.0, 0.5, 1.0, float("-inf")]])
    hits = Hits(np.array(lids, np.uint32), np.array([chance.choice(scores) for _ in lids]))
    views = views_of(columns)

    found, wanted = facet(request, views, hits), general(request, views, hits)
    assert found is not None
    assert found.number == wanted.number == 3
    assert columns_in(found) == columns_in(wanted)
    assert held_bytes(found) == held_bytes(wanted) == facet_bytes(found)
    with patch("paperwasp.search.grouping.facets.PART_ROWS", 1):
        for threads in (2, 5):
            for together in (by_one, by_all):
                again = facet(request, views, hits, threads, together)
                assert again is not None
                assert columns_in(again) == columns_in(wanted), (threads, together)
    ordered = ordered_hits(lids, hits.relevances.tolist(), None)
    assert tree_from(found, request) == tree_of(request, ordered, ColumnSource(columns))


def with_level(**changes: Any) -> GroupingRequest:
    return replace(FACET, levels=(replace(FACET.levels[0], **changes),))


@pytest.mark.parametrize(
    "request_",
    [
        replace(FACET, levels=()),
        replace(FACET, levels=FACET.levels * 2),
        replace(FACET, top_n=3),
        replace(FACET, aggregations=(Aggregation(2, COUNT),)),
        with_level(filter=Filter("istrue", attribute("text"))),
        with_level(expression=Expression("add", (attribute("year"), 1))),
        with_level(expression=Expression("attribute", (attribute("text"),))),
        with_level(aggregations=(Aggregation(2, Expression("sum", (attribute("year"),))),)),
        with_level(aggregations=(Aggregation(2, COUNT), Aggregation(3, Expression("summary", ("",))))),
        with_level(order=(OrderKey(Expression("neg", (COUNT,)), True),)),
        with_level(order=(OrderKey(COUNT, True), OrderKey(COUNT, False))),
    ],
)
def test_what_is_more_than_a_facet(request_: GroupingRequest) -> None:
    assert is_facet(FACET)
    assert not is_facet(request_)


def test_columns_that_are_left_to_the_general_steps() -> None:
    """Floating-point numbers and truths; an attribute that is not there; hits that are sorted."""
    flags, doubles = NumericColumn(BOOL), NumericColumn(DOUBLE)
    flags.append([True])
    doubles.append([0.5])
    views: dict[str, ColumnView] = {"flag": flags.snapshot(), "double": doubles.snapshot()}
    hits = Hits(np.zeros(1, np.uint32), np.zeros(1))
    for name in ("flag", "double", "none"):
        assert facet(with_level(expression=attribute(name)), views, hits) is None
    text = StringColumn()
    text.append(["a"])
    assert facet(FACET, {"text": text.snapshot()}, hits) is not None
    assert facet(FACET, {"text": text.snapshot()}, replace(hits, places=np.zeros(1, np.int64))) is None


def test_groups_of_a_facet_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paperwasp.limits.grouping.GROUPS", 3)
    year = NumericColumn(INT)
    year.append([1, 2, 3, 4])
    request = with_level(expression=attribute("year"))
    views: dict[str, ColumnView] = {"year": year.snapshot()}
    assert facet(request, views, Hits(np.arange(3, dtype=np.uint32), np.zeros(3))) is not None
    with pytest.raises(InvalidQuery, match="more than 3 groups"):
        facet(request, views, Hits(np.arange(4, dtype=np.uint32), np.zeros(4)))


ATTRIBUTES = ("text", "year", "long")
EACH = (
    "each()",
    "each(output(count()))",
    "each(output(count()) output(count() as(number)))",
    "each(output(count())) as({name}1) each(output(count())) as({name}2)",
)


def layout(statement: str) -> ResultLayout:
    (operation,) = parse_grouping(statement)
    return layout_of(operation, 1)


def statement_of(chance: random.Random) -> str:
    lists = []
    for name in chance.sample(ATTRIBUTES, chance.randrange(1, 4)):
        most = chance.choice(["", "max(1)", "max(2) precision(3)", "max(40)"])
        order = chance.choice(["", "order(count())", "order(-count())"])
        lists.append(f"all(group({name}) {most} {order} {chance.choice(EACH).format(name=name)})")
    return f"all({' '.join(lists)})"


def found_of(asked: ResultLayout, chance: random.Random) -> dict[int, PartialResult]:
    """The results of all requests, or of some."""
    count = chance.choice([0, 1, 40])
    hits = Hits(np.arange(count, dtype=np.uint32), np.array([chance.choice([0.5, 1.0]) for _ in range(count)]))
    views = views_of(columns_of(chance, count))
    results = [facet(request, views, hits) for request in asked.requests]
    kept = chance.sample(results, chance.randrange(len(results) + 1)) if chance.random() < 0.2 else results
    return {result.number: result for result in kept if result is not None}


def written(root: ShownRoot | None) -> bytes | None:
    return None if root is None else root_json(root, iter(()))


@pytest.mark.parametrize("number", range(100))
def test_pages_of_facets_are_as_all_pages(number: int) -> None:
    chance = random.Random(SEED + number)
    asked = layout(statement_of(chance))
    found = found_of(asked, chance)
    assert written(shown_facets(asked, found)) == written(shown(asked, found))


@pytest.mark.parametrize(
    "statement",
    ["all(group(text) each(output(max(year))))", "all(group(text) each(group(year) each(output(count()))))"],
)
def test_what_is_no_facet_is_left_to_the_general_steps(statement: str) -> None:
    asked = layout(statement)
    found = PartialResult(asked.requests[0].number, ())
    assert shown_facets(asked, {found.number: found}) is None
