"""The plain twin of the kernels in core/index/positions.cpp: what they must answer, written to be read. A row is a
list."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from paperwasp.storage.index.tokens import ELEMENT_GAP

Row = Sequence[int]
"""Positions in one document, rising."""


def merge_positions(lists: Sequence[Row]) -> list[int]:
    """All that stands in any of the lists, each position once."""
    return sorted({position for row in lists for position in row})


def follow(lists: Sequence[Row]) -> list[int]:
    """Where the lists follow each other: positions p such that list i has p + i."""
    return [start for start in lists[0] if all(start + i in row for i, row in enumerate(lists))]


class Near(Struct, frozen=True):
    """The conditions of nearness. `ends` are those of the document's elements, each of which begins ELEMENT_GAP
    positions after the one before; `gap` is how far apart elements count as being; below zero: no window reaches into
    the next."""

    distance: int
    exclusion: int
    ordered: bool
    gap: int = -1
    ends: tuple[int, ...] = ()

    def place(self, position: int) -> tuple[int, int]:
        """(number of the element, position in it)"""
        if not self.ends:
            return 0, position
        number = next(i for i, end in enumerate(self.ends) if position < end)
        return number, position - self._start(number)

    def _start(self, number: int) -> int:
        return self.ends[number - 1] + ELEMENT_GAP if number > 0 else 0

    def reach(self, position: int, size: int) -> tuple[int, int]:
        """The last place of a window of this size that begins at a position."""
        number, place = self.place(position)
        if self.gap >= 0 and self.ends:
            next_element = self.ends[number] - self._start(number) + self.gap
            if place + size >= next_element:
                return number + 1, place + size - next_element
        return number, place + size

    def windows(self, terms: Sequence[Row], excluded: Sequence[Row]) -> list[tuple[int, int]]:
        """(first position, last position)"""
        candidates = self._in_order(terms) if self.ordered else self._any_order(terms)
        return [
            w for w in candidates if self._fits(*w) and not any(self._spoils(*w, p) for row in excluded for p in row)
        ]

    def _any_order(self, terms: Sequence[Row]) -> list[tuple[int, int]]:
        found = []
        for first in merge_positions(terms):
            following = [[p for p in row if p >= first] for row in terms]
            if all(following):
                found.append((first, max(row[0] for row in following)))
        return found

    def _in_order(self, terms: Sequence[Row]) -> list[tuple[int, int]]:
        found = []
        for first in terms[0]:
            last: int | None = first
            for row in terms[1:]:
                last = next((p for p in row if last is not None and p > last), None)
            if last is not None:
                found.append((first, last))
        return found

    def _fits(self, first: int, last: int) -> bool:
        return self.place(last) <= self.reach(first, self.distance)

    def _spoils(self, first: int, last: int, excluded: int) -> bool:
        """Whether an excluded position is within the exclusion's distance, on either side."""
        after = self.place(excluded) <= self.reach(last, self.exclusion)
        return after and self.place(first) <= self.reach(excluded, self.exclusion)
