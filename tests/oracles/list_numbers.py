"""The plain twin of core/documents/list_numbers.cpp, which says what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def list_numbers(values: list[Any], count: int) -> NDArray[np.float64] | None:
    """Converts the items of a decoded JSON array to doubles. None where there are not exactly `count`, or where one is
    neither a float nor an int (a bool is neither), or is too large for a double."""
    if len(values) != count or any(type(value) not in (float, int) for value in values):
        return None
    try:
        return np.array([float(value) for value in values], np.float64)
    except OverflowError:
        return None
