"""The kernels of grouping give what their plain twins do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.core import _core, clock
from tests.oracles import grouping as plain

LONGS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.sampled_from([0.0, -0.0, 1.5, -1.5, 1e300, -1e300, np.inf, -np.inf, np.nan])
FEW = st.integers(0, 4)


@st.composite
def numbered(draw: st.DrawFn, values: st.SearchStrategy[Any], dtype: Any) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Values, and a small number for each."""
    pairs = draw(st.lists(st.tuples(values, FEW), max_size=40))
    return np.array([pair[0] for pair in pairs], dtype), np.array([pair[1] for pair in pairs], np.uint32)


def assert_same(found: Any, wanted: Any) -> None:
    """The same arrays, of the same types."""
    for one, other in zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@given(numbered(LONGS | st.integers(-3, 3), np.int64))
def test_rows_by_longs(given: tuple[NDArray[np.int64], NDArray[np.uint32]]) -> None:
    keys, parents = given
    assert_same(_core.group_rows(parents, keys), plain.group_rows(parents, keys))


@given(numbered(st.integers(0, 2**32 - 1) | FEW, np.uint32))
def test_rows_by_codes(given: tuple[NDArray[np.uint32], NDArray[np.uint32]]) -> None:
    keys, parents = given
    assert_same(_core.group_rows(parents, keys), plain.group_rows(parents, keys))


@pytest.mark.parametrize("parents_count", [1, 300, 2**31])
@pytest.mark.parametrize("span", [1, 1000, 2**31, 2**62])
def test_many_rows(span: int, parents_count: int) -> None:
    """Tables and hashes of all sizes: 30,000 rows need 16 times the slots that a hash begins with."""
    chance = np.random.default_rng(span % 1000 + parents_count)
    keys = chance.integers(-span, span, 30_000)
    parents = chance.integers(0, parents_count, 30_000).astype(np.uint32)
    assert_same(_core.group_rows(parents, keys), plain.group_rows(parents, keys))


@pytest.mark.parametrize("dtype", [np.uint32, np.int8, np.int32, np.int64])
@given(st.data())
def test_counts_of_the_values_of_a_column(dtype: Any, data: st.DataObject) -> None:
    bounds = np.iinfo(dtype)
    values = st.integers(int(bounds.min), int(bounds.max)) | FEW
    column = np.array(data.draw(st.lists(values, min_size=1, max_size=20)), dtype)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(column) - 1), DOUBLES), max_size=40))
    lids = np.array([pair[0] for pair in pairs], np.uint32)
    relevances = np.array([pair[1] for pair in pairs], np.float64)
    assert_same(_core.count_values(column, lids, relevances), plain.count_values(column, lids, relevances))


@given(numbered(LONGS, np.int64))
def test_sums_of_longs_wrap(given: tuple[NDArray[np.int64], NDArray[np.uint32]]) -> None:
    values, groups = given
    assert_same(_core.group_sums(values, groups, 7), plain.group_sums(values, groups, 7))


@given(numbered(DOUBLES, np.float64), st.booleans())
def test_sums_and_extremes_of_doubles(given: tuple[NDArray[np.float64], NDArray[np.uint32]], is_max: bool) -> None:
    values, groups = given
    assert_same(_core.group_sums(values, groups, 5), plain.group_sums(values, groups, 5))
    found = _core.group_extremes(values, groups, 5, 0.5, is_max)
    assert_same(found, plain.group_extremes(values, groups, 5, 0.5, is_max))
    assert_same(_core.group_best(values, groups, 5), plain.group_best(values, groups, 5))


@given(numbered(LONGS, np.int64), st.booleans(), LONGS)
def test_counts_and_extremes_of_longs(
    given: tuple[NDArray[np.int64], NDArray[np.uint32]], is_max: bool, start: int
) -> None:
    values, groups = given
    assert_same(_core.group_counts(groups, 6), plain.group_counts(groups, 6))
    found = _core.group_extremes(values, groups, 6, start, is_max)
    assert_same(found, plain.group_extremes(values, groups, 6, start, is_max))


