"""The kernels of exact searches for vectors beside their plain twins: reading one, dot products, and the nearest.

The product of two rows is the same number wherever they stand, and the nearest are the same in blocks of any size.
"""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core, clock
from tests.chance import SEED
from tests.oracles import dots, nearest_hits, vector_text

PARTS = (
    *(
        "0",
        "-0",
        "-0.0",
        "1",
        "-17",
        "2.5",
        "1e3",
        "1E-3",
        "-1.25e+2",
        "0.1",
        "123456789012345678",
        "1234567890123456789",
    ),
    *(
        "0.054619789123535156",
        "1e308",
        "1e309",
        "3.4028236e38",
        "5e-300",
        "01",
        "1.",
        ".5",
        "+1",
        "1e",
        "nan",
        "true",
        '"1"',
    ),
    *("0." + "1" * 70, "[1]", "", "null"),
)
SPACES = ("", "", "", " ", "\n", "\t ")


def test_arrays_are_read_as_by_the_twin() -> None:
    choice, read = random.Random(5), 0
    for _ in range(4000):
        numbers = [choice.choice(PARTS[:10]) if choice.random() < 0.9 else choice.choice(PARTS) for _ in range(3)]
        numbers += [repr(choice.uniform(-1, 1) * 10.0 ** choice.randint(-20, 20)) for _ in range(choice.randint(0, 3))]
        body = ",".join(choice.choice(SPACES) + number + choice.choice(SPACES) for number in numbers)
        text = f"{choice.choice(SPACES)}[{body}]{choice.choice(SPACES)}".encode()
        count = len(numbers) + choice.choice((0, 0, 0, 0, 1, -1))
        found, wanted = _core.read_vector(text, count), vector_text.read_vector(text, count)
        assert (found is None) == (wanted is None), text
        if found is not None and wanted is not None:
            assert found.tobytes() == wanted.tobytes(), text
            read += 1
    assert read > 400


@pytest.mark.parametrize("text", [b"", b"[", b"]", b"[1,]", b"[1] x", b"1", b"[1 2]", b"{}", b"[1,2"])
def test_what_is_no_array_is_not_read(text: bytes) -> None:
    assert [_core.read_vector(text, count) for count in (1, 2)] == [None, None]
    assert _core.read_vector(b" [ ] ", 0) is not None


