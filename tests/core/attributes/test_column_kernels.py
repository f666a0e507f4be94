"""The kernels over columns beside their NumPy twins: which rows match, their numbers, and their strings.

The strings are those of the list, however it grows.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core, clock
from tests.oracles import attribute, column_numbers

Kernel = Callable[..., object]
DTYPES = ("int8", "int32", "int64", "uint32", "float32", "float64")


def words(rows: int) -> np.ndarray:
    return np.full((rows + 63) // 64, 0xDEADBEEF, np.uint64)


@given(st.integers(0, 300), st.sampled_from(DTYPES), st.integers(-20, 20), st.integers(0, 20), st.integers(0, 2**32))
def test_ranges(rows: int, dtype: str, low: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(0 if dtype == "uint32" else -25, 25, rows).astype(dtype)
    if dtype.startswith("float"):
        values[random.random(rows) < 0.2] = np.nan
    low = max(0, low) if dtype == "uint32" else low
    lengths = random.integers(0, 4, rows).astype(np.uint64)
    starts = random.integers(0, max(1, rows), rows).astype(np.uint64)
    packed = starts << np.uint64(24) | lengths
    pairs: list[tuple[Kernel, Kernel, tuple[np.ndarray, ...]]] = [
        (_core.range_bitmap, attribute.range_bitmap, (values,)),
        (_core.array_range_bitmap, attribute.array_range_bitmap, (values, packed)),
    ]
    for kernel, twin, arguments in pairs:
        found, expected = words(rows), words(rows)
        kernel(*arguments, low, low + width, found)
        twin(*arguments, low, low + width, expected)
        assert found.tolist() == expected.tolist()


@given(st.integers(0, 300), st.integers(0, 30), st.integers(0, 2**32))
def test_members(rows: int, table_size: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 25, rows).astype(np.uint32)
    table = random.integers(0, 2, table_size).astype(np.uint8)
    packed = random.integers(0, max(1, rows), rows).astype(np.uint64) << np.uint64(24) | np.uint64(2)
    pairs: list[tuple[Kernel, Kernel, tuple[np.ndarray, ...]]] = [
        (_core.member_bitmap, attribute.member_bitmap, (codes, table)),
        (_core.array_member_bitmap, attribute.array_member_bitmap, (codes, packed, table)),
    ]
    for kernel, twin, arguments in pairs:
        found, expected = words(rows), words(rows)
        kernel(*arguments, found)
        twin(*arguments, expected)
        assert found.tolist() == expected.tolist()


def test_a_bitmap_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="bitmap has 2 words for 64 rows"):
        _core.range_bitmap(np.zeros(64, np.int32), 0, 1, words(65))


LEAST = {"int8": -128, "int32": -(2**31), "int64": -(2**63), "float32": np.nan, "float64": np.nan}


@pytest.mark.parametrize("dtype", LEAST)
@pytest.mark.parametrize("count", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("together", [True, False])
def test_as_the_twin(dtype: str, count: int, together: bool) -> None:
    rng = np.random.default_rng(count)
    values = (rng.standard_normal(2000) * 100).astype(dtype)
    values[::7] = LEAST[dtype]
    lids = np.arange(5, 5 + count) if together else np.sort(rng.choice(2000, count, replace=False))
    out, wanted = np.empty(count), np.empty(count)
    _core.column_numbers(values, lids.astype(np.uint32), LEAST[dtype], out)
    column_numbers.column_numbers(values, lids.astype(np.uint32), LEAST[dtype], wanted)
    np.testing.assert_array_equal(out, wanted)


def test_what_does_not_fit_is_refused() -> None:
    values, lids = np.zeros(3, np.int32), np.array([0, 3], np.uint32)
    for function in (_core.column_numbers, column_numbers.column_numbers):
        with pytest.raises(ValueError):
            function(values, lids, 0, np.empty(2))
        with pytest.raises(ValueError):
            function(values, lids[:1], 0, np.empty(2))


def test_time_is_looked_at() -> None:
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            for _ in range(1000):
                _core.column_numbers(np.zeros(1000), np.arange(1000, dtype=np.uint32), 0.0, np.empty(1000))
    finally:
        clock.end_work_at(0)


CHARACTERS = 'a"\\\x00\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff'


def test_strings_are_those_of_the_list() -> None:
    choice = random.Random(5)
    strings = [""]
    noted = _core.ColumnStrings(strings)
    for _ in range(12):
        known = len(strings)
        some = ("".join(choice.choices(CHARACTERS, k=choice.randrange(4))) for _ in range(choice.randrange(900)))
        strings += [f"{len(strings)}{text}" for text in some]
        assert noted.text(known) is None
        assert [noted.text(code) for code in range(known)] == [text.encode() for text in strings[:known]]
        noted.extend()
    assert [noted.text(code) for code in range(len(strings))] == [text.encode() for text in strings]
    assert noted.text(2**32) is None and noted.text(2**64 - 2) is None


def test_strings_stay_when_their_list_is_gone() -> None:
    noted = _core.ColumnStrings([f"one {number}" for number in range(5000)])
    assert noted.text(4999) == b"one 4999"


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\U0001f41d\udabc"])
def test_what_is_no_text_has_none(text: str) -> None:
    assert _core.ColumnStrings(["", text, "b"]).text(1) is None


def test_what_is_no_string_is_refused() -> None:
    with pytest.raises(TypeError, match="strings"):
        _core.ColumnStrings(["a", 3])  # type: ignore[list-item]
