"""The kernel that finds the rows that can be first, beside its plain twin."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.core import _core
from tests.oracles.sorting import first_rows

SEED = 20261


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 1000])
def test_kernel_and_twin_agree(kind: type[np.number], rows: int) -> None:
    random = np.random.default_rng(SEED)
    values = random.integers(-20, 20, rows).astype(kind)
    if kind in (np.float32, np.float64):
        values[random.random(rows) < 0.2] = np.nan
    bitmap = random.integers(0, 1 << 63, (rows + 63) // 64, dtype=np.int64).view(np.uint64)
    for wanted in (1, 2, 10, 64, 2000):
        for descending in (False, True):
            found = _core.first_rows(values, bitmap, wanted, descending)
            assert found.tolist() == first_rows(values, bitmap, wanted, descending).tolist(), (SEED, wanted, descending)


def test_ties_with_the_last_one_are_all_there() -> None:
    values = np.array([3, 1, 2, 1, 2, 2, 9], np.int32)
    everything = np.array([0xFF], np.uint64)
    assert _core.first_rows(values, everything, 3, False).tolist() == [1, 2, 3, 4, 5]
    assert _core.first_rows(values, everything, 1, True).tolist() == [6]
    assert _core.first_rows(values, everything, 2, True).tolist() == [0, 6]


def test_what_does_not_fit_is_refused() -> None:
    values = np.zeros(65, np.int32)
    with pytest.raises(ValueError, match="fewer rows"):
        _core.first_rows(values, np.zeros(1, np.uint64), 1, False)
    with pytest.raises(ValueError, match="no row"):
        _core.first_rows(values, np.zeros(2, np.uint64), 0, False)
