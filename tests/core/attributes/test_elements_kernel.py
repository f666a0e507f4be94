"""The kernels of elements beside their twins, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.search.operators.operator import BOTH, EITHER, FIRST_ONLY
from tests.oracles import elements

BITS = st.lists(st.booleans(), max_size=300)
FAR = st.sets(st.one_of(st.integers(0, 70), st.integers(0, 2**32 - 1)), max_size=8).map(sorted)
PAIRS = st.lists(st.tuples(FAR, FAR), max_size=12)


def listed(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint32)
    return offsets, np.array([number for row in rows for number in row], np.uint32)


def same(ours: tuple[np.ndarray, np.ndarray], theirs: tuple[np.ndarray, np.ndarray]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype == np.uint32
        np.testing.assert_array_equal(one, other)


@given(BITS, st.lists(st.tuples(st.integers(0, 310), st.integers(0, 310)), max_size=12))
def test_elements_of_rows(bits: list[bool], places: list[tuple[int, int]]) -> None:
    wanted = np.zeros((len(bits) + 63) // 64 * 64, np.bool_)
    wanted[: len(bits)] = bits
    bitmap = np.packbits(wanted, bitorder="little").view(np.uint64)
    rows = np.array([start << 24 | length for start, length in places], np.uint64)
    same(_core.row_elements(rows, bitmap, len(bits)), elements.row_elements(rows, bitmap, len(bits)))


@given(PAIRS, st.sampled_from([BOTH, EITHER, FIRST_ONLY]))
def test_joins(pairs: list[tuple[list[int], list[int]]], how: int) -> None:
    one, other = listed([row for row, _ in pairs]), listed([row for _, row in pairs])
    same(_core.join_elements(how, *one, *other), elements.join_elements(how, *one, *other))


def test_by_hand() -> None:
    one, other = listed([[0, 2, 99], [], [1]]), listed([[2, 3, 99], [5], []])
    same(_core.join_elements(BOTH, *one, *other), listed([[2, 99], [], []]))
    same(_core.join_elements(EITHER, *one, *other), listed([[0, 2, 3, 99], [5], [1]]))
    same(_core.join_elements(FIRST_ONLY, *one, *other), listed([[0], [], [1]]))
    rows = np.array([0 << 24 | 2, 3 << 24 | 0, 1 << 24 | 3, 2 << 24 | 9], np.uint64)
    same(_core.row_elements(rows, np.array([0b1011], np.uint64), 4), listed([[0, 1], [], [0, 2], []]))


@pytest.mark.parametrize(
    ("offsets", "numbers"),
    [([0, 2], [1]), ([1, 1], [1]), ([0, 2, 1, 2], [0, 1]), ([0, 2], [3, 3]), ([0, 2], [70, 1]), ([], [])],
)
@pytest.mark.parametrize("module", [_core, elements])
def test_damaged_lists_are_refused(module: object, offsets: list[int], numbers: list[int]) -> None:
    damaged = np.array(offsets, np.uint32), np.array(numbers, np.uint32)
    sound = np.zeros(max(1, len(offsets)), np.uint32), np.zeros(0, np.uint32)
    with pytest.raises(ValueError, match=r"."):
        module.join_elements(BOTH, *damaged, *sound)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"."):
        module.join_elements(BOTH, *sound, *damaged)  # type: ignore[attr-defined]


def test_what_does_not_fit_is_refused() -> None:
    empty, two = listed([[]]), listed([[], []])
    for module in (_core, elements):
        with pytest.raises(ValueError, match="other documents"):
            module.join_elements(BOTH, *empty, *two)
        with pytest.raises(ValueError, match="bitmap has 1 words for 65 rows"):
            module.row_elements(np.zeros(1, np.uint64), np.zeros(1, np.uint64), 65)
    with pytest.raises(ValueError, match="three ways"):
        _core.join_elements(3, *empty, *empty)
