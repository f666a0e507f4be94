"""The distinct strings of a column, by code. Codes are dense, rise in order of first appearance, and never change.

Code 0 is the empty string, which is also what an unset row has. The writer adds; readers may look up at any time,
since they only ask for codes that were there when their view was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.core.object_memory import outside_arenas
from paperwasp.storage.attributes.growable import GrowableArray

_STRING_BYTES: Final = 200
"""Of memory for each string beside its text: the string, its place, its entry."""


class StringDictionary:
    """Strings to codes and back; and, unless `cased`, the codes that are equal without case."""

    __slots__ = (
        "_cased",
        "_codes",
        "_for_plans",
        "_strings",
        "_text",
        "_variants",
        "_words",
        "keys_begun",
        "orders",
        "size_bytes",
    )

    def __init__(self, *, cased: bool = False) -> None:
        self._cased = cased
        self._strings: list[str] = [""]
        self._codes: dict[str, int] = {"": 0}
        self._variants: dict[str, list[int]] = {}
        """Lower-cased string → the codes of its forms that are not lower case. Most strings need no entry."""
        self._text = TextKeeper(cased=cased)
        self._words = WordKeeper()
        self._for_plans: _core.ColumnStrings | None = None
        self.orders: dict[Any, Any] = {}
        """Collation → the order of the strings in it: kept here by `attributes.sort_order`."""
        self.keys_begun: dict[Any, Any] = {}
        """Collation → the keys of the first strings, for an order that there was no time to finish. One at most."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._strings)

    @property
    def json_bytes(self) -> int:
        """About the length of all strings in an array of JSON."""
        return self.size_bytes - (_STRING_BYTES - 3) * (len(self) - 1)

    def __getitem__(self, code: int) -> str:
        return self._strings[code]

    def encode(self, values: Sequence[str]) -> NDArray[np.uint32]:
        """The codes of these strings; what is new is added."""
        if len(values) < limits.STRINGS_OUTSIDE_ARENAS:
            return self._encode(values)
        with outside_arenas():
            return self._encode(values)

    def _encode(self, values: Sequence[str]) -> NDArray[np.uint32]:
        codes = self._codes
        try:
            return np.array([codes[value] for value in values], np.uint32)
        except KeyError:
            return np.array([codes[value] if value in codes else self._add(value) for value in values], np.uint32)

    def encode_one(self, value: str) -> int:
        code = self._codes.get(value)
        return self._add(value) if code is None else code

    def find(self, value: str) -> int | None:
        """The code of just this string; None where it is not there."""
        return self._codes.get(value)

    def codes_equal_to(self, value: str) -> list[int]:
        """The codes of strings equal to `value`: as they are when cased, else without case."""
        if self._cased:
            code = self._codes.get(value)
            return [] if code is None else [code]
        folded = fold(value)
        code = self._codes.get(folded)
        return ([] if code is None else [code]) + self._variants.get(folded, [])

    def decode(self, codes: Iterable[int]) -> list[str]:
        strings = self._strings
        return [strings[code] for code in codes]

    def for_plans(self) -> _core.ColumnStrings:
        """All strings by code as compiled plans read them, which take eight bytes each from its first use on."""
        if self._for_plans is None:
            self._for_plans = _core.ColumnStrings(self._strings)
        self._for_plans.extend()
        return self._for_plans

    def scan_text(self) -> ScannedText:
        """All strings as one text, which takes memory from its first use on."""
        return self._text.text(self._strings)

    def words(self) -> Words:
        """64 bits of each string, by code (`attributes.dictionary`), which take memory from their first use on."""
        return self._words.words(self._strings)

    def strings(self) -> list[str]:
        """All strings by code, as they are now."""
        return self._strings[:]

    def of_codes(self, codes: NDArray[np.uint32]) -> StringDictionary:
        """Another one with the strings of these codes, of which the first is 0, in their order."""
        with outside_arenas():
            made = StringDictionary(cased=self._cased)
            for value in self.decode(codes[1:].tolist()):
                made._add(value)
        return made

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        text = arrays["strings"].tobytes()
        start = 0
        self.__init__(cased=self._cased)  # type: ignore[misc]
        for end in arrays["string_ends"].tolist():
            if end > start:
                self._add(text[start:end].decode("utf-8", "surrogatepass"))
            start = end

    def _add(self, value: str) -> int:
        code = len(self._strings)
        self._strings.append(value)
        if not self._cased:
            folded = fold(value)
            if folded != value:
                self._variants.setdefault(folded, []).append(code)
        # Last, since a reader that finds the code must find the string.
        self._codes[value] = code
        self.size_bytes += _STRING_BYTES + len(value)
        return code


