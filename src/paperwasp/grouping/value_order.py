"""The order of values of groups: of their ids, and of what they are ordered by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.grouping.tables import encoded
from paperwasp.grouping.values import Values


def order_key(value: Any) -> Any:
    """What values of one kind are compared by: text by its bytes, buckets by their limits, low before high."""
    if isinstance(value, str):
        return encoded(value)
    if isinstance(value, tuple):
        return tuple(order_key(limit) for limit in value)
    return value


def ranks_of(values: Values) -> NDArray[Any]:
    """Numbers that rise with single values, and are equal where these are. NaN is less than any number.

    Cost: text and buckets are sorted, each distinct one once.
    """
    if values.table is None:
        data = values.data
        return np.where(np.isnan(data), -np.inf, data) if data.dtype == np.float64 else data.astype(np.int64)
    codes, numbers = np.unique(values.data, return_inverse=True)
    # None is a value that is in no bucket: before all others.
    keys = [(value is not None, order_key(value)) for value in values.table.values_of(codes)]
    ranks = np.zeros(len(keys), np.int64)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rank = 0
    for place, number in enumerate(order):
        rank += place > 0 and keys[number] != keys[order[place - 1]]
        ranks[number] = rank
    return ranks[numbers]


def group_keys(values: Values) -> NDArray[Any]:
    """What equal single values share, and others do not: int64, or the uint32 of codes. All NaN are one value, and so
    are both zeros."""
    data = values.data
    if data.dtype == np.float64:
        plain = np.where(np.isnan(data), np.nan, data) + 0.0
        bits: NDArray[np.int64] = plain.view(np.int64)
        return bits
    return data if data.dtype == np.uint32 else data.astype(np.int64, copy=False)
