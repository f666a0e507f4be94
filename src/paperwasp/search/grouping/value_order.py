"""The order of values of groups: of their ids, and of what they are ordered by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.tables import distinct, encoded
from paperwasp.search.grouping.values import Kind, Values

_NO_BUCKETS: Final[Mapping[Kind, Any]] = {
    Kind.LONG_BUCKET: (0, 0),
    Kind.DOUBLE_BUCKET: (0.0, 0.0),
    Kind.STRING_BUCKET: ("", ""),
    Kind.RAW_BUCKET: (b"", b""),
}
"""By kind: the bucket whose place a value in no bucket has."""


def order_key(value: Any) -> Any:
    """What values of one kind are compared by: text by its bytes, buckets by their limits, low before high, and NaN
    before all numbers."""
    if isinstance(value, str):
        return encoded(value)
    if isinstance(value, tuple):
        return tuple(order_key(limit) for limit in value)
    return (value == value, 0.0 if value != value else value) if isinstance(value, float) else value


def ranks_of(values: Values) -> NDArray[Any]:
    """Integers that rise with single values, and are equal where these are. NaN is less than any number.

    Cost: text and buckets are sorted, each distinct one once.
    Vespa: the `onCmp` of result nodes.
    """
    if values.table is None:
        data = values.data
        return _ranks_of_doubles(data) if data.dtype == np.float64 else data.astype(np.int64)
    codes, numbers = distinct(values.data)
    found = values.table.values_of(codes)
    if set(map(type, found)) == {str} and len(set(found)) == len(found):
        # Text is in the order of its characters in the order of its bytes, too: UTF-8 is made so.
        ranks = np.empty(len(found), np.int64)
        ranks[sorted(range(len(found)), key=found.__getitem__)] = np.arange(len(found))
        return ranks[numbers]
    # None is a value that is in no bucket. It is before the bucket of texts that has the same limits and no end.
    none = order_key(_NO_BUCKETS.get(values.kind))
    keys = [(none, False) if value is None else (order_key(value), True) for value in found]
    ranks = np.zeros(len(keys), np.int64)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rank = 0
    for place, number in enumerate(order):
        rank += place > 0 and keys[number] != keys[order[place - 1]]
        ranks[number] = rank
    return ranks[numbers]


def ranks_of_distinct(values: Values) -> NDArray[Any]:
    """The ranks of `ranks_of` for values of which no two are equal."""
    if values.kind is not Kind.STRING or values.table is None:
        return ranks_of(values)
    texts = values.table.values_of(values.data)
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks


def _ranks_of_doubles(data: NDArray[np.float64]) -> NDArray[np.int64]:
    """Their bits, of which those of negative numbers fall where the numbers rise."""
    bits = (data + 0.0).view(np.int64)  # both zeros are one
    return np.where(np.isnan(data), np.iinfo(np.int64).min, np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits))


def group_keys(values: Values) -> NDArray[Any]:
    """What equal single values share, and others do not: int64, or the uint32 of codes. All NaN are one value, and so
    are both zeros."""
    data = values.data
    if data.dtype == np.float64:
        plain = np.where(np.isnan(data), np.nan, data) + 0.0
        bits: NDArray[np.int64] = plain.view(np.int64)
        return bits
    return data if data.dtype == np.uint32 else data.astype(np.int64, copy=False)
