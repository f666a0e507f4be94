"""The attribute kernels against their NumPy twins."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles import attribute

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
