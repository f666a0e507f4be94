"""The best of hits with scores, and whether bitmaps have documents, beside NumPy."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.core import _core, clock
from tests.oracles import best_of as plain

SCORES = st.sampled_from([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan])


def assert_same(lids: NDArray[np.uint32], scores: NDArray[np.float64], wanted: int) -> None:
    found, expected = _core.best_of(lids, scores, wanted), plain.best_of(lids, scores, wanted)
    for number in (0, 1):
        assert found[number].dtype == expected[number].dtype
        np.testing.assert_array_equal(found[number], expected[number])


@given(st.lists(SCORES, max_size=50), st.integers(0, 60), st.randoms())
def test_the_best_are_those_of_a_sort(given: list[float], wanted: int, chance: random.Random) -> None:
    lids = np.array(chance.sample(range(1000), len(given)), np.uint32)
    scores = np.array(given, np.float64)
    assert_same(lids, scores, wanted)


@pytest.mark.parametrize("wanted", [1, 10, 20_000, 40_000, 2**40])
def test_the_best_of_many(wanted: int) -> None:
    chance = np.random.default_rng(wanted % 97)
    lids, scores = chance.permutation(40_000).astype(np.uint32), chance.integers(0, 300, 40_000).astype(np.float64)
    assert_same(lids, scores, wanted)


def test_scores_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="a score for each hit"):
        _core.best_of(np.zeros(3, np.uint32), np.zeros(2), 1)


def test_time_is_looked_at() -> None:
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            _core.best_of(np.arange(400_000, dtype=np.uint32), np.zeros(400_000), 1)
    finally:
        clock.end_work_at(0)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5), st.data())
def test_bits_of_documents(words: list[int], data: st.DataObject) -> None:
    lids = data.draw(st.lists(st.integers(0, 64 * len(words) - 1), max_size=20))
    has = _core.bitmap_has(np.array(words, np.uint64), np.array(lids, np.uint32))
    assert has.tolist() == [words[lid // 64] >> lid % 64 & 1 for lid in lids]


def test_documents_beyond_a_bitmap_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond the bitmap"):
        _core.bitmap_has(np.zeros(1, np.uint64), np.array([64], np.uint32))