def freeze_strings(strings: Sequence[str]) -> Mapping[str, NDArray[Any]]:
    """The arrays in which a dictionary is saved, which `load` reads."""
    encoded = [value.encode("utf-8", "surrogatepass") for value in strings]
    ends = np.cumsum([len(value) for value in encoded], dtype=np.uint64)
    return {"strings": np.frombuffer(b"".join(encoded), np.uint8), "string_ends": ends}


# Strings as one text

SEPARATOR: Final = b"\n\xff\n"
"""Begins a text, and ends each string. Its middle byte is in no UTF-8, so that no part of a pattern matches it."""
BETWEEN_CLOCKS: Final = 10_000
"""Strings that are added before one looks at the clock."""


class ScannedText(NamedTuple):
    """The strings of codes 0..len(ends) - 1 as one text, in which patterns are searched.

    Unless the column is cased, the strings are in lower case.
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    """The end of each string in `content`; the next begins a separator later."""
    has_lines: NDArray[np.bool_]
    """True for a string of several lines."""
    cased: bool

    @property
    def starts(self) -> NDArray[np.int64]:
        starts = np.full(len(self.ends), len(SEPARATOR), np.int64)
        starts[1:] += self.ends[:-1].astype(np.int64)
        return starts

    def part(self, first: int, end: int) -> ScannedText:
        """Return the strings of codes `first`..`end` - 1, numbered from 0."""
        start = int(self.ends[first - 1]) if first else 0
        ends = self.ends[first:end] - np.uint64(start)
        content = self.content[start : start + int(ends[-1]) + len(SEPARATOR)]
        return ScannedText(content, ends, self.has_lines[first:end], self.cased)

    def one(self, code: int) -> bytes:
        """Return one string."""
        start = int(self.ends[code - 1]) if code else 0
        return self.content[start + len(SEPARATOR) : int(self.ends[code])].tobytes()


class TextKeeper:
    """The text of a growing dictionary. Any thread may ask for it; one at a time makes what is new."""

    def __init__(self, *, cased: bool) -> None:
        self._cased = cased
        self._content = GrowableArray(np.uint8)
        self._content.extend(np.frombuffer(SEPARATOR, np.uint8))
        self._ends = GrowableArray(np.uint64)
        self._has_lines = GrowableArray(np.bool_)
        self._lock = Lock()

    def text(self, strings: Sequence[str]) -> ScannedText:
        """The text of these strings, the first of which are those of the last call. Errors: OutOfTime; what was made
        until then is there for the next call."""
        while True:
            with self._lock:
                if len(strings) <= self._ends.length:
                    return ScannedText(self._content.view(), self._ends.view(), self._has_lines.view(), self._cased)
                self._add(strings[self._ends.length : self._ends.length + BETWEEN_CLOCKS])
            check_time()

    def _add(self, strings: Sequence[str]) -> None:
        texts = [(text if self._cased else fold(text)).encode("utf-8", "surrogatepass") for text in strings]
        sizes = np.fromiter(map(len, texts), np.uint64, len(texts)) + np.uint64(len(SEPARATOR))
        ends = self._content.length + np.cumsum(sizes) - np.uint64(len(SEPARATOR))
        self._content.extend(np.frombuffer(SEPARATOR.join([*texts, b""]), np.uint8))
        self._has_lines.extend(np.fromiter((b"\n" in text for text in texts), np.bool_, len(texts)))
        self._ends.extend(ends.astype(np.uint64))


def fold(value: str) -> str:
    """Folds case: two strings that differ in case alone give the same."""
    return value.lower()


# 64 bits of each string of a dictionary, by which distinct strings are counted: made when they are first counted.


Words = NDArray[np.uint64]


class WordKeeper:
    """The words of a growing dictionary. Any thread may ask for them; one at a time makes what is new."""

    __slots__ = ("_lock", "_words")

    def __init__(self) -> None:
        self._words = GrowableArray(np.uint64)
        self._lock = Lock()

    def words(self, strings: Sequence[str]) -> Words:
        """The word of each of these strings, the first of which are those of the last call. Errors: OutOfTime; what was
        made until then is there for the next call."""
        while True:
            with self._lock:
                if len(strings) <= self._words.length:
                    return self._words.view()
                new = strings[self._words.length : self._words.length + BETWEEN_CLOCKS]
                self._words.extend(folded_words([text.encode("utf-8", "surrogatepass") for text in new]))
            check_time()


def folded_words(texts: Sequence[bytes]) -> Words:
    """The exclusive or of the words of 8 bytes of each text, the lowest byte first, the last filled with zeros.

    Vespa: the `hash` of StringResultNode and RawResultNode.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    whole = b"".join([text + b"\0" * (-len(text) % 8) for text in texts])
    ends = np.concatenate([np.zeros(1, np.uint64), np.bitwise_xor.accumulate(np.frombuffer(whole, "<u8"))])
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum((lengths + 7) // 8)])
    found: Words = (ends[bounds[1:]] ^ ends[bounds[:-1]]).astype(np.uint64)
    return found
