"""The kernels that find the best hits beside NumPy: by scores, and by dot products beside scoring all hits."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from paperwasp.core import _core, clock
from tests.chance import SEED
from tests.oracles import best_dots
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


LIMIT = 3000


def asked_of(number: int, dtype: type[np.floating[Any]], limit: int) -> dict[str, Any]:
    """Cells are small whole numbers, whose sums are exact; some are no numbers, and some documents have no vector."""
    rng = np.random.default_rng([SEED, number])
    size, count = int(rng.integers(0, 40)), int(rng.integers(1, 2 * limit))
    vectors = rng.integers(-3, 4, (count, size)).astype(dtype)
    if size and number % 3 == 0:
        vectors[rng.integers(0, count, 5), rng.integers(0, size, 5)] = rng.choice([np.nan, np.inf, -np.inf], 5)
    places = np.arange(limit) % count if number % 2 else rng.integers(0, count, limit)
    there = rng.random(limit) < 0.9
    lids = np.flatnonzero(rng.random(limit + 40) < rng.choice([0.001, 0.3, 0.99, 1.0]))
    bits = np.zeros(-(-(limit + 40) // 64) * 64, np.uint8)
    bits[lids] = 1
    return {
        "vector": rng.integers(-3, 4, size).astype(dtype),
        "vectors": vectors,
        "rows": np.where(there, places.astype(np.uint64) << np.uint64(24) | np.uint64(1), np.uint64(7 << 24)),
        "nothing": float(rng.choice([0.0, 0.0, 2.0, np.nan])),
        "hits": np.packbits(bits, bitorder="little").view(np.uint64),
    }


def same(found: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    return all(found[at].tobytes() == expected[at].tobytes() for at in (0, 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", range(30))
def test_as_the_twin(number: int, dtype: type[np.floating[Any]]) -> None:
    asked = asked_of(number, dtype, limit=(5, 64, 200, LIMIT)[number % 4])
    for wanted in (0, 1, 10, 5000):
        found = _core.best_dots(**asked, wanted=wanted)
        with np.errstate(invalid="ignore"):
            expected = best_dots.best_dots(**asked, wanted=wanted)
        assert same(found, expected) and found[2] == expected[2], f"seed {SEED}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("number", range(10))
def test_the_best_of_parts_are_those_of_all(number: int, dtype: type[np.floating[Any]]) -> None:
    asked = asked_of(number, dtype, LIMIT)
    rng = np.random.default_rng([SEED, number])
    asked["vectors"] = rng.standard_normal(asked["vectors"].shape).astype(dtype)
    bounds = [0, *(64 * np.sort(rng.integers(0, LIMIT // 64, 4))).tolist(), 2**32 - 1]
    for wanted in (1, 10, 5000):
        whole = _core.best_dots(**asked, wanted=wanted)
        parts = [_core.best_dots(**asked, wanted=wanted, first=first, last=last) for first, last in pairwise(bounds)]
        lids, scores = (np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
        joined = _core.best_of(lids, scores, wanted)
        assert same(joined, whole) and sum(part[2] for part in parts) == whole[2], f"seed {SEED}"


def test_scores_are_those_of_the_kernel_for_all() -> None:
    asked = asked_of(1, np.float32, LIMIT)
    asked["vectors"] = np.random.default_rng(SEED).standard_normal(asked["vectors"].shape).astype(np.float32)
    lids, scores, _ = _core.best_dots(**asked, wanted=10_000)
    rows = np.where(lids < LIMIT, asked["rows"][np.minimum(lids, LIMIT - 1)], 0)
    starts, counts = (rows >> np.uint64(24)).astype(np.int64), (rows & np.uint64(0xFFFFFF)).astype(np.int64)
    every = _core.dots_at(asked["vector"], asked["vectors"], starts, counts, asked["nothing"])
    assert np.where(np.isfinite(every), every, -np.inf).tobytes() == scores.tobytes(), f"seed {SEED}"


@pytest.mark.parametrize(
    "change",
    [
        {"vector": np.zeros(4)},
        {"rows": np.array([3 << 24 | 1], np.uint64)},
        {"first": 1},
        {"last": 1},
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any]) -> None:
    asked: dict[str, Any] = {
        "vector": np.zeros(3),
        "vectors": np.zeros((3, 3)),
        "rows": np.array([2 << 24 | 1], np.uint64),
        "nothing": 0.0,
        "hits": np.array([1, 0], np.uint64),
        "wanted": 2,
    }
    _core.best_dots(**asked)
    with pytest.raises(ValueError):
        _core.best_dots(**(asked | change))


def test_time_that_is_over_leaves_what_was_scored() -> None:
    count, size = 20_000, 64
    asked: dict[str, Any] = {
        "vector": np.ones(size),
        "vectors": np.ones((count, size)),
        "rows": np.arange(count, dtype=np.uint64) << np.uint64(24) | np.uint64(1),
        "nothing": 0.0,
        "hits": np.full(-(-count // 64), 2**64 - 1, np.uint64),
        "wanted": 10,
    }
    clock.end_work_at(1)
    try:
        _, _, scored = _core.best_dots(**asked)
        assert 0 < scored < count
        with pytest.raises(clock.OutOfTime):
            _core.check_time()
    finally:
        clock.end_work_at(0)
