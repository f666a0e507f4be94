"""The plain NumPy twin of core/attributes/column_numbers.cpp. Same arguments, same results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_numbers(values: NDArray[Any], lids: NDArray[np.uint32], unset: float, out: NDArray[np.float64]) -> None:
    """`out[i]` becomes the value at lids[i] as a double, of integers NaN where it is `unset`. Raises ValueError."""
    if len(out) != len(lids) or (len(lids) and int(lids.max()) >= len(values)):
        raise ValueError("a number for each lid, which has a value")
    found = values[lids]
    out[:] = found
    if found.dtype.kind != "f":
        out[found == unset] = np.nan
