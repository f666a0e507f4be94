"""Rows of labels as single numbers, which can be sorted and looked up.

Labels of one evaluation are mostly numbers side by side, so that the place of a label in the range of its column, and
the places of several columns as digits of one number, are keys without any look at which labels there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from paperwasp.document.tensor.algebra.cells import Cells
from paperwasp.document.tensor.algebra.rows import Rows

_LARGEST_KEY: Final = 2**62
_TABLE_ROOM: Final = 1 << 16
"""Places of a table that may be empty however few rows there are."""


def ordered(keys: Rows) -> tuple[Rows, Rows]:
    """(the rows in the order of their keys, none of which is negative; the keys so). Equal ones stay in order."""
    count = len(keys)
    bits = count.bit_length()
    if count and int(keys.max()) < _LARGEST_KEY >> bits:
        both = np.sort(keys << bits | np.arange(count))
        return both & ((1 << bits) - 1), both >> bits
    order = np.argsort(keys, kind="stable")
    return order, keys[order]


def ordered_within(owners: Rows, values: Cells) -> Rows:
    """The places of the values, those of one owner side by side, rising, NaN last. Equal ones stay in order."""
    if not len(values):
        return np.zeros(0, np.int64)
    places = np.argsort(values)
    rising = values[places]
    is_more = rising[1:] > rising[:-1]
    is_more |= np.isnan(rising[1:]) & ~np.isnan(rising[:-1])
    ranks = np.zeros(len(values), np.int64)
    ranks[places[1:]] = np.cumsum(is_more)
    return ordered(owners * len(values) + ranks)[0]


def numbered(columns: Sequence[Rows]) -> Rows:
    """A number for each row of these columns: the same for rows that are the same, in the order of the columns."""
    return keys_of(columns, columns)[0]


def keys_of(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, int]:
    """(a key for each known row, the key of each asked row, how many keys there can be). -1: is as no known row."""
    if not len(known[0]):
        return np.zeros(0, np.int64), np.full(len(asked[0]), -1), 0
    lows = [int(column.min()) for column in known]
    sizes = [int(column.max()) - low + 1 for column, low in zip(known, lows, strict=True)]
    total = 1
    for size in sizes:
        total *= size
    if total >= _LARGEST_KEY:
        return _keys_by_rank(known, asked)
    known_keys = np.zeros(len(known[0]), np.int64)
    asked_keys = np.zeros(len(asked[0]), np.int64)
    is_known = np.ones(len(asked[0]), np.bool_)
    for known_column, asked_column, low, size in zip(known, asked, lows, sizes, strict=True):
        known_keys = known_keys * size + (known_column - low)
        if asked is not known:
            is_known &= (asked_column >= low) & (asked_column < low + size)
            asked_keys = asked_keys * size + (asked_column - low)
    return known_keys, np.where(is_known, asked_keys, -1), total


def _keys_by_rank(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, int]:
    """As `keys_of`, for labels far from each other: each column by the ranks of its labels."""
    known_keys = np.zeros(len(known[0]), np.int64)
    asked_keys = np.zeros(len(asked[0]), np.int64)
    total = 1
    for known_column, asked_column in zip(known, asked, strict=True):
        labels, ranks = np.unique(known_column, return_inverse=True)
        asked_ranks = np.minimum(np.searchsorted(labels, asked_column), len(labels) - 1)
        is_known = (labels[asked_ranks] == asked_column) & (asked_keys >= 0)
        wanted = np.where(is_known, asked_keys * len(labels) + asked_ranks, -1)
        distinct, known_keys = np.unique(known_keys * len(labels) + ranks.reshape(-1), return_inverse=True)
        known_keys = known_keys.reshape(-1)
        total = len(distinct)
        asked_keys = np.minimum(np.searchsorted(distinct, wanted), total - 1)
        asked_keys = np.where(distinct[asked_keys] == wanted, asked_keys, -1)
    return known_keys, asked_keys, total


def places(known: Sequence[Rows], asked: Sequence[Rows]) -> tuple[Rows, Rows, Rows]:
    """(an order of the known rows; for each asked row where those that are like it begin in that order; how many)."""
    known_keys, asked_keys, total = keys_of(known, asked)
    order, in_order = ordered(known_keys)
    if total <= _TABLE_ROOM + 8 * (len(known_keys) + len(asked_keys)):
        starts = np.zeros(total + 2, np.int64)
        np.cumsum(np.bincount(known_keys, minlength=total), out=starts[1:-1])
        starts[-1] = starts[-2]
        # a key of -1 is the last place of the table, which has no rows
        found = starts[:-1][asked_keys]
        return order, found, starts[1:][asked_keys] - found
    found = np.searchsorted(in_order, asked_keys, "left")
    return order, found, np.searchsorted(in_order, asked_keys, "right") - found
