"""States of aggregators: numbers of every type, and their arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paperwasp.search.grouping.aggregator import State, aggregator_names, aggregator_of
from paperwasp.search.grouping.aggregators.averages import CountState
from paperwasp.search.grouping.aggregators.extremes import MaxState
from paperwasp.search.grouping.aggregators.summary import HitsState
from paperwasp.search.grouping.conversion import as_longs, as_numbers
from paperwasp.search.grouping.expression_node import Rows
from paperwasp.search.grouping.language import operation
from paperwasp.search.grouping.request import Aggregation, Expression
from paperwasp.search.grouping.values import Kind, ListTable, Null, Values, check_arrays
from tests.search.grouping.columns import ColumnNode, attribute

COLUMNS: dict[str, tuple[Kind, list[Any]]] = {
    "long": (Kind.LONG, [5, -2, 7, 7]),
    "double": (Kind.DOUBLE, [0.5, -2.0, 1e300, 1e300]),
    "text": (Kind.STRING, ["b", "é", "", "12x"]),
    "raw": (Kind.RAW, [b"\x01", b"\xff", b"", b"a"]),
    "tenths": (Kind.DOUBLE, [0.1, 0.1, 0.1, 0.1]),
    "many": (Kind.LONG, [[1, 2], [], [4, 3], [3, 4]]),
    "unset": (Kind.LONG, [-(1 << 63), -(1 << 63), 8, 8]),
}
SUMMARY = Expression("summary", ("short",))


def state_of(expression: Expression, max_hits: int | None = None) -> State:
    rows = Rows(np.arange(4, dtype=np.uint32), np.array([0.5, 3.0, 2.0, 2.0]))
    aggregator = aggregator_of(
        Aggregation(0, expression, max_hits), lambda each: ColumnNode("x", *COLUMNS[str(each.arguments[0])])
    )
    return aggregator.collect(rows, np.array([0, 1, 1, 1], np.uint32), 2)


def listed(*pairs: tuple[float, float]) -> list[dict[str, float]]:
    return [{"quantile": quantile, "value": value} for quantile, value in pairs]


ALL: list[tuple[Expression, list[Any]]] = [
    (Expression("count"), [1, 3]),
    (Expression("sum", (attribute("long"),)), [5, 12]),
    (Expression("sum", (attribute("double"),)), [0.5, 2e300]),
    (Expression("sum", (attribute("text"),)), [0.0, 12.0]),
    (Expression("avg", (attribute("long"),)), [5.0, 4.0]),
    (Expression("min", (attribute("long"),)), [5, -2]),
    (Expression("max", (attribute("double"),)), [0.5, 1e300]),
    (Expression("max", (attribute("text"),)), ["b", "é"]),
    (Expression("min", (attribute("text"),)), ["b", ""]),
    (Expression("max", (attribute("raw"),)), [b"\x01", b"\xff"]),
    (Expression("stddev", (attribute("long"),)), [0.0, math.sqrt(18.0)]),
    (Expression("stddev", (attribute("tenths"),)), [0.0, 0.0]),
    (Expression("xor", (attribute("long"),)), [5, -2]),
    (Expression("xor", (attribute("text"),)), [0, 12]),
    (Expression("first", (attribute("text"),)), ["b", "é"]),
    (Expression("first", (attribute("many"),)), [1, 4]),
    (Expression("argmin", (attribute("long"), attribute("text"))), ["b", "é"]),
    (Expression("argmin", (attribute("double"), attribute("many"))), [[1, 2], []]),
    (Expression("argmin", (attribute("many"), attribute("raw"))), [b"\x01", b""]),
    (Expression("argmin", (attribute("unset"), attribute("long"))), [Null.NULL, 7]),
    (
        Expression("quantiles", (attribute("long"), 0.0, 0.5)),
        [listed((0.0, 5.0), (0.5, 5.0)), listed((0.0, -2.0), (0.5, 7.0))],
    ),
    (Expression("count_groups", (attribute("long"),)), [1, 2]),
    (Expression("count_groups", (attribute("text"),)), [1, 3]),
    (Expression("count_groups", (attribute("many"),)), [1, 2]),
]


@pytest.mark.parametrize(("expression", "wanted"), ALL, ids=lambda each: str(getattr(each, "function", "")))
def test_states_can_be_written_read_and_merged(expression: Expression, wanted: list[object]) -> None:
    state = state_of(expression)
    assert list(state.shown()) == wanted
    read = type(state).from_arrays(dict(state.arrays()))
    assert list(read.shown()) == wanted
    assert list(state.selected(np.array([1, 0])).shown()) == wanted[::-1]
    apart = [state.selected(np.array([0])), read.selected(np.array([1]))]
    assert list(type(state).merged(apart, [np.array([1]), np.array([0])], 2).shown()) == wanted[::-1]


def test_picked_hits_of_other_types_are_merged() -> None:
    """Keys become floats, values of which not all are numbers text, and single values beside lists lists."""
    rows, one = Rows(np.arange(2, dtype=np.uint32), np.zeros(2)), np.zeros(2, np.uint32)
    states = []
    for key, value in ((COLUMNS["long"], COLUMNS["many"]), (COLUMNS["double"], COLUMNS["text"])):
        nodes = {"key": ColumnNode("key", *key), "value": ColumnNode("value", *value)}
        expression = Expression("argmin", (attribute("key"), attribute("value")))
        aggregator = aggregator_of(Aggregation(0, expression), lambda each, of=nodes: of[str(each.arguments[0])])  # type: ignore[misc]
        states.append(aggregator.collect(rows, one, 1))
    state = type(states[0])
    places = [np.zeros(1, np.int64)] * 2
    assert [list(each.shown()) for each in states] == [[[]], ["é"]]
    assert list(state.merged(states, places, 1).shown()) == [[]]
    assert list(state.merged(states[::-1], places, 1).shown()) == [["é"]]
    apart = state.merged(states, [np.array([0]), np.array([1])], 3)
    assert list(apart.shown()) == [[], ["é"], Null.NULL]
    assert apart.order_values().data.tolist() == [0, 1, 0]


def test_what_an_unset_key_is_depends_on_the_size_of_its_type() -> None:
    rows, one = Rows(np.arange(3, dtype=np.uint32), np.zeros(3)), np.zeros(3, np.uint32)
    key = ColumnNode("x", Kind.LONG, [-(1 << 31), 5, -128])
    expression = Expression("argmin", (attribute("key"), attribute("value")))
    value = ColumnNode("x", Kind.LONG, [0, 1, 2])
    for size_bytes, wanted in ((8, 0), (4, 2), (1, 0)):
        key.size_bytes = size_bytes
        aggregator = aggregator_of(
            Aggregation(0, expression), lambda each: key if each.arguments[0] == "key" else value
        )
        assert list(aggregator.collect(rows, one, 1).shown()) == [wanted]


def test_every_aggregator_of_the_language_is_there() -> None:
    """argmax is written as argmin, and count of a list of groups has a name of its own."""
    of_language = {name for name in operation.AGGREGATORS | operation.BOTH if operation.is_aggregator(name, 1)}
    assert aggregator_names() == of_language - {"argmax"} | {"count_groups", "summary"}


def test_hits_of_equal_relevance_are_in_the_order_of_lids() -> None:
    state = state_of(SUMMARY, 2)
    assert isinstance(state, HitsState)
    assert (state.offsets.tolist(), state.lids.tolist(), state.summary) == ([0, 1, 3], [0, 1, 2], "short")
    read = HitsState.from_arrays(dict(state.arrays()))
    merged = HitsState.merged([state, read], [np.array([0, 1]), np.array([0, 1])], 2)
    assert (merged.offsets.tolist(), merged.lids.tolist()) == ([0, 2, 4], [0, 0, 1, 1])
    assert merged.sources.tolist() == [0, 1, 0, 1]
    written = merged.written(np.array(["a", "b", "c", "d"], np.object_))
    assert written.selected(np.array([1, 0])).shown() == [["c", "d"], ["a", "b"]]
    with pytest.raises(ValueError, match="not written"):
        merged.shown()


def test_arrays_that_are_no_state_are_refused() -> None:
    cases: tuple[tuple[type[State], dict[str, Any]], ...] = (
        (CountState, {}),
        (CountState, {"counts": np.zeros(2, np.int32)}),
        (CountState, {"counts": np.zeros((1, 2), np.int64)}),
        (MaxState, {"longs": np.zeros(2, np.int32)}),
        (MaxState, {"bools": np.zeros(2, np.uint8)}),
        (MaxState, {"text": np.zeros(2, np.uint8), "ends": np.array([3], np.uint64)}),
        (MaxState, {"text": np.zeros(2, np.uint8), "ends": np.array([2, 1], np.uint64)}),
        (HitsState, {**dict(state_of(SUMMARY).arrays()), "lids": np.zeros(3, np.uint32)}),
        (HitsState, {**dict(state_of(SUMMARY).arrays()), "offsets": np.array([0, 5, 4])}),
        (HitsState, {**dict(state_of(SUMMARY).arrays()), "lids": np.zeros(4, np.int64)}),
        (HitsState, {**dict(state_of(SUMMARY).arrays()), "max_hits": np.array([-2])}),
        (HitsState, {**dict(state_of(SUMMARY).arrays()), "offsets": np.array([0, 1 << 62, 4])}),
    )
    for state, arrays in cases:
        with pytest.raises(ValueError, match="state"):
            state.from_arrays(arrays)


def test_numbers_of_text_are_read_as_c_reads_them() -> None:
    texts = [" 12.5e1x", "-.5", "inf", "0x1f", "017", "", "x", "99999999999999999999", "-8", "08"]
    values = Values(Kind.STRING, np.arange(len(texts), dtype=np.uint32), ListTable(texts))
    assert as_numbers(values).tolist() == [125.0, -0.5, float("inf"), 31.0, 17.0, 0.0, 0.0, 1e20, -8.0, 8.0]
    assert as_longs(values).tolist() == [12, 0, 0, 31, 15, 0, 0, (1 << 63) - 1, -8, 0]


def test_floats_are_rounded_away_from_zero() -> None:
    values = Values(Kind.DOUBLE, np.array([0.5, -0.5, 1.4, 2.5, 1e300]))
    assert as_longs(values).tolist() == [1, -1, 1, 3, -(1 << 63)]


def test_an_extreme_of_nothing_is_what_any_value_replaces() -> None:
    empty: list[object] = [[], []]
    rows = Rows(np.arange(2, dtype=np.uint32), np.zeros(2))
    for kind, least, greatest in (
        (Kind.LONG, -(1 << 63), (1 << 63) - 1),
        (Kind.DOUBLE, -1.7976931348623157e308, 1.7976931348623157e308),
        (Kind.STRING, "", "\ufffd"),
        (Kind.RAW, b"", b"\xff"),
    ):
        node = ColumnNode("x", kind, empty)
        for function, wanted in (("max", least), ("min", greatest)):
            found = extreme_of_nothing(function, node, rows)
            assert list(found) == [wanted]


def extreme_of_nothing(function: str, node: ColumnNode, rows: Rows) -> Sequence[Any]:
    aggregator = aggregator_of(Aggregation(0, Expression(function, (attribute("x"),))), lambda _: node)
    return aggregator.collect(rows, np.zeros(len(rows.lids), np.uint32), 1).shown()


@pytest.mark.parametrize(
    "arrays",
    [
        {"a": np.zeros(2, np.int64)},
        {"a": np.zeros(2, np.int64), "b": np.zeros(2, np.int64)},
        {"a": np.zeros(2, np.int64), "b": np.zeros((2, 1), np.uint8)},
        {"a": np.zeros(2, np.int64), "b": np.zeros(2, np.uint8), "c": np.zeros(2, np.uint8)},
    ],
)
def test_other_arrays_are_refused(arrays: dict[str, NDArray[Any]]) -> None:
    types: dict[str, type[np.generic]] = {"a": np.int64, "b": np.uint8}
    check_arrays({"a": np.zeros(2, np.int64), "b": np.zeros(3, np.uint8)}, types, "a state")
    with pytest.raises(ValueError, match=r"^a state has other arrays: \['a'"):
        check_arrays(arrays, types, "a state")
