"""One suite for every kind of column, against lists of plain values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    NumericType,
    WeightedSetType,
    array_of,
)
from paperwasp.storage.attributes import Column, ColumnView, create_column
from paperwasp.storage.attributes.bounds import bounds_of
from paperwasp.storage.attributes.sort_order import SortOrder, order_keys

SCALARS: list[DataType] = [BYTE, INT, LONG, FLOAT, DOUBLE, BOOL, STRING]
TYPES = SCALARS + [array_of(scalar) for scalar in SCALARS]
Settings = dict[str, Any]
SETTINGS: list[Settings] = [{}, {"fast_search": True}, {"cased": True}]
TEXTS = st.one_of(st.sampled_from(["a", "A", "b", "Ab", "aB", "\u0130", "ß"]), st.text(max_size=3))


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    if isinstance(data_type, ArrayType):
        return st.lists(values_of(data_type.element), max_size=4)
    if data_type == BOOL:
        return st.booleans()
    if data_type == STRING:
        return TEXTS
    assert isinstance(data_type, NumericType)
    if data_type.low is None or data_type.high is None:
        return st.one_of(st.integers(-5, 5).map(float), st.floats(width=32 if data_type == FLOAT else 64))
    return st.one_of(st.integers(-5, 5), st.integers(data_type.low + 1, data_type.high))


def is_unset(value: Any) -> bool:
    return value is None or value == "" or value == [] or (isinstance(value, float) and math.isnan(value))


def lids_of(bitmap: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")).tolist()


def every(limit: int) -> np.ndarray:
    return np.arange(limit, dtype=np.uint32)


@st.composite
def histories(draw: st.DrawFn) -> tuple[DataType, Settings, Column, list[Any]]:
    """A column after some batches, paddings and changes in place, and the plain list it should equal."""
    data_type, settings = draw(st.sampled_from(TYPES)), draw(st.sampled_from(SETTINGS))
    column, rows = create_column(data_type, **settings), []
    optional = st.one_of(st.none(), values_of(data_type))
    for _ in range(draw(st.integers(0, 4))):
        batch = draw(st.lists(optional, max_size=100))
        column.append(batch)
        rows += batch
        padding = draw(st.integers(0, 2))
        column.pad(len(rows) + padding)
        rows += [None] * padding
        for _ in range(draw(st.integers(0, 3)) if rows else 0):
            lid, value = draw(st.integers(0, len(rows) - 1)), draw(optional)
            column.set(lid, value)
            rows[lid] = value
    return data_type, settings, column, rows


def same(found: Any, expected: Any) -> bool:
    return repr(found) == repr(expected)


@given(histories())
def test_rows(history: tuple[DataType, Settings, Column, list[Any]]) -> None:
    data_type, _, column, rows = history
    expected = [None if is_unset(row) else row for row in rows]
    assert column.length == len(rows)
    assert same([column.get(lid) for lid in range(len(rows))], expected)
    shown = [bool(value) for value in expected] if data_type == BOOL else expected
    assert same(column.snapshot().gather(every(len(rows))), shown)


@given(histories())
def test_what_is_saved_comes_back(history: tuple[DataType, Settings, Column, list[Any]]) -> None:
    data_type, settings, column, rows = history
    again = create_column(data_type, **settings)
    again.load({name: values.copy() for name, values in column.freeze()().items()})
    assert same([again.get(lid) for lid in range(len(rows))], [column.get(lid) for lid in range(len(rows))])
    again.append([None])
    assert again.length == len(rows) + 1 and again.get(len(rows)) is None


@given(histories(), st.data())
def test_ranges(history: tuple[DataType, Settings, Column, list[Any]], data: st.DataObject) -> None:
    data_type, _, column, rows = history
    element = data_type.element if isinstance(data_type, ArrayType) else data_type
    if element == STRING:
        return
    ends = st.one_of(st.none(), st.integers(-6, 6), st.floats(-6, 6), st.sampled_from([2**70, -(2**70), math.inf]))
    low, high = data.draw(ends), data.draw(ends)
    low_inclusive, high_inclusive = data.draw(st.booleans()), data.draw(st.booleans())
    if (
        low == high
        and low_inclusive
        and high_inclusive
        and element not in (FLOAT, DOUBLE)
        and low not in (None, math.inf)
    ):
        low = high = int(math.copysign(math.floor(abs(low) + 0.5), low))  # a single number is rounded
    rounded = [np.float32(end) if element == FLOAT and end is not None else end for end in (low, high)]

    def inside(value: Any) -> bool:
        if is_unset(value):
            return element == BOOL and inside(False)
        after = rounded[0] is None or value > rounded[0] or (low_inclusive and value == rounded[0])
        before = rounded[1] is None or value < rounded[1] or (high_inclusive and value == rounded[1])
        return bool(after and before)

    view = column.snapshot()
    found = lids_of(view.range_bitmap(low, high, low_inclusive, high_inclusive))
    if isinstance(data_type, ArrayType):
        assert found == [lid for lid, row in enumerate(rows) if any(inside(value) for value in row or ())]
    else:
        assert found == [lid for lid, row in enumerate(rows) if inside(row)]
    limit = data.draw(st.integers(0, len(rows)))
    part = view.range_bitmap(low, high, low_inclusive, high_inclusive, limit)
    assert len(part) == (limit + 63) // 64 and lids_of(part) == [lid for lid in found if lid < limit]
    assert 0 <= view.estimate(view.in_range(low, high, low_inclusive, high_inclusive)) <= len(rows)


@given(histories(), st.data())
def test_equality(history: tuple[DataType, Settings, Column, list[Any]], data: st.DataObject) -> None:
    data_type, settings, column, rows = history
    element = data_type.element if isinstance(data_type, ArrayType) else data_type
    wanted = data.draw(st.lists(values_of(element).filter(lambda value: not is_unset(value)), max_size=3))

    def key(value: Any) -> Any:
        return value.lower() if isinstance(value, str) and not settings.get("cased") else value

    keys = {key(value) for value in wanted}
    elements = [row or [] for row in rows] if isinstance(data_type, ArrayType) else [[row] for row in rows]
    if data_type == BOOL:
        elements = [[bool(row)] for row in rows]
    expected = [
        lid for lid, row in enumerate(elements) if any(value is not None and key(value) in keys for value in row)
    ]
    view = column.snapshot()
    assert lids_of(view.equal_bitmap(wanted)) == expected
    assert 0 <= view.estimate(view.any_of(wanted)) <= len(rows)
    if element not in (STRING, BOOL):
        assert lids_of(view.equal_bitmap([str(value) for value in wanted])) == expected


@given(histories(), st.integers(0, 4))
def test_numbers_for_ranking(history: tuple[DataType, Settings, Column, list[Any]], element: int) -> None:
    data_type, _, column, rows = history
    view, lids = column.snapshot(), every(len(rows))
    if isinstance(data_type, ArrayType):
        assert view.counts(lids).tolist() == [len(row or ()) for row in rows]
        assert np.isnan(view.as_float64(lids)).all()
        if data_type.element != STRING:
            expected = [float((row or [])[element]) if element < len(row or []) else 0.0 for row in rows]
            assert same(view.element(lids, element).tolist(), expected)
    else:
        assert view.counts(lids).tolist() == [1.0] * len(rows)
        number = data_type != STRING
        missing = 0.0 if data_type == BOOL else math.nan
        expected = [float(row) if number and not is_unset(row) else missing for row in rows]
        assert same(view.as_float64(lids).tolist(), expected)


@given(histories(), st.booleans())
def test_order_keys_sort_as_values_do(history: tuple[DataType, Settings, Column, list[Any]], falls: bool) -> None:
    """The least of several values where they rise, the greatest where they fall; what has none, before or after."""
    data_type, _, column, rows = history
    view = column.snapshot()
    keys = order_keys(view, every(len(rows)), SortOrder(falls)).tolist()

    def value(row: Any) -> Any:
        folded = [each.lower() if isinstance(each, str) else each for each in (row if isinstance(row, list) else [row])]
        return max(folded) if falls else min(folded)

    rows = [bool(row) if data_type == BOOL else row for row in rows]
    ordered = [not is_unset(row) and value(row) == value(row) for row in rows]  # NaN has no order
    there = [(value(row), key) for row, key, counts in zip(rows, keys, ordered, strict=True) if counts]
    for one, key in there:
        for other, other_key in there:
            assert (key < other_key) == (one > other if falls else one < other)
    unset = {key for row, key in zip(rows, keys, strict=True) if is_unset(row)}
    assert len(unset) <= 1
    if unset and there:
        outside = min(key for _, key in there) if not falls and not view.is_array else max(key for _, key in there)
        assert (next(iter(unset)) < outside) if not falls and not view.is_array else (next(iter(unset)) > outside)


@pytest.mark.parametrize("data_type", [INT, FLOAT, STRING])
def test_posting_lists_find_what_the_column_has(data_type: DataType) -> None:
    """Through tails, changes in place and new pictures, for early and late views."""
    random = np.random.default_rng(7)
    fast, plain = (create_column(data_type, fast_search=fast) for fast in (True, False))
    views: list[tuple[ColumnView, ColumnView]] = []
    for _ in range(12):
        numbers = random.integers(0, 3000, 3000).tolist()
        values: list[Any] = [f"w{number}" if data_type == STRING else number for number in numbers]
        for column in (fast, plain):
            column.append(values)
        for lid in random.integers(0, fast.length, 50).tolist():
            for column in (fast, plain):
                column.set(lid, values[lid % 3000])
        views = [(fast.snapshot(), plain.snapshot())]
        for one, other in views:
            for value in values[:20]:
                assert one.equal_bitmap(value).tolist() == other.equal_bitmap(value).tolist()
                if data_type != STRING:
                    assert one.range_bitmap(value, value + 5).tolist() == other.range_bitmap(value, value + 5).tolist()
                    assert one.range_bitmap(value, None).tolist() == other.range_bitmap(value, None).tolist()
    assert fast.snapshot().estimate(fast.snapshot().any_of(values[0])) < 200


@pytest.mark.parametrize("data_type", [array_of(INT), WeightedSetType("weightedset<string>", STRING)])
def test_posting_lists_of_rows_find_what_the_column_has(data_type: DataType) -> None:
    """Through tails, changes in place, empty rows, new pictures, and elements that move."""
    random = np.random.default_rng(11)
    fast, plain = (create_column(data_type, fast_search=fast) for fast in (True, False))

    def some() -> Any:
        numbers = random.integers(0, 3000, random.integers(0, 5)).tolist()
        return numbers if isinstance(data_type, ArrayType) else {f"w{number}": number for number in numbers}

    for _ in range(10):
        rows = [some() for _ in range(2000)]
        changes = [(lid, some()) for lid in random.integers(0, fast.length + 2000, 2000).tolist()]
        for column in (fast, plain):
            column.append(rows)
            for lid, value in changes:
                column.set(lid, value)
        one, other = fast.snapshot(), plain.snapshot()
        keys = [element for row in rows[:40] for element in row]
        for wanted in (*keys[:20], keys, keys[:3], "w1" if keys and isinstance(keys[0], str) else 1):
            assert one.equal_bitmap(wanted).tolist() == other.equal_bitmap(wanted).tolist()
            assert one.equal_bitmap(wanted, 777).tolist() == other.equal_bitmap(wanted, 777).tolist()
        assert one.range_bitmap(5, 9).tolist() == other.range_bitmap(5, 9).tolist()
    assert one.estimate(one.any_of(keys[0])) < 200


@pytest.mark.parametrize("data_type", [INT, STRING])
def test_posting_lists_that_a_reader_of_an_earlier_view_makes_miss_no_change(data_type: DataType) -> None:
    """The earlier view has the rows from before the column grew, and so not what was changed since."""
    values: list[Any] = list(range(8000)) if data_type == INT else [str(number) for number in range(8000)]
    column = create_column(data_type, fast_search=True)
    column.append(values)
    earlier = column.snapshot()
    column.append(values[:1000])
    column.set(5, values[7] if data_type == STRING else 70_000)
    assert lids_of(earlier.equal_bitmap(values[5])) == [5]
    found = column.snapshot().equal_bitmap(values[7] if data_type == STRING else 70_000)
    assert lids_of(found) == ([5, 7, 8007] if data_type == STRING else [5])


@pytest.mark.parametrize("data_type", [INT, STRING, array_of(INT), WeightedSetType("weightedset<string>", STRING)])
def test_posting_lists_are_made_ahead_before_they_are_too_old(data_type: DataType) -> None:
    def rows(first: int, last: int) -> list[Any]:
        if isinstance(data_type, WeightedSetType):
            return [{str(number): 1} for number in range(first, last)]
        if isinstance(data_type, ArrayType):
            return [[number] for number in range(first, last)]
        return [str(number) if data_type == STRING else number for number in range(first, last)]

    column = create_column(data_type, fast_search=True)
    plain = create_column(data_type)
    column.append(rows(0, 4000))
    plain.append(rows(0, 4000))
    assert not column.snapshot().prepare(), "too few rows"
    assert not plain.snapshot().prepare(), "no posting lists"
    for first, last, is_due in ((4000, 8000, True), (8000, 8900, False), (8900, 9200, True)):
        column.append(rows(first, last))
        assert column.snapshot().prepare() == is_due
        assert not column.snapshot().prepare()
    column.set(7, rows(9199, 9200)[0])
    assert lids_of(column.snapshot().equal_bitmap("9199" if data_type == STRING else 9199)) == [7, 9199]


def test_a_view_keeps_its_rows_while_the_column_grows() -> None:
    for data_type, old, new in ((INT, 1, 2), (STRING, "x", "y"), (array_of(INT), [1, 2], [3, 4, 5])):
        column = create_column(data_type)
        column.append([old] * 200)
        view = column.snapshot()
        column.append([new] * 5000)
        column.set(3, new)
        assert view.limit == 200 and len(view.gather(every(200))) == 200
        assert view.gather(np.array([3], np.uint32))[0] in (old, new)
        assert column.snapshot().gather(np.array([3, 199, 200], np.uint32)) == [new, old, new]


def test_bounds_of_integers() -> None:
    assert bounds_of(INT, None, None) == (-(2**31) + 1, 2**31 - 1)
    assert bounds_of(INT, 1.5, 3.5) == (2, 3)
    assert bounds_of(INT, 1, 2, False, False) is None
    assert bounds_of(BYTE, 1000, None) is None
    assert bounds_of(LONG, math.nan, None) is None


@pytest.mark.parametrize("data_type", [array_of(INT), array_of(STRING)])
def test_elements_that_no_row_has_are_left_behind(data_type: DataType) -> None:
    column = create_column(data_type)
    make = (lambda n: [f"{n}", "x"] * 50) if data_type == array_of(STRING) else (lambda n: [n] * 100)
    column.append([make(lid) for lid in range(10)])
    views: list[tuple[ColumnView, list[Any]]] = []
    for step in range(3000):
        column.set(step % 10, make(step))
        if step % 500 == 0:
            views.append((column.snapshot(), [column.get(lid) for lid in range(10)]))
    assert column.size_bytes() < 3_000_000
    assert [column.get(lid) for lid in range(10)] == [make(step) for step in range(2990, 3000)]
    assert all(row is not None and len(row) == 100 for view, _ in views for row in view.gather(every(10)))


def test_strings_that_no_row_has_are_not_saved() -> None:
    column = create_column(STRING)
    column.append([f"w{number}" for number in range(1000)])
    for lid in range(1000):
        column.set(lid, "same" if lid else "one")
    arrays = column.freeze()()
    assert len(arrays["string_ends"]) == 3
    again = create_column(STRING)
    again.load(arrays)
    assert [again.get(lid) for lid in (0, 1, 999)] == ["one", "same", "same"]


@pytest.mark.parametrize("data_type", TYPES, ids=str)
@given(data=st.data())
def test_filled_rows_are_as_appended_ones(data_type: DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | values_of(data_type), max_size=12))
    appended, filled = create_column(data_type), create_column(data_type)
    appended.append(values)
    filled.pad(len(values))
    lids = data.draw(st.permutations(range(len(values))))
    for some in (lids[: len(lids) // 2], lids[len(lids) // 2 :]):
        filled.fill(np.array(some, np.uint32), [values[lid] for lid in some])
    assert repr([filled.get(lid) for lid in lids]) == repr([appended.get(lid) for lid in lids])
    for value in values:
        if not is_unset(value) and not isinstance(value, list):
            found = filled.snapshot().equal_bitmap(value)
            assert lids_of(found) == lids_of(appended.snapshot().equal_bitmap(value))
