"""The plain twin of core/attributes/sorting.cpp, which says what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def first_rows(values: NDArray[Any], bitmap: NDArray[np.uint64], wanted: int, descending: bool) -> NDArray[np.uint32]:
    """The rising lids of the rows in the bitmap that can be among the first `wanted` (at least 1) in the order of their
    values: those whose value comes before, or equals, that of the last of them. NaN is less than any number."""
    flags = np.unpackbits(bitmap.view(np.uint8), bitorder="little")[: len(values)]
    lids = np.flatnonzero(flags).astype(np.uint32)
    found = values[lids]
    found = np.where(np.isnan(found), -np.inf, found) if found.dtype.kind == "f" else found
    if len(lids) <= wanted:
        return lids
    rising = np.sort(found)
    near: NDArray[np.bool_] = found >= rising[len(found) - wanted] if descending else found <= rising[wanted - 1]
    return lids[near]
