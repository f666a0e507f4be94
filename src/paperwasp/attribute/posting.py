"""Posting lists of a column (fast-search): rows in the order of their values, so that a selective range touches few.

A posting is a picture taken at some length: values sorted, with their lids. What came after it is looked at row by row:
rows appended since (the tail), and rows changed in place since. Whatever it finds is verified against the column, so
an old picture is slower, never wrong: only a reader of a view that is no longer the last one may miss a row that was
changed in place since. A picture is made by the first reader that wants one and finds the last one too old.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.column import Bitmap, bitmap_of
from paperwasp.attribute.rows import spread
from paperwasp.attribute.wanted import Wanted

_SMALLEST_COLUMN = 4096
"""Rows below which reading the whole column is faster than any posting."""
_TAIL_SHARE = 0.25
_SELECTIVE_SHARE = 1 / 32
"""A range with more of the rows than this is found faster by reading the column."""
_MOST_CHANGES = 65_536
"""Rows changed in place after which a new picture is due."""


@dataclass(frozen=True, slots=True)
class _Picture:
    """Rows [0, length) sorted by value. `changes_from`: how many changes in place it has seen."""

    values: NDArray[Any]
    lids: NDArray[np.uint32]
    length: int
    changes: list[int]
    changes_from: int


class PostingSource:
    """What the writer keeps: the lids it changed in place, and the last picture."""

    __slots__ = ("changes", "picture")

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.picture: _Picture | None = None

    def changed(self, lid: int) -> None:
        """Call after the row was changed. A picture that misses a change in progress reads the changed row itself."""
        if len(self.changes) >= _MOST_CHANGES:
            self.changes, self.picture = [], None
        self.changes.append(lid)

    def snapshot(self) -> Posting:
        return Posting(self)


class Posting:
    """What a reader asks. All methods take the reader's own rows.

    These have all changes that were made before the reader's view. Later ones they have only while the column has not
    moved to a larger array, so that a picture of them counts as having seen none.
    """

    __slots__ = ("_changes", "_changes_seen", "_source")

    def __init__(self, source: PostingSource) -> None:
        self._source = source
        self._changes = source.changes
        self._changes_seen = len(source.changes)

    def bitmap(self, values: NDArray[Any], wanted: Wanted) -> Bitmap | None:
        """The rows that are wanted, or None where reading the column is the better way."""
        picture = self._picture(values)
        if picture is None:
            return None
        starts, lengths = _spans(picture, wanted)
        if int(lengths.sum()) > len(values) * _SELECTIVE_SHARE:
            return None
        changed = np.array(picture.changes[picture.changes_from :], np.uint32)
        tail = picture.length + np.flatnonzero(wanted.among(values[picture.length :]))
        candidates = np.concatenate((picture.lids[spread(starts, lengths)], changed))
        candidates = candidates[candidates < len(values)]
        found = candidates[wanted.among(values[candidates])]
        return bitmap_of(np.concatenate((found, tail)), len(values))

    def estimate(self, values: NDArray[Any], wanted: Wanted) -> int | None:
        picture = self._picture(values)
        if picture is None:
            return None
        found = int(_spans(picture, wanted)[1].sum())
        tail = len(values) - min(picture.length, len(values))
        return min(len(values), int(found + found / max(1, picture.length) * tail))

    def _picture(self, values: NDArray[Any]) -> _Picture | None:
        if len(values) < _SMALLEST_COLUMN:
            return None
        source = self._source
        picture = source.picture
        stale = picture is None or picture.changes is not source.changes
        if picture is None or stale or len(values) - picture.length > len(values) * _TAIL_SHARE:
            picture = source.picture = self._take_picture(values)
        return picture

    def _take_picture(self, values: NDArray[Any]) -> _Picture:
        """What changes while it is being sorted is among the changes that are looked at by row."""
        copy = values.copy()
        order = np.argsort(copy, kind="stable").astype(np.uint32)
        return _Picture(copy[order], order, len(copy), self._changes, self._changes_seen)


def _spans(picture: _Picture, wanted: Wanted) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where what is wanted stands among the sorted values: starts, lengths (NaN is sorted last, beyond any range)."""
    lows, highs = wanted.ranges(picture.values.dtype)
    starts = np.searchsorted(picture.values, lows, "left")
    ends = np.searchsorted(picture.values, highs, "right")
    return starts, np.maximum(ends - starts, 0)
