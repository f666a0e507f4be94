"""Single strings by lid: a dictionary of the distinct ones and an array of their codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.storage.attributes.column import (
    NO_ROWS,
    NO_WEIGHTS,
    Arrays,
    Bitmap,
    Column,
    ColumnView,
    Elements,
    Frozen,
    Lids,
    Number,
    as_list,
    products_of,
    single_elements,
    spare_of,
)
from paperwasp.storage.attributes.dictionary import StringDictionary, freeze_strings
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.numeric import single_bitmap, single_estimate
from paperwasp.storage.attributes.patterns import TextPattern, no_clock
from paperwasp.storage.attributes.posting import Posting, PostingSource
from paperwasp.storage.attributes.wanted import NOTHING, Tokens, Wanted, wanted_codes


class StringView(ColumnView):
    """`values` are the codes; `dictionary` says what they stand for."""

    __slots__ = ("_posting", "dictionary", "limit", "values")

    is_string = True

    def __init__(self, codes: NDArray[np.uint32], dictionary: StringDictionary, posting: Posting | None) -> None:
        self.values = codes
        self.limit = len(codes)
        self.dictionary = dictionary
        self._posting = posting

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        return NOTHING

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        return strings_wanted(self.dictionary, values)

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        return strings_like(self.dictionary, pattern, check_time)

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        return single_bitmap(self.values, wanted, self._posting, self.limit if limit is None else limit)

    def estimate(self, wanted: Wanted) -> int:
        return single_estimate(self.values, wanted, self._posting)

    def prepare(self) -> bool:
        return self._posting is not None and self._posting.prepare(self.values)

    def elements(self, lids: Lids, wanted: Wanted) -> Elements:
        return single_elements(self.values[lids], wanted)

    def tokens(self, tokens: Sequence[tuple[Value, int]]) -> Tokens:
        return string_tokens(self.dictionary, tokens)

    def products(self, lids: Lids, tokens: Tokens) -> NDArray[np.float64]:
        return products_of(self.values, NO_ROWS, NO_WEIGHTS, lids, tokens)

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def gather(self, lids: Lids) -> list[Value | None]:
        return [text or None for text in self.dictionary.decode(self.values[lids].tolist())]


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
            self._posting.note_change(lid)

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

    def spare_strings(self) -> int:
        return spare_of(len(self.dictionary), self.length)


def strings_wanted(dictionary: StringDictionary, values: Value | Sequence[Value]) -> Wanted:
    """All strings equal to one of the values. A number stands for its text."""
    texts = (value if isinstance(value, str) else str(value) for value in as_list(values))
    codes = {code for text in texts for code in dictionary.codes_equal_to(text)}
    return wanted_codes(np.fromiter(codes, np.uint32, len(codes)))


def string_tokens(dictionary: StringDictionary, tokens: Sequence[tuple[Value, int]]) -> Tokens:
    """Weighted tokens by the codes of all strings equal to them."""
    weights: dict[int, int] = {}
    for value, weight in tokens:
        for code in dictionary.codes_equal_to(value if isinstance(value, str) else str(value)):
            weights[code] = weights.get(code, 0) + weight
    return Tokens(weights, np.uint32)


def strings_like(dictionary: StringDictionary, pattern: TextPattern, check_time: Callable[[], None]) -> Wanted:
    """All strings that fit the pattern, but not the empty one: that is no value."""
    table = pattern.fitting_in_time(dictionary.scan_text(), check_time)
    table[:1] = 0
    return wanted_codes(np.flatnonzero(table).astype(np.uint32))


def used_codes(codes: NDArray[np.uint32], strings: list[str]) -> tuple[NDArray[np.uint32], Arrays]:
    """Renumbers codes, and the saved dictionary, without strings that no row has any more."""
    used = np.bincount(codes, minlength=len(strings)) > 0
    used[0] = True
    numbers = (np.cumsum(used) - 1).astype(np.uint32)
    return numbers[codes], freeze_strings([strings[code] for code in np.flatnonzero(used).tolist()])


def checked_codes(codes: NDArray[Any], dictionary: StringDictionary) -> NDArray[np.uint32]:
    """Raises ValueError unless all are codes of the dictionary."""
    if codes.dtype != np.uint32 or (len(codes) and int(codes.max()) >= len(dictionary)):
        raise ValueError("codes that the dictionary does not have")
    return codes
