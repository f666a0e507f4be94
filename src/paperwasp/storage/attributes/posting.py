"""Posting lists of a column (fast-search): rows in the order of their values, so that a selective term touches few.

A column of one value a row has them as `Posting`, one of several as `RowPosting`.

A posting is a picture taken at some length: values sorted, with their lids. What came after it is looked at row by row:
rows appended since (the tail), and rows changed in place since. Whatever it finds is verified against the column, so
an old picture is slower, never wrong: only a reader of a view that is no longer the last one may miss a row that was
changed in place since. A picture is made ahead, by who calls `prepare` now and then; otherwise by the first reader that
wants one and finds the last one too old.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.storage.attributes.column import Bitmap, bitmap_of, empty_bitmap
from paperwasp.storage.attributes.rows import Rows, places_of, spread
from paperwasp.storage.attributes.wanted import Wanted

_SMALLEST_COLUMN = 4096
"""Rows below which reading the whole column is faster than any posting."""
_TAIL_SHARE = 0.25
_TAIL_SHARE_AHEAD = 0.125
"""Where a new picture is made ahead: before a reader finds the last one too old."""
_SELECTIVE_SHARE = 1 / 32
"""Terms with more of the values than this are found faster by reading the column."""
_MOST_CHANGES = 65_536
"""Rows changed in place after which a new picture is due."""


class _Picture(Struct, frozen=True):
    """The values of rows [0, length), sorted, beside each the row. `changes_from`: how many changes in place it has
    seen."""

    values: NDArray[Any]
    lids: NDArray[np.uint32]
    length: int
    changes: list[int]
    changes_from: int

    def changed(self) -> NDArray[np.uint32]:
        """The rows changed in place since."""
        return np.array(self.changes[self.changes_from :], np.uint32)


class PostingSource:
    """The writer's part: the lids it changed in place, and the last picture."""

    __slots__ = ("changes", "picture")

    def __init__(self) -> None:
        self.changes: list[int] = []
        self.picture: _Picture | None = None

    def note_change(self, lid: int) -> None:
        """Call after the row was changed. A picture that misses a change in progress reads the changed row itself."""
        if len(self.changes) >= _MOST_CHANGES:
            self.changes, self.picture = [], None
        self.changes.append(lid)

    def note_changes(self, lids: list[int]) -> None:
        """The same of several rows, and perhaps of some that were not changed."""
        if len(self.changes) + len(lids) > _MOST_CHANGES:
            self.changes, self.picture = [], None
        self.changes += lids

    def snapshot(self) -> Posting:
        return Posting(self)

    def snapshot_of_rows(self) -> RowPosting:
        return RowPosting(self)


class _Pictures:
    """A reader's part: the pictures of its column that it may use.

    These have all changes that were made before the reader's view. Later ones they have only while the column has not
    moved to a larger array, so that a picture of them counts as having seen none.
    """

    __slots__ = ("_changes", "_changes_seen", "_source")

    def __init__(self, source: PostingSource) -> None:
        self._source = source
        self._changes = source.changes
        self._changes_seen = len(source.changes)

    def _is_due(self, length: int) -> bool:
        """Tell whether a new picture of `length` rows is to be made ahead."""
        return length >= _SMALLEST_COLUMN and self._last(length, _TAIL_SHARE_AHEAD) is None

    def _last(self, length: int, tail_share: float = _TAIL_SHARE) -> _Picture | None:
        """The last picture, if it is not too old for `length` rows."""
        picture = self._source.picture
        if picture is None or picture.changes is not self._source.changes:
            return None
        return None if length - picture.length > length * tail_share else picture

    def _take(self, values: NDArray[Any], lids: NDArray[np.uint32] | None, length: int) -> _Picture:
        """A picture of values and their rows (None: one each). What changes while it is being sorted is among the
        changes that are looked at by row."""
        lids = np.arange(length, dtype=np.uint32) if lids is None else lids
        picture = _Picture(*_sort_values(values, lids), length, self._changes, self._changes_seen)
        self._source.picture = picture
        return picture


class Posting(_Pictures):
    """The postings of a reader of single values. All methods take the reader's own rows."""

    __slots__ = ()

    def bitmap(self, values: NDArray[Any], wanted: Wanted) -> Bitmap | None:
        """The rows that are wanted, or None where reading the column is the better way."""
        picture = self._picture(values)
        if picture is None:
            return None
        found = _in_picture(picture, wanted)
        if found is None:
            return None
        candidates = np.concatenate((found, picture.changed()))
        candidates = candidates[candidates < len(values)]
        tail = picture.length + np.flatnonzero(wanted.among(values[picture.length :]))
        found = candidates[wanted.among(values[candidates])]
        return bitmap_of(np.concatenate((found, tail)), len(values))

    def estimate(self, values: NDArray[Any], wanted: Wanted) -> int | None:
        picture = self._picture(values)
        return None if picture is None else _estimate(picture, wanted, len(values))

    def prepare(self, values: NDArray[Any]) -> bool:
        """Makes a new picture if one is due; says whether it was."""
        if due := self._is_due(len(values)):
            self._take(values.copy(), None, len(values))
        return due

    def _picture(self, values: NDArray[Any]) -> _Picture | None:
        if len(values) < _SMALLEST_COLUMN:
            return None
        return self._last(len(values)) or self._take(values.copy(), None, len(values))


