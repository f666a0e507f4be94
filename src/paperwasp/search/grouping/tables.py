"""Tables of the values that codes stand for, and how functions of codes are computed once for each distinct one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import check_time
from paperwasp.errors import InternalError
from paperwasp.search.grouping.memory import TextMemory
from paperwasp.search.grouping.values import Table
from paperwasp.storage.attributes.dictionary import StringDictionary, folded_words

Codes = NDArray[np.uint32]
Places = NDArray[np.intp]

BETWEEN_CLOCKS: Final = 4096
"""Distinct values that a function is computed of between two looks at the clock."""
_FEW_CODES: Final = 8
"""Codes are few beside a dictionary that has this many times as many strings."""
_SPARSE: Final = 4
"""Where codes go beyond _SPARSE times as many as there are, they are sorted rather than counted."""
_FEW: Final = 65_536
"""Codes below this are counted in any case."""


class StringTable:
    """The strings of a column, by their codes in its dictionary."""

    __slots__ = ("_dictionary",)

    def __init__(self, dictionary: StringDictionary) -> None:
        self._dictionary = dictionary

    def values_of(self, codes: Codes) -> Sequence[str]:
        return self._dictionary.decode(codes.tolist())

    def words_of(self, codes: Codes) -> NDArray[np.uint64]:
        """64 bits of each string (`attributes.dictionary`). Those of the whole dictionary are made and kept where the
        codes are many beside it. Errors: OutOfTime."""
        if len(codes) * _FEW_CODES >= len(self._dictionary):
            return self._dictionary.words()[codes]
        found, places = distinct(codes)
        return folded_words(bytes_of(self, found))[places]


class InternedTable:
    """Values that expressions make: each gets a code when it is first made, and keeps it.

    `memory`: what counts the bytes of values that are texts or raw; None: nothing does.
    """

    __slots__ = ("_codes", "_memory", "_values")

    def __init__(self, values: Sequence[Hashable] = (), memory: TextMemory | None = None) -> None:
        self._memory = memory
        self._values: list[Any] = list(values)
        self._codes: dict[Any, int] = {value: code for code, value in enumerate(self._values)}

    def codes_of(self, values: Sequence[Hashable]) -> Codes:
        """The codes of these values; what is new is added. Errors: InvalidQuery where that is too much text."""
        codes, known = self._codes, self._values
        first = len(known)
        found = np.empty(len(values), np.uint32)
        for number, value in enumerate(values):
            code = codes.get(value)
            if code is None:
                code = codes[value] = len(known)
                known.append(value)
            found[number] = code
        if self._memory is not None:
            self._memory.take(sum(map(len, known[first:])))
        return found

    def values_of(self, codes: Codes) -> Sequence[Any]:
        values = self._values
        return [values[code] for code in codes.tolist()]


class RawTable(InternedTable):
    """Raw values that expressions make."""

    __slots__ = ()

    def bytes_of(self, codes: Codes) -> list[bytes]:
        """The bytes of each value."""
        return list(InternedTable.values_of(self, codes))


class TextTable(RawTable):
    """Strings that expressions make, as UTF-8. What is not UTF-8 is shown with U+FFFD; its bytes say what is equal."""

    __slots__ = ()

    def values_of(self, codes: Codes) -> Sequence[str]:
        return [decoded(text) for text in self.bytes_of(codes)]


def decoded(text: bytes) -> str:
    """The string that bytes are; where they are not UTF-8, with U+FFFD."""
    try:
        return text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace")


def encoded(text: str) -> bytes:
    """The bytes of a string, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def bytes_of(table: Table | None, codes: Codes) -> list[bytes]:
    """The bytes of strings or raw values."""
    if isinstance(table, RawTable):
        return table.bytes_of(codes)
    values = values_of(table, codes)
    return [encoded(value) if isinstance(value, str) else value for value in values]


def values_of(table: Table | None, codes: Codes) -> Sequence[Any]:
    """The values of codes, of whose kind there must be a table."""
    if table is None:
        raise InternalError("codes without a table")
    return table.values_of(codes)


def distinct(codes: NDArray[Any]) -> tuple[NDArray[Any], Places]:
    """The distinct codes or numbers, rising, and the place of each given one among them."""
    if not len(codes):
        return codes, np.zeros(0, np.intp)
    least = codes.min() if codes.dtype.kind in "ui" else codes[0]
    if codes.dtype.kind not in "ui" or (width := int(codes.max()) - int(least) + 1) > max(_SPARSE * len(codes), _FEW):
        found, places = np.unique(codes, return_inverse=True)
        return found, places.reshape(-1)
    numbers = (codes - least).astype(np.intp, copy=False)
    is_there = np.zeros(width, np.bool_)
    is_there[numbers] = True
    places = (np.cumsum(is_there) - 1)[numbers]
    return (np.flatnonzero(is_there).astype(codes.dtype) + least).astype(codes.dtype, copy=False), places


def distinct_rows(columns: Sequence[NDArray[Any]]) -> tuple[Places, Places]:
    """The distinct rows of columns of one length: where each stands first, and the place of each given row.
    Errors: OutOfTime."""
    places = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        check_time()
        found, inner = distinct(column)
        _, places = distinct(places * max(1, len(found)) + inner)
    count = int(places.max()) + 1 if len(places) else 0
    first = np.zeros(count, np.intp)
    first[places[::-1]] = np.arange(len(places) - 1, -1, -1)
    return first, places


def in_pieces(values: Sequence[Any]) -> Iterator[Any]:
    """These values; after every BETWEEN_CLOCKS of them the clock is asked. Errors: OutOfTime."""
    for start in range(0, len(values), BETWEEN_CLOCKS):
        check_time()
        yield from values[start : start + BETWEEN_CLOCKS]


def mapped(function: Callable[[Any], Hashable], values: Sequence[Any], table: InternedTable) -> Codes:
    """The codes in `table` of what a function makes of values. Errors: OutOfTime."""
    return table.codes_of([function(value) for value in in_pieces(values)])
