"""All strings of a dictionary as one text, for what looks through them: made when a pattern is first searched for.

The text begins with `SEPARATOR`, and each string is followed by one. Its middle byte is in no UTF-8, so that no part of
a pattern matches it. Unless the column is cased, the strings are in lower case.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import check_time
from paperwasp.storage.attributes.growable import GrowableArray

SEPARATOR: Final = b"\n\xff\n"
BETWEEN_CLOCKS: Final = 10_000
"""Strings that are added before one looks at the clock."""


class ScannedText(NamedTuple):
    """The strings of codes 0..len(ends) - 1."""

    content: NDArray[np.uint8]
    ends: NDArray[np.uint64]
    """Where each string ends in `content`; the next begins a separator later."""
    has_lines: NDArray[np.bool_]
    """Whether a string has several lines."""
    cased: bool

    @property
    def starts(self) -> NDArray[np.int64]:
        starts = np.full(len(self.ends), len(SEPARATOR), np.int64)
        starts[1:] += self.ends[:-1].astype(np.int64)
        return starts

    def part(self, first: int, end: int) -> ScannedText:
        """The strings of codes `first`..`end` - 1, numbered from 0."""
        start = int(self.ends[first - 1]) if first else 0
        ends = self.ends[first:end] - np.uint64(start)
        content = self.content[start : start + int(ends[-1]) + len(SEPARATOR)]
        return ScannedText(content, ends, self.has_lines[first:end], self.cased)

    def one(self, code: int) -> bytes:
        """One string."""
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
