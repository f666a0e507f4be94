"""The plain twins of the kernels for grouping, which say what they compute.

Groups are numbered from 0, and `groups[i]` is the group of row i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class Grouped(NamedTuple):
    """Rows in groups."""

    groups: NDArray[np.uint32]
    """The group of each row. Groups are numbered in the order of their first rows."""
    first: NDArray[np.uint32]
    """The first row of each group."""


def group_rows(parents: NDArray[np.uint32], keys: NDArray[Any]) -> Grouped:
    """Put rows with the same parent and the same key into one group.

    keys: int64, or uint32. As many as parents.
    """
    _, key_numbers = np.unique(keys, return_inverse=True)
    width = int(key_numbers.max(initial=0)) + 1
    pairs = parents.astype(np.int64) * width + key_numbers
    _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    renumbered = np.empty(len(first), np.uint32)
    renumbered[order] = np.arange(len(first), dtype=np.uint32)
    return Grouped(renumbered[numbers], first[order].astype(np.uint32))


def group_sums(values: NDArray[Any], groups: NDArray[np.uint32], count: int) -> NDArray[Any]:
    """The sum of the values of each group: int64, which wraps, or float64, added in the order of the rows."""
    sums = np.zeros(count, values.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(sums, groups, values)
    return sums


def group_extremes(
    values: NDArray[Any], groups: NDArray[np.uint32], count: int, start: Any, *, is_max: bool
) -> NDArray[Any]:
    """The greatest, or least, of `start` and the values of each group. A NaN is passed over.

    values: int64 or float64.
    """
    found = np.full(count, start, values.dtype)
    (np.fmax if is_max else np.fmin).at(found, groups, values)
    return found
