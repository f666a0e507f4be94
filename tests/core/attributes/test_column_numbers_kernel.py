"""The kernel of column numbers gives what its plain twin does."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.core import _core, clock
from tests.oracles import column_numbers

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
