"""Single strings by lid: a dictionary of the distinct ones and an array of their codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.bounds import Bounds
from paperwasp.attribute.column import Arrays, Bitmap, Column, ColumnView, Frozen, Lids, Number, as_list, empty_bitmap
from paperwasp.attribute.dictionary import StringDictionary, freeze_strings
from paperwasp.attribute.growable import GrowableArray
from paperwasp.attribute.numeric import estimate_rows
from paperwasp.attribute.posting import Posting, PostingSource
from paperwasp.core import _core
from paperwasp.document.operations import Value


class StringView(ColumnView):
    """`values` are the codes; `dictionary` says what they stand for."""

    __slots__ = ("_posting", "dictionary", "limit", "values")

    is_string = True

    def __init__(self, codes: NDArray[np.uint32], dictionary: StringDictionary, posting: Posting | None) -> None:
        self.values = codes
        self.limit = len(codes)
        self.dictionary = dictionary
        self._posting = posting

    def range_bitmap(
        self,
        low: Number | None,
        high: Number | None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        limit: int | None = None,
    ) -> Bitmap:
        return empty_bitmap(self.limit if limit is None else limit)

    def equal_bitmap(self, values: Value | Sequence[Value], limit: int | None = None) -> Bitmap:
        limit = self.limit if limit is None else limit
        codes = codes_equal_to(self.dictionary, values)
        if not codes:
            return empty_bitmap(limit)
        if len(codes) == 1:
            return self._one_code(codes[0], limit)
        bitmap = np.empty((limit + 63) // 64, np.uint64)
        _core.member_bitmap(self.values[:limit], table_of(codes), bitmap)
        return bitmap

    def estimate_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> int:
        return 0

    def estimate_equal(self, values: Value | Sequence[Value]) -> int:
        codes = codes_equal_to(self.dictionary, values)
        return min(self.limit, sum(self._estimate(Bounds(code, code)) for code in codes))

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def sort_keys(self, lids: Lids) -> NDArray[Any]:
        keys: NDArray[Any] = self.dictionary.ranks()[self.values[lids]]
        return keys

    @property
    def unset_key(self) -> int:
        return 0

    def gather(self, lids: Lids) -> list[Value | None]:
        return [text or None for text in self.dictionary.decode(self.values[lids].tolist())]

    def _one_code(self, code: int, limit: int) -> Bitmap:
        codes = self.values[:limit]
        if self._posting is not None and (found := self._posting.bitmap(codes, Bounds(code, code))) is not None:
            return found
        bitmap = np.empty((limit + 63) // 64, np.uint64)
        _core.range_bitmap(codes, code, code, bitmap)
        return bitmap

    def _estimate(self, bounds: Bounds) -> int:
        if self._posting is not None and (count := self._posting.estimate(self.values, bounds)) is not None:
            return count
        return estimate_rows(self.values, self.limit, bounds)


class StringColumn(Column):
    """The writer's side of single strings. The empty string is the same as unset."""

    def __init__(self, *, cased: bool = False, fast_search: bool = False) -> None:
        self.dictionary = StringDictionary(cased=cased)
        self._codes = GrowableArray(np.uint32)
        self._posting = PostingSource() if fast_search else None

    @property
    def length(self) -> int:
        return self._codes.length

    def append(self, values: Sequence[Value | None]) -> None:
        self._codes.extend(self.dictionary.encode([value or "" for value in values]))

    def pad(self, length: int) -> None:
        self._codes.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._codes.array[lids] = self.dictionary.encode([value or "" for value in values])

    def set(self, lid: int, value: Value | None) -> None:
        self._codes.array[lid] = self.dictionary.encode_one(value or "")
        if self._posting is not None:
            self._posting.changed(lid)

    def snapshot(self) -> StringView:
        posting = self._posting.snapshot() if self._posting is not None else None
        return StringView(self._codes.view(), self.dictionary, posting)

    def freeze(self) -> Frozen:
        codes, strings = self._codes.view().copy(), self.dictionary.strings()

        def arrays() -> Arrays:
            kept, frozen = used_codes(codes, strings)
            return {"codes": kept, **frozen}

        return arrays

    def load(self, arrays: Arrays) -> None:
        self.dictionary.load(arrays)
        self._codes = GrowableArray.of(checked_codes(arrays["codes"], self.dictionary))

    def size_bytes(self) -> int:
        return self._codes.array.nbytes + self.dictionary.size_bytes


def codes_equal_to(dictionary: StringDictionary, values: Value | Sequence[Value]) -> list[int]:
    """The codes of all strings equal to one of the values. A number stands for its text."""
    texts = (value if isinstance(value, str) else str(value) for value in as_list(values))
    return sorted({code for text in texts for code in dictionary.codes_equal_to(text)})


def table_of(codes: Sequence[int]) -> NDArray[np.uint8]:
    """One byte per code up to the highest: 1 for those given."""
    table = np.zeros(max(codes) + 1, np.uint8)
    table[codes] = 1
    return table


def used_codes(codes: NDArray[np.uint32], strings: list[str]) -> tuple[NDArray[np.uint32], Arrays]:
    """The codes numbered anew, and the saved dictionary, without strings that no row has any more."""
    used = np.bincount(codes, minlength=len(strings)) > 0
    used[0] = True
    numbers = (np.cumsum(used) - 1).astype(np.uint32)
    return numbers[codes], freeze_strings([strings[code] for code in np.flatnonzero(used).tolist()])


def checked_codes(codes: NDArray[Any], dictionary: StringDictionary) -> NDArray[np.uint32]:
    """Raises ValueError unless all are codes of the dictionary."""
    if codes.dtype != np.uint32 or (len(codes) and int(codes.max()) >= len(dictionary)):
        raise ValueError("codes that the dictionary does not have")
    return codes
