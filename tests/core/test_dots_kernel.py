"""The kernel of dot products gives what its plain twin does, and for two rows the same number wherever they stand."""

from __future__ import annotations

import random

import numpy as np
import pytest

from paperwasp.core import _core, clock, dots


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(20))
def test_as_the_twin(dtype, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m, size, groups = rng.integers(0, 20), rng.integers(0, 40), rng.integers(0, 70), rng.integers(0, 6)
    a, b = (rng.standard_normal((count, size)).astype(dtype) for count in (n, m))
    if size and n and seed % 3 == 0:
        a[rng.integers(0, n), rng.integers(0, size)] = rng.choice([np.nan, np.inf, 0.0])
    out, wanted = np.empty((n, m), dtype), np.empty((n, m), dtype)
    _core.all_dots(a, b, out)
    with np.errstate(invalid="ignore"):
        dots.all_dots(a, b, wanted)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
    starts = np.array([0, *sorted(rng.integers(0, n + 1, groups).tolist()), n], np.int64)
    out, wanted = np.empty((groups + 1, m), dtype), np.empty((groups + 1, m), dtype)
    _core.greatest_dots(a, b, starts, out)
    with np.errstate(invalid="ignore"):
        dots.greatest_dots(a, b, starts, wanted)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 3, 16, 100, 384, 9000])
def test_a_number_hangs_on_its_two_rows_alone(size: int) -> None:
    seed = random.randrange(2**32)
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
    a, out = np.zeros((2, 3)), np.zeros((1, 2))
    with pytest.raises(ValueError):
        _core.all_dots(a, np.zeros((2, 4)), np.zeros((2, 2)))
    with pytest.raises(ValueError):
        _core.all_dots(a, a, np.zeros((2, 3)))
    for starts in ([0, 3], [-1, 2], [2, 1], [0, 1, 2]):
        with pytest.raises(ValueError):
            _core.greatest_dots(a, a, np.array(starts, np.int64), out)


def test_time_is_looked_at() -> None:
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            _core.all_dots(np.zeros((1000, 1000)), np.zeros((1000, 1000)), np.zeros((1000, 1000)))
    finally:
        clock.end_work_at(0)
