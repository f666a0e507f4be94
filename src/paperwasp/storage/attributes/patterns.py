"""Patterns that strings of a column fit: beginnings, ends, parts, regular expressions, misspellings.

A pattern looks once at each distinct string (`attributes.dictionary`), however many rows have it. Strings are compared
without case unless the column is cased: both the strings and the pattern are in lower case then.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains and #matches
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, Literal

import numpy as np
import re2
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.storage.attributes.dictionary import SEPARATOR, ScannedText, fold

Table = NDArray[np.uint8]
"""A byte for each code: 1 where the string fits."""


Place = Literal["prefix", "suffix", "substring"]


def no_clock() -> None:
    """There is always time."""


class TextPattern:
    """A pattern that strings are matched against."""

    @abstractmethod
    def fitting(self, text: ScannedText) -> Table:
        """Which strings fit: a table with 1 at the numbers of those that do."""

    def fitting_in_time(self, text: ScannedText, check_time: Callable[[], None]) -> Table:
        """The same, piece by piece: before each, `check_time` may raise. The pieces grow while they take no time, since
        how long a string takes differs a thousandfold from pattern to pattern."""
        table = np.zeros(len(text.ends), np.uint8)
        first, size = 0, _LEAST_BYTES
        while first < len(table):
            check_time()
            start = int(text.ends[first - 1]) if first else 0
            end = max(first + 1, int(np.searchsorted(text.ends, np.uint64(start + size), "right")))
            started = perf_counter()
            table[first:end] = self.fitting(text.part(first, end))
            seconds = perf_counter() - started
            first, size = end, size * 2 if seconds < _PIECE_SECONDS else max(size // 2, _LEAST_BYTES)
        return table


_LEAST_BYTES: Final = 1024
_PIECE_SECONDS: Final = 0.005


class PartPattern(Struct, TextPattern, frozen=True):
    """Strings that begin with, end with, or have in them a text."""

    place: Place
    part: str

    def fitting(self, text: ScannedText) -> Table:
        table = np.zeros(len(text.ends), np.uint8)
        part = self.part if text.cased else fold(self.part)
        kernel = {"prefix": _core.texts_beginning, "suffix": _core.texts_ending, "substring": _core.texts_having}
        kernel[self.place](text.content, text.ends, encode(part), table)
        return table


class OrderPattern(Struct, TextPattern, frozen=True):
    """Strings between two bounds in the order of their characters; None is open.

    Vespa: string_range_search_helper.cpp
    """

    low: str | None
    high: str | None
    low_inclusive: bool
    high_inclusive: bool

    def fitting(self, text: ScannedText) -> Table:
        fits = np.ones(len(text.ends), np.bool_)
        if self.low is not None:
            fits &= _order(text, self.low) > (-1 if self.low_inclusive else 0)
        if self.high is not None:
            fits &= _order(text, self.high) < (1 if self.high_inclusive else 0)
        return fits.astype(np.uint8)


def _order(text: ScannedText, bound: str) -> NDArray[np.int8]:
    """Of each string -1, 0 or 1: before, at or behind the bound. UTF-8 has the order of characters.

    A step a byte of the bound, over the strings that are as the bound up to there.
    """
    wanted = encode(bound if text.cased else fold(bound))
    ends = text.ends.astype(np.int64)
    order = np.zeros(len(ends), np.int8)
    same, at = np.arange(len(ends)), text.starts
    for byte in wanted:
        is_over = at >= ends[same]
        order[same[is_over]] = -1
        same, at = same[~is_over], at[~is_over]
        found = text.content[at]
        order[same[found < byte]] = -1
        order[same[found > byte]] = 1
        same, at = same[found == byte], at[found == byte] + 1
        if not len(same):
            break
    order[same] = at < ends[same]
    return order


class FuzzyPattern(Struct, TextPattern, frozen=True):
    """Strings at most `max_edits` insertions, deletions and substitutions of characters away from a word.

    `prefix`: strings some beginning of which is. The first `prefix_length` characters must be the same.
    """

    word: str
    max_edits: int
    prefix_length: int
    prefix: bool

    def fitting(self, text: ScannedText) -> Table:
        word = self.word if text.cased else fold(self.word)
        if len(word) > limits.FUZZY_CHARACTERS:
            raise InvalidQuery(f"A fuzzy term has at most {limits.FUZZY_CHARACTERS} characters, not {len(word)}")
        table = np.zeros(len(text.ends), np.uint8)
        characters = np.array([ord(character) for character in word], np.uint32)
        most = min(max(self.max_edits, 0), _MOST_EDITS)
        same = min(max(self.prefix_length, 0), _MOST_EDITS)
        _core.texts_near(text.content, text.ends, characters, most, same, self.prefix, table)
        return table


_MOST_EDITS: Final = 2**30
"""More than any string has characters."""


class RegexPattern(Struct, TextPattern, frozen=True):
    """Strings in which an expression of RE2's syntax is found.

    All strings are looked through as one text, between them a byte that nothing in an expression matches, so that RE2
    finds those that fit without being called for those that do not. `^` and `$` mean the ends of lines there, and a
    separator has a line's end on either side: what touches one, or a string of several lines, is looked at by itself.
    """

    expression: str

    def fitting(self, text: ScannedText) -> Table:
        one = compiled(self.expression, text.cased)
        table = np.zeros(len(text.ends), np.uint8)
        if _ALONE.search(self.expression):
            for code in range(len(text.ends)):
                table[code] = one.search(text.one(code)) is not None
            return table
        every = compiled(f"(?m)(?:{self.expression})[^\\n]*", text.cased)
        spans = np.array([match.span() for match in every.finditer(text.content)], np.int64).reshape(-1, 2)
        codes = np.searchsorted(text.ends, np.maximum(spans[:, 0], len(SEPARATOR)), "left")
        codes = np.minimum(codes, len(text.ends) - 1)
        table[codes] = 1
        inside = (spans[:, 0] >= text.starts[codes]) & (spans[:, 1] <= text.ends[codes].astype(np.int64))
        doubtful = np.union1d(codes[~inside], np.minimum(codes[~inside] + 1, len(text.ends) - 1))
        for code in np.union1d(doubtful, codes[text.has_lines[codes]]).tolist():
            table[code] = one.search(text.one(code)) is not None
        return table


_ALONE: Final = compile_later(r"\\[AzCQ]|\(\?[a-zA-Z]*-[a-zA-Z]*m")
"""Parts of an expression that may mean something else within a longer text."""


def compiled(expression: str, cased: bool) -> Any:
    """The expression, ready to search bytes. Errors: InvalidQuery."""
    if len(expression) > limits.QUERY_PATTERN_CHARACTERS:
        raise InvalidQuery(
            f"A regular expression has at most {limits.QUERY_PATTERN_CHARACTERS} characters, not {len(expression)}"
        )
    options = re2.Options()
    options.max_mem = limits.QUERY_PATTERN_BYTES
    options.log_errors = False
    options.never_capture = True  # what groups capture is never used, and thousands of them cost 0.4 ms a byte
    options.case_sensitive = cased
    try:
        return re2.compile(encode(expression), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise InvalidQuery(f"{expression!r} is no regular expression: {reason}") from None


def encode(text: str) -> bytes:
    """Encodes a text as the text of a dictionary is kept."""
    return text.encode("utf-8", "surrogatepass")