@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 70_000]), DOUBLES, st.integers(-2, 2)), max_size=60), FEW)
def test_the_first_groups(given: list[tuple[int, float, int]], most: int) -> None:
    parents = np.array([each[0] for each in given], np.uint32)
    keys: list[NDArray[Any]] = [np.array([each[1] for each in given]), np.array([each[2] for each in given], np.int64)]
    for some in (keys, keys[::-1], []):
        assert_same(_core.first_groups(parents, some, most), plain.first_groups(parents, some, most))


@pytest.mark.parametrize("most", [0, 1, 10, 4999, 5000, 2**40])
@pytest.mark.parametrize("parents_count", [1, 70, 100_000])
def test_the_first_of_many_groups(most: int, parents_count: int) -> None:
    chance = np.random.default_rng(most % 997 + parents_count)
    parents = chance.integers(0, parents_count, 5000).astype(np.uint32)
    keys: list[NDArray[Any]] = [chance.integers(0, 50, 5000), chance.choice([0.0, -0.0, 2.0, np.nan], 5000)]
    assert_same(_core.first_groups(parents, keys, most), plain.first_groups(parents, keys, most))


@pytest.mark.parametrize("order", [-1, 0, 1])
@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@given(st.lists(st.tuples(st.integers(1, 3), DOUBLES), max_size=20), FEW | st.just(2**40), st.randoms())
def test_the_first_of_counted_values(
    dtype: Any, order: int, given: list[tuple[int, float]], most: int, chance: Any
) -> None:
    values, rows = (chance.sample(range(100), len(given)) for _ in range(2))
    counts, relevances = np.array([each[0] for each in given], np.int64), np.array([each[1] for each in given], float)
    columns = np.array(values, dtype), counts, relevances, np.array(rows, np.uint32)
    assert_same(_core.first_counted(*columns, order, most)[0], plain.first_counted(*columns, order, most)[0])
    assert _core.first_counted(*columns, order, most)[1] == plain.first_counted(*columns, order, most)[1]


ROWS, LONG, DOUBLE = np.zeros(3, np.uint32), np.zeros(2, np.int64), np.zeros(2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.group_rows(ROWS, LONG),
        lambda: _core.count_values(LONG, ROWS, DOUBLE),
        lambda: _core.count_values(LONG, np.array([0, 2], np.uint32), DOUBLE),
        lambda: _core.count_values(np.zeros(0, np.int64), ROWS, np.zeros(3)),
        lambda: _core.group_sums(LONG, ROWS, 1),
        lambda: _core.group_extremes(DOUBLE, ROWS, 1, 0.0, True),
        lambda: _core.group_best(DOUBLE, ROWS, 1),
        lambda: _core.group_counts(ROWS, 0),
        lambda: _core.group_sums(np.zeros(3), ROWS, 0),
        lambda: _core.group_best(np.zeros(3), np.array([0, 1, 2], np.uint32), 2),
        lambda: _core.group_counts(ROWS, 2**60),
        lambda: _core.first_groups(ROWS, [LONG], 1),
        lambda: _core.first_groups(ROWS, [DOUBLE], 1),
        lambda: _core.first_groups(ROWS, [np.zeros(3, np.uint32)], 1),  # type: ignore[list-item]
        lambda: _core.first_groups(ROWS, [np.zeros(6)[::2]], 1),
        lambda: _core.first_counted(LONG, LONG, DOUBLE, ROWS, 1, 1),
        lambda: _core.first_counted(ROWS, LONG, DOUBLE, ROWS, 1, 1),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda rows, values: _core.group_rows(rows, values),
        lambda rows, values: _core.group_rows(rows, values * 2**40),
        lambda rows, values: _core.count_values(values, rows, values.astype(np.float64)),
        lambda rows, values: _core.group_counts(rows, 1),
        lambda rows, values: _core.group_sums(values, rows, 1),
        lambda rows, values: _core.first_groups(rows, [values], 5),
        lambda rows, values: _core.first_counted(values, values, values.astype(np.float64), rows, 1, 5),
        lambda rows, values: _core.first_groups(values.astype(np.uint32), [values], 5),
    ],
)
def test_time_is_looked_at(call: Callable[[NDArray[np.uint32], NDArray[np.int64]], object]) -> None:
    """One call with much to do ends in its midst."""
    rows, values = np.zeros(400_000, np.uint32), np.arange(400_000)
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            call(rows, values)
    finally:
        clock.end_work_at(0)
