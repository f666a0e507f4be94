"""Values of rows as aggregators read them: one after another, with the group of each, as numbers of one type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.conversion import BUCKETS, WHOLE, as_doubles, as_longs
from paperwasp.search.grouping.ragged import lengths_of
from paperwasp.search.grouping.values import Values

Groups = NDArray[np.uint32]


def spread(values: Values, groups: Groups) -> Groups:
    """The group of each value, where `groups` has that of each row."""
    return groups if values.offsets is None else np.repeat(groups, lengths_of(values.offsets))


def as_numbers(values: Values) -> NDArray[Any]:
    """The values as int64 where their type is an integer or bool, else as float64; buckets are 0.

    Vespa: the `getFloat` of result nodes.
    """
    if values.kind in WHOLE:
        return as_longs(values)
    return np.zeros(len(values.data)) if values.kind in BUCKETS else as_doubles(values)


def as_integers(values: Values) -> NDArray[np.int64]:
    """The values as int64: floats rounded, buckets 0. Vespa: the `getInteger` of result nodes."""
    return np.zeros(len(values.data), np.int64) if values.kind in BUCKETS else as_longs(values)


def valid_doubles(values: Values, groups: Groups) -> tuple[NDArray[np.float64], Groups]:
    """The values as float64 without those that are NaN, and the groups of those that are left."""
    numbers = as_numbers(values).astype(np.float64, copy=False)
    is_valid = ~np.isnan(numbers)
    return (numbers, groups) if is_valid.all() else (numbers[is_valid], groups[is_valid])