class RowPosting(_Pictures):
    """The postings of a reader of rows of elements: a row is wanted if one of its elements is."""

    __slots__ = ()

    def bitmap(self, values: NDArray[Any], rows: Rows, wanted: Wanted) -> Bitmap | None:
        """The rows that are wanted, or None where reading the column is the better way."""
        picture = self._picture(values, rows)
        if picture is None:
            return None
        found = _in_picture(picture, wanted)
        if found is None:
            return None
        changed = picture.changed()
        changed = changed[changed < len(rows)]
        tail = rows[picture.length :]
        flags = np.zeros((len(rows) + 63) // 64 * 64, np.bool_)
        flags[found[found < len(rows)]] = True
        flags[changed] = _rows_with(wanted, values, rows[changed])
        flags[picture.length : len(rows)] = _rows_with(wanted, values, tail)
        return np.packbits(flags, bitorder="little").view(np.uint64)

    def estimate(self, values: NDArray[Any], rows: Rows, wanted: Wanted) -> int | None:
        picture = self._picture(values, rows)
        return None if picture is None else _estimate(picture, wanted, len(rows))

    def prepare(self, values: NDArray[Any], rows: Rows) -> bool:
        """Makes a new picture if one is due; says whether it was."""
        if due := self._is_due(len(rows)):
            self._take(*self._elements(values, rows), len(rows))
        return due

    def _picture(self, values: NDArray[Any], rows: Rows) -> _Picture | None:
        if len(rows) < _SMALLEST_COLUMN:
            return None
        if (last := self._last(len(rows))) is not None:
            return last
        return self._take(*self._elements(values, rows), len(rows))

    def _elements(self, values: NDArray[Any], rows: Rows) -> tuple[NDArray[Any], NDArray[np.uint32]]:
        """All elements and their rows: those of the last picture as they stand there, sorted, then what is new."""
        old = self._source.picture
        lids = np.arange(len(rows), dtype=np.uint32)
        if old is None or old.changes is not self._changes or old.changes_from > self._changes_seen:
            return _elements_of(lids, values, rows)
        is_new = np.ones(max(old.length, len(rows)), np.bool_)
        is_new[: old.length] = False
        is_new[self._changes[old.changes_from : self._changes_seen]] = True
        is_new[len(rows) :] = True
        kept = ~is_new[old.lids]
        more_values, more_lids = _elements_of(lids[is_new[: len(rows)]], values, rows)
        return np.concatenate((old.values[kept], more_values)), np.concatenate((old.lids[kept], more_lids))


def _elements_of(lids: NDArray[np.uint32], values: NDArray[Any], rows: Rows) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The elements of some rows, sorted, and beside each its row."""
    places, lengths = places_of(rows[lids])
    return _sort_values(values[places], np.repeat(lids, lengths))


def _sort_values(values: NDArray[Any], lids: NDArray[np.uint32]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """Values in their order, equal ones in that of the rows. Integers of 32 bits are sorted in one number with their
    row, which is several times as fast as by `argsort`; two runs that are in order are merged."""
    if values.dtype not in (np.int32, np.uint32):
        order = np.argsort(values, kind="stable")
        return values[order], lids[order]
    flip = np.uint32(1 << 31 if values.dtype == np.int32 else 0)
    keys = (values.view(np.uint32) ^ flip).astype(np.uint64) << np.uint64(32) | lids
    keys.sort(kind="stable" if _is_nearly_sorted(keys) else None)
    return ((keys >> np.uint64(32)).astype(np.uint32) ^ flip).view(values.dtype), keys.astype(np.uint32)


def _is_nearly_sorted(keys: NDArray[np.uint64]) -> bool:
    """Tell by a sample whether these are few runs in order."""
    sample = keys[:: max(1, len(keys) // 1024)]
    return int(np.count_nonzero(sample[1:] < sample[:-1])) <= 2


def _rows_with(wanted: Wanted, values: NDArray[Any], rows: Rows) -> NDArray[np.bool_]:
    """Which rows have an element that is wanted."""
    bitmap = empty_bitmap(len(rows))
    wanted.fill_rows(values, np.ascontiguousarray(rows), bitmap)
    return np.unpackbits(bitmap.view(np.uint8), bitorder="little", count=len(rows)).view(np.bool_)


def _in_picture(picture: _Picture, wanted: Wanted) -> NDArray[np.uint32] | None:
    """The rows that were wanted when the picture was taken; None: too many for it to be of use."""
    starts, lengths = _spans(picture, wanted)
    if int(lengths.sum()) > len(picture.values) * _SELECTIVE_SHARE:
        return None
    return picture.lids[spread(starts, lengths)]


def _estimate(picture: _Picture, wanted: Wanted, length: int) -> int:
    found = int(_spans(picture, wanted)[1].sum())
    tail = length - min(picture.length, length)
    return min(length, int(found + found / max(1, picture.length) * tail))


def _spans(picture: _Picture, wanted: Wanted) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the wanted ones among the sorted values: starts, lengths (NaN is sorted last, beyond any range)."""
    lows, highs = wanted.ranges(picture.values.dtype)
    starts = np.searchsorted(picture.values, lows, "left")
    ends = np.searchsorted(picture.values, highs, "right")
    return starts, np.maximum(ends - starts, 0)
