"""The plain NumPy twin of core/attributes/products.cpp. Same arguments, same results."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.rows import ROW_LENGTH_BITS


def products(
    values: NDArray[Any],
    rows: NDArray[np.uint64],
    weights: NDArray[np.int32],
    keys: NDArray[Any],
    token_weights: NDArray[np.int64],
    lids: NDArray[np.uint32],
    sums: NDArray[np.float64],
) -> None:
    """For each document the sum of products of token weight and element weight, over its elements that are keys."""
    by_key = dict(zip(keys.tolist(), token_weights.tolist(), strict=True))
    for place, lid in enumerate(lids.tolist()):
        row = int(rows[lid]) if len(rows) else lid << ROW_LENGTH_BITS | 1
        start, length = row >> ROW_LENGTH_BITS, row & ((1 << ROW_LENGTH_BITS) - 1)
        inside = range(start, start + length) if start + length <= len(values) else ()
        total = sum(
            by_key.get(values[element].item(), 0) * (int(weights[element]) if len(weights) else 1) for element in inside
        )
        sums[place] = float((total + 2**63) % 2**64 - 2**63)
