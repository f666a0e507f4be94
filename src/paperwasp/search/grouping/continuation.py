"""Continuations: which page of a list of groups or hits is shown, as a text that clients give back.

A text holds positions, one behind the other; each is a row of integers: the path of the list, its tag, the offset of
the page, flags. An integer is written as its number of hexadecimal digits and these digits, most significant first,
each as a letter from A (0) to P (15); negative integers are interleaved with the others (0, -1, 1, -2, …).

Vespa: CompositeContinuation, OffsetContinuation, ResultId, IntegerEncoder, GroupingTransform in
com.yahoo.search.grouping.vespa
Differs: a text that is none is an error of the client, code 4; Vespa ends some with an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from paperwasp.errors import InvalidQuery

Path = tuple[int, ...]
"""Where a list or a group is: the number of the request, 0 for its root group, then the place of each list within its
group and of each group within its list."""

UNSTABLE: Final = 1
"""The flag of a position beneath which all lists begin again with their first page."""
_INTEGER_BITS: Final = 32
_LONGEST_PATH: Final = 100
_SHOWN_CHARACTERS: Final = 100
_KEPT_INTEGERS: Final = 1024
"""The number of integers whose texts are kept: most are places in short lists."""


class PagePosition(Struct, frozen=True):
    """The offset of the page of one list."""

    path: Path
    tag: int
    """The tag of the list's level or aggregation in its request."""
    offset: int
    flags: int = 0

    @property
    def is_unstable(self) -> bool:
        return bool(self.flags & UNSTABLE)


def encode(positions: Iterable[PagePosition]) -> str:
    """The text of a continuation."""
    integers: list[int] = []
    for position in positions:
        integers += (len(position.path), *position.path, position.tag, position.offset, position.flags)
    return "".join([_encode_integer(integer) for integer in integers])


_LETTERS: Final = str.maketrans("0123456789abcdef", "ABCDEFGHIJKLMNOP")


@lru_cache(maxsize=_KEPT_INTEGERS)
def _encode_integer(integer: int) -> str:
    """An integer of 32 bits with a sign."""
    interleaved = 2 * integer if integer >= 0 else -2 * integer - 1
    digits = f"{interleaved:x}" if interleaved else ""
    return f"{len(digits):x}{digits}".translate(_LETTERS)


def decode(text: str) -> tuple[PagePosition, ...]:
    """The positions of a text. Errors: InvalidQuery."""
    reader = _Reader(text)
    positions = []
    while reader.place < len(text):
        length = reader.next()
        if not 0 <= length <= _LONGEST_PATH:
            raise reader.error("no path is that long", 0)
        path = tuple([reader.next() for _ in range(length)])
        positions.append(PagePosition(path, reader.next(), reader.next(), reader.next()))
    return tuple(positions)


class _Reader:
    """Reads integers from a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def next(self) -> int:
        """The next integer. Errors: InvalidQuery."""
        value = 0
        for _ in range(self._digit()):
            value = (value << 4) | self._digit()
        if value >> _INTEGER_BITS:
            raise self.error("a number is larger than 32 bits", self.place)
        return (value >> 1) ^ -(value & 1)

    def _digit(self) -> int:
        if self.place >= len(self._text):
            raise self.error("it ends within a number", self.place)
        digit = ord(self._text[self.place]) - ord("A")
        if not 0 <= digit < 16:
            raise self.error(f"expected a letter from A to P but found '{self._text[self.place]}'", self.place)
        self.place += 1
        return digit

    def error(self, problem: str, place: int) -> InvalidQuery:
        shown = self._text[:_SHOWN_CHARACTERS]
        return InvalidQuery(f"'{shown}' is not a continuation: {problem} (character {place + 1})")


class Pages(Struct, frozen=True):
    """The pages that one request shows: from its continuations, those of the text that was given first first."""

    by_path: Mapping[Path, int] = field(default_factory=dict)
    """List → offset of its page."""
    by_tag: Mapping[int, int] = field(default_factory=dict)
    """Tag → the largest offset among its lists: a content node gives this many more groups or hits."""
    unstable: frozenset[Path] = frozenset()
    """Lists beneath which all others show their first pages."""

    @classmethod
    def of(cls, number: int, positions: Iterable[PagePosition]) -> Pages:
        """The pages of the request with this number; positions of others are not for it."""
        by_path: dict[Path, int] = {}
        by_tag: dict[int, int] = {}
        unstable: set[Path] = set()
        for position in positions:
            if position.path[:1] != (number,):
                continue
            (unstable.add if position.is_unstable else unstable.discard)(position.path)
            offset = max(0, position.offset)
            by_path[position.path] = offset
            by_tag[position.tag] = max(by_tag.get(position.tag, 0), offset)
        return cls(by_path, by_tag, frozenset(unstable))