def test_angles_and_norms_are_what_numpy_finds() -> None:
    cosines = np.random.default_rng(3).uniform(-1, 1, 500)
    found = _core.angles_of(1.0 - np.array([*cosines, 2.0, -2.0]))
    assert np.allclose(found, np.arccos(np.clip([*cosines, 2.0, -2.0], -1, 1)), rtol=1e-7, atol=1e-7)
    for cells in (np.arange(5, dtype=np.float32), np.arange(5.0), np.arange(-2, 3, dtype=np.int8)):
        assert _core.norm_of_query(cells) == np.square(cells.astype(np.float64)).sum()
    assert _core.norm_of_query(np.zeros(4, np.float32)) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_as_the_twin(dtype: type[np.floating], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, size = rng.integers(0, 20), rng.integers(0, 40), rng.integers(0, 70)
    a, b = (rng.standard_normal((count, size)).astype(dtype) for count in (n, m))
    if size and n and seed % 3 == 0:
        a[rng.integers(0, n), rng.integers(0, size)] = rng.choice([np.nan, np.inf, 0.0])
    out, wanted = np.empty((n, m), dtype), np.empty((n, m), dtype)
    _core.all_dots(a, b, out)
    with np.errstate(invalid="ignore"):
        dots.all_dots(a, b, wanted)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_rows_where_they_stand(dtype: type[np.floating], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, size, m = int(rng.integers(1, 40)), int(rng.integers(0, 70)), int(rng.integers(0, 90))
    rows, vector = rng.standard_normal((n, size)).astype(dtype), rng.standard_normal(size).astype(dtype)
    runs = [np.arange(start, min(start + 5, n)) for start in rng.integers(-1, n, 20).tolist()]
    at = np.concatenate(runs).astype(np.int64)[:m]
    counts, whole = (at >= 0).astype(np.int64), np.empty((1, n), dtype)
    out = _core.dots_at(vector, rows, at, counts, 7.0)
    np.testing.assert_allclose(out, dots.dots_at(vector, rows, at, counts, 7.0), rtol=1e-4, atol=1e-4)
    _core.all_dots(vector[None, :], rows, whole)
    assert (out[at >= 0] == whole[0, at[at >= 0]]).all()


@pytest.mark.parametrize("size", [1, 3, 16, 100, 384, 9000])
def test_a_number_hangs_on_its_two_rows_alone(size: int) -> None:
    seed = SEED
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((50, size)).astype(np.float32), rng.standard_normal((33, size)).astype(np.float32)
    out = np.empty((50, 33), np.float32)
    _core.all_dots(a, b, out)
    for first, count, other, others in [(0, 1, 0, 1), (7, 3, 5, 2), (11, 20, 30, 3), (49, 1, 0, 33)]:
        part = np.empty((count, others), np.float32)
        _core.all_dots(a[first : first + count], b[other : other + others], part)
        assert (part == out[first : first + count, other : other + others]).all(), f"seed {seed}"


def test_zero_times_infinity_is_no_number() -> None:
    out = np.empty((1, 1), np.float32)
    _core.all_dots(np.array([[np.inf, 1]], np.float32), np.zeros((1, 2), np.float32), out)
    assert np.isnan(out).all()


def test_what_does_not_fit_is_refused() -> None:
    a = np.zeros((2, 3))
    with pytest.raises(ValueError):
        _core.all_dots(a, np.zeros((2, 4)), np.zeros((2, 2)))
    with pytest.raises(ValueError):
        _core.all_dots(a, a, np.zeros((2, 3)))
    vector, at = np.zeros(3), np.zeros(1, np.int64)
    one = at + 1
    for wrong in (
        (np.zeros(4), at, one),
        (vector, at, np.ones(2, np.int64)),
        (vector, at + 2, one),
        (vector, at - 1, one),
    ):
        with pytest.raises(ValueError):
            _core.dots_at(wrong[0], a, *wrong[1:], 0.0)


def test_time_is_looked_at() -> None:
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            _core.all_dots(np.zeros((1000, 1000)), np.zeros((1000, 1000)), np.zeros((1000, 1000)))
    finally:
        clock.end_work_at(0)


DISTANCES = st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0, 1.5, 3.0, math.inf, -math.inf, math.nan]), max_size=40)


def found(distances: list[float], threshold: float, target: int, block: int) -> list[int]:
    heap, held = np.zeros(target), 0
    hits: list[int] = []
    for start in range(0, len(distances), block):
        places, held = _core.nearest_hits(np.array(distances[start : start + block], np.float64), threshold, heap, held)
        hits += (places + start).tolist()
    return hits


@settings(deadline=None, max_examples=300)
@given(DISTANCES, st.sampled_from([math.inf, -1.0, 1.0, 1.2]), st.integers(1, 12), st.integers(1, 41))
def test_hits(distances: list[float], threshold: float, target: int, block: int) -> None:
    assert found(distances, threshold, target, block) == nearest_hits.nearest_hits(distances, threshold, target)


def test_hits_come_in_the_order_of_lids() -> None:
    """Two are wanted. Vespa: nearest_neighbor_test.cpp (`verify_iterator_returns_expected_results`)."""
    assert found([5, 10, 13, 5, 10, 5], math.inf, 2, 6) == [0, 1, 3, 5]
    far = [math.dist((9, 9), point) for point in ((3, 4), (6, 8), (5, 12), (4, 3), (8, 6), (4, 3))]
    assert found(far, math.inf, 2, 6) == [0, 1, 2, 4]


def test_a_heap_is_checked() -> None:
    for heap, held in (([1.0, 2.0], 3), ([], 0), ([1.0, 2.0], 2)):
        with pytest.raises(ValueError, match="heap"):
            _core.nearest_hits(np.ones(3), 1.0, np.array(heap, np.float64), held)
