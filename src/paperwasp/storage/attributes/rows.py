"""Rows of several elements by lid: all elements in parallel arrays, and for each row where its own stand.

`rows[lid]` is `offset << 24 | length`. Elements are only appended: a row that is changed gets new ones at the end and
its old ones stay for whoever reads them, until most are unused and the store goes on in new arrays. When the elements
move to larger arrays the rows move too, so that a reader's rows never point beyond the elements that it holds.

An element is known by its number, its place in the arrays, until the store goes on in new ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.errors import InvalidInput
from paperwasp.storage.attributes.array_file import FilePlace
from paperwasp.storage.attributes.column import Column, Lids
from paperwasp.storage.attributes.growable import GrowableArray

ROW_LENGTH_BITS: Final = 24
"""A row of an array column is `offset << 24 | length`."""
LONGEST_ROW: Final = (1 << ROW_LENGTH_BITS) - 1
NO_CODE: Final = 2**32 - 1
_LEAST_UNUSED: Final = 65_536
"""Unused elements that are never worth removing."""
_COPIED_ELEMENTS: Final = 16_384
"""How many elements are copied at once to new arrays."""

Rows = NDArray[np.uint64]
Elements = tuple[NDArray[Any], ...]
"""One array for each part, all of the same length."""


class RowStore:
    """The writer's rows and elements. A row without elements has length 0."""

    __slots__ = ("_dead", "_parts", "_rows", "_unused")

    def __init__(self, *parts: GrowableArray) -> None:
        self._rows = GrowableArray(np.uint64)
        self._parts = parts
        self._unused = 0
        """Elements that belonged to rows which were changed since, or are dead."""
        self._dead = GrowableArray(np.uint32)
        """The dead rows that have elements still."""

    @property
    def length(self) -> int:
        return self._rows.length

    @property
    def elements(self) -> int:
        """The number of elements of all rows as they are now."""
        return self._parts[0].length - self._unused

    def append(self, lengths: NDArray[Any], *elements: NDArray[Any]) -> None:
        """The next rows: the length of each, and the elements of all, one row after another."""
        self._rows.extend(self._append(lengths, elements))

    def pad(self, length: int) -> None:
        """Rows without elements, up to `length`."""
        self._rows.pad(length)

    def fill(self, lids: NDArray[np.uint32], lengths: NDArray[Any], *elements: NDArray[Any]) -> None:
        """Gives elements to rows that have none."""
        added = self._append(lengths, elements)
        self._rows.array[lids] = added

    def set(self, lid: int, *elements: NDArray[Any]) -> None:
        """Other elements for one row."""
        if self.is_sparse:
            self.compact()
        self._unused += int(self._rows.array[lid]) & LONGEST_ROW
        added = self._append(np.array([len(elements[0])], np.uint64), elements)
        self._rows.array[lid] = added[0]

    def bury(self, lids: NDArray[np.uint32]) -> None:
        """Nobody asks for these rows any more but who reads them already. Their elements stay until `compact`."""
        lengths = self._rows.array[lids] & np.uint64(LONGEST_ROW)
        if count := int(lengths.sum()):
            self._unused += count
            self._dead.extend(lids[lengths > 0])

    @property
    def shown(self) -> int:
        """The number below which the last of the arrays that readers hold has, or will have, the present elements."""
        last = self._parts[-1]
        return len(last.array) if last.is_fixed else last.length

    @property
    def is_sparse(self) -> bool:
        """Tell whether enough elements are unused that the store is to go on without them."""
        return self._unused > max(_LEAST_UNUSED, self._parts[0].length // 2)

    def compact(self) -> NDArray[np.int64]:
        """Goes on in new arrays without unused elements; gives, by new number, the number each element had before.
        Readers keep the old arrays."""
        places, lengths = places_of(self._rows_without_dead())
        parts = tuple(part.empty() for part in self._parts)
        for start in range(0, len(places), _COPIED_ELEMENTS):
            for part, before in zip(parts, self._parts, strict=True):
                part.extend(before.array[places[start : start + _COPIED_ELEMENTS]])
        self._parts = parts
        self._rows = GrowableArray.of(rows_of(np.uint64(0), lengths.astype(np.uint64)))
        self._unused = 0
        self._dead = GrowableArray(np.uint32)
        return places

    def compact_codes(self) -> NDArray[np.uint32]:
        """As `compact`, where the first part are codes, which become dense: gives, by new code, the code that each was
        before. Code 0 stays, and the highest number, which is none."""
        self.compact()
        codes = self._parts[0].view()
        used, numbers = np.unique(np.append(np.zeros(1, codes.dtype), codes), return_inverse=True)
        if used[-1] == NO_CODE:
            numbers[numbers == len(used) - 1] = NO_CODE
            used = used[:-1]
        codes[:] = numbers[1:].reshape(codes.shape)  # nobody reads these arrays yet
        return used

    def _rows_without_dead(self) -> Rows:
        """A copy of the rows, where those that are dead have no elements."""
        rows = self._rows.view().copy()
        rows[self._dead.view()] = 0
        return rows

    def snapshot(self) -> tuple[Rows, Elements]:
        """The rows and elements that readers keep, without a copy."""
        return self._rows.view(), tuple(part.array for part in self._parts)

    def freeze(self) -> Callable[[], tuple[NDArray[Any], ...]]:
        """Gives the lengths and the elements of all rows as they are now, without those no row has any more."""
        rows, parts = self._rows_without_dead(), tuple(part.array for part in self._parts)
        return lambda: used_elements(rows, *parts)

    def freeze_whole(self) -> tuple[NDArray[Any], ...]:
        """The rows and the elements as they are now, also those that no row has any more. Elements are not copied."""
        return self._rows_without_dead(), *(part.view() for part in self._parts)

    def load(self, lengths: NDArray[Any], *elements: NDArray[Any]) -> None:
        """Goes on with these rows in new arrays; readers keep the old ones. Errors: ValueError."""
        lengths = lengths.astype(np.uint64)
        if any(int(lengths.sum()) != len(values) for values in elements):
            raise ValueError("elements that do not fit the rows")
        self.load_whole(rows_of(np.uint64(0), lengths), *elements)

    def load_whole(self, rows: NDArray[Any], *elements: NDArray[Any], places: Sequence[FilePlace | None] = ()) -> None:
        """Goes on with what `freeze_whole` gave, in new arrays; readers keep the old ones. `places`: where in files the
        elements are, which is then mapped where they are large. Errors: ValueError."""
        for part, values in zip(self._parts, elements, strict=True):
            if values.dtype != part.array.dtype or values.shape[1:] != part.array.shape[1:]:
                raise ValueError(f"elements of {values.dtype}{values.shape[1:]}")
        rows = rows.astype(np.uint64)
        starts, lengths = split(rows)
        if any(len(values) != len(elements[0]) or np.any(starts + lengths > len(values)) for values in elements):
            raise ValueError("elements that do not fit the rows")
        parts = tuple(part.empty() for part in self._parts)
        for part, values, place in zip_longest(parts, elements, places):
            part.begin_with(values, place)
        self._parts, self._rows = parts, GrowableArray.of(rows)
        self._unused = max(0, len(elements[0]) - int(lengths.sum()))
        self._dead = GrowableArray(np.uint32)

    def size_bytes(self) -> int:
        return self._rows.size_bytes + sum(part.size_bytes for part in self._parts)

    def _append(self, lengths: NDArray[Any], elements: Elements) -> Rows:
        """Appends elements; gives the rows that have them."""
        lengths = lengths.astype(np.uint64)
        if len(lengths) and int(lengths.max()) > LONGEST_ROW:
            raise InvalidInput(f"a row of {lengths.max()} elements; at most {LONGEST_ROW}")
        rows = rows_of(np.uint64(self._parts[0].length), lengths)
        moved = [part.extend(values) for part, values in zip(self._parts, elements, strict=True)]
        if any(moved):
            self._rows.move()
        return rows


def split(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and lengths."""
    # Views: no number has the highest bit.
    return (rows >> np.uint64(ROW_LENGTH_BITS)).view(np.int64), (rows & np.uint64(LONGEST_ROW)).view(np.int64)


def places_of(rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the elements of these rows, one row after another, and the lengths of the rows."""
    starts, lengths = split(rows)
    return spread(starts, lengths), lengths


def spread(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of runs, one run after another."""
    ends = np.cumsum(lengths)
    numbers: NDArray[np.int64] = np.arange(int(ends[-1]) if len(ends) else 0)
    numbers += np.repeat(starts - (ends - lengths), lengths)
    return numbers


def used_elements(rows: Rows, *parts: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Lengths by row, and the elements of the rows, one row after another."""
    places, lengths = places_of(rows)
    return lengths.astype(np.uint32), *(part[places] for part in parts)


def rows_of(start: np.uint64, lengths: NDArray[np.uint64]) -> Rows:
    """Rows of these lengths whose elements stand one after another from `start` on."""
    rows: Rows = (start + np.cumsum(lengths) - lengths) << np.uint64(ROW_LENGTH_BITS) | lengths
    return rows


class RowColumn(Column):
    """The writer's side of values in a `RowStore`. A subclass says how values become elements."""

    def __init__(self, store: RowStore) -> None:
        self._store = store

    @property
    def length(self) -> int:
        return self._store.length

    def append(self, values: Sequence[Value | None]) -> None:
        self._store.append(*self._encode(values))

    def pad(self, length: int) -> None:
        self._store.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._store.fill(lids, *self._encode(values))

    def set(self, lid: int, value: Value | None) -> None:
        self._store.set(lid, *self._encode([value])[1:])

    @abstractmethod
    def _encode(self, values: Sequence[Value | None]) -> tuple[NDArray[Any], ...]:
        """The lengths of the values and all their elements, in as many parts as the rows have."""
