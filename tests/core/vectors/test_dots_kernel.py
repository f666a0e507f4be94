"""The kernel of dot products gives what its plain twin does, and for two rows the same number wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.core import _core, clock
from tests.chance import SEED
from tests.oracles import dots


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
    for given in (
        (np.zeros(4), at, one),
        (vector, at, np.ones(2, np.int64)),
        (vector, at + 2, one),
        (vector, at - 1, one),
    ):
        with pytest.raises(ValueError):
            _core.dots_at(given[0], a, *given[1:], 0.0)


def test_time_is_looked_at() -> None:
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            _core.all_dots(np.zeros((1000, 1000)), np.zeros((1000, 1000)), np.zeros((1000, 1000)))
    finally:
        clock.end_work_at(0)
