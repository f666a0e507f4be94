"""The plain twins of core/attributes/group_rows.cpp, core/attributes/group_values.cpp and
core/attributes/group_order.cpp, which say what these kernels compute.

Groups are numbered from 0, and `groups[i]` is the group of row i. Errors of the kernels: ValueError for arrays that do
not fit each other, OutOfTime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Groups = NDArray[np.uint32]


def group_rows(parents: Groups, keys: NDArray[Any]) -> tuple[Groups, NDArray[np.uint32]]:
    """Put rows with the same parent and the same key into one group: the group of each row, and the first row of each
    group. Groups are numbered in the order of their first rows.

    keys: int64, or uint32. As many as parents.
    """
    _, key_numbers = np.unique(keys, return_inverse=True)
    width = int(key_numbers.max(initial=0)) + 1
    pairs = parents.astype(np.int64) * width + key_numbers
    _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    renumbered = np.empty(len(first), np.uint32)
    renumbered[order] = np.arange(len(first), dtype=np.uint32)
    return renumbered[numbers], first[order].astype(np.uint32)


def count_values(
    column: NDArray[Any], lids: Groups, relevances: NDArray[np.float64]
) -> tuple[NDArray[Any], Numbers, NDArray[np.float64], NDArray[np.uint32]]:
    """The distinct values of a column at some lids, in the order in which they are met; how many lids have each; and of
    the relevances of these lids the best, with the place among `lids` of the first that has it. NaN counts as -inf.

    column: uint32, whose values stay so, or int8, int32 or int64, whose values become int64. relevances: one a lid.
    Errors of the kernel: ValueError for a lid beyond the column.
    """
    found = column[lids]
    keys = found if found.dtype == np.uint32 else found.astype(np.int64)
    groups, first = group_rows(np.zeros(len(lids), np.uint32), keys)
    count = len(first)
    return keys[first], group_counts(groups, count), *group_best(relevances, groups, count)


def group_counts(groups: Groups, count: int) -> Numbers:
    """How many rows each group has."""
    return np.bincount(groups, minlength=count).astype(np.int64)


def group_sums(values: NDArray[Any], groups: Groups, count: int) -> NDArray[Any]:
    """The sum of the values of each group: int64, which wraps, or float64, added in the order of the rows."""
    sums = np.zeros(count, values.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(sums, groups, values)
    return sums


def group_extremes(values: NDArray[Any], groups: Groups, count: int, start: Any, is_max: bool) -> NDArray[Any]:
    """The greatest, or least, of `start` and the values of each group. A NaN is passed over.

    values: int64 or float64.
    """
    found = np.full(count, start, values.dtype)
    (np.fmax if is_max else np.fmin).at(found, groups, values)
    return found


def group_best(
    values: NDArray[np.float64], groups: Groups, count: int
) -> tuple[NDArray[np.float64], NDArray[np.uint32]]:
    """The greatest value of each group, and the first row that has it. NaN counts as -inf; a group without rows has
    -inf and the row 2^32 - 1."""
    plain = np.where(np.isnan(values), -np.inf, values)
    best = group_extremes(plain, groups, count, -np.inf, is_max=True)
    rows = np.full(count, 2**32 - 1, np.uint32)
    first = np.flatnonzero(plain == best[groups])[::-1]
    rows[groups[first]] = first
    return best, rows


def first_groups(parents: Groups, keys: Sequence[NDArray[Any]], most: int) -> Numbers:
    """The numbers of the first `most` groups of each parent, by rising keys, parent by parent. Of groups that are equal
    in all keys the lower number comes first.

    parents: that of each group. keys: int64 or float64, most important first; NaN is behind all numbers.
    """
    order = np.lexsort((*reversed(keys), parents)).astype(np.int64)
    starts = np.searchsorted(parents[order], parents[order])
    return order[np.arange(len(order)) - starts < most]


def first_counted(
    values: NDArray[Any],
    counts: Numbers,
    relevances: NDArray[np.float64],
    rows: NDArray[np.uint32],
    order: int,
    most: int,
) -> tuple[Numbers, bool]:
    """The numbers of the first `most` groups that `count_values` made, by their counts, if `order` is 1 (rising) or -1
    (falling), then by their relevances, falling; and whether two of them are equal in both, and their values are codes.

    Where there are more than `most`, those with lower rows are taken of equal ones. Those that are taken are in the
    order of their values, if these are numbers, and else of their own numbers.
    """
    keys = [*([counts * order] if order else []), -relevances]
    parents = np.zeros(len(values), np.uint32)
    taken = np.arange(len(values)) if len(values) <= most else first_groups(parents, [*keys, rows], most)
    own = [key[taken] for key in keys]
    is_coded = values.dtype == np.uint32
    last = taken if is_coded else values[taken]
    taken = taken[first_groups(parents[: len(taken)], [*own, last], most)]
    own = [key[taken] for key in keys]
    equal = np.all([(key[1:] == key[:-1]) | (np.isnan(key[1:]) & np.isnan(key[:-1])) for key in own], axis=0)
    return taken, is_coded and bool(equal.any())
