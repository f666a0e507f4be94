"""Positions by lid, single and in arrays, each as its number on a z-curve (`document.z_curve`).

One position has the number that stands for "unset": y = -2^31 with x = 0, which is no place on Earth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.converters import GeoPosition
from paperwasp.document.operations import Value
from paperwasp.document.types import LONG
from paperwasp.document.z_curve import positions_of, z_curve
from paperwasp.storage.attributes.array import ArrayColumn, ArrayView
from paperwasp.storage.attributes.column import Arrays, Column, ColumnView, Frozen, Lids, OpaqueView
from paperwasp.storage.attributes.numeric import NumericColumn

UNSET_POSITION: Final = GeoPosition(0, -(2**31))
"""The position whose number stands for none."""


class PositionView(OpaqueView):
    """Positions over a view of their numbers."""

    __slots__ = ("limit", "numbers")

    def __init__(self, numbers: ColumnView) -> None:
        self.numbers = numbers
        self.limit = numbers.limit

    @property
    def is_array(self) -> bool:  # type: ignore[override]
        return self.numbers.is_array

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return self.numbers.counts(lids)

    def gather(self, lids: Lids) -> list[Value | None]:
        found = self.numbers.gather(lids)
        if isinstance(self.numbers, ArrayView):
            return [None if row is None else _decode(row) for row in found]
        decoded = iter(_decode([number for number in found if number is not None]))
        return [None if number is None else next(decoded) for number in found]


class PositionColumn(Column):
    """The writer's side of positions: a column of numbers."""

    def __init__(self, *, is_array: bool = False, fast_search: bool = False) -> None:
        self._is_array = is_array
        self._numbers: Column = ArrayColumn(LONG) if is_array else NumericColumn(LONG, fast_search=fast_search)

    @property
    def length(self) -> int:
        return self._numbers.length

    def append(self, values: Sequence[Value | None]) -> None:
        self._numbers.append(self._encode(values))

    def pad(self, length: int) -> None:
        self._numbers.pad(length)

    def fill(self, lids: Lids, values: Sequence[Value | None]) -> None:
        self._numbers.fill(lids, self._encode(values))

    def set(self, lid: int, value: Value | None) -> None:
        self._numbers.set(lid, self._encode([value])[0])

    def snapshot(self) -> PositionView:
        return PositionView(self._numbers.snapshot())

    def freeze(self) -> Frozen:
        return self._numbers.freeze()

    def load(self, arrays: Arrays) -> None:
        self._numbers.load(arrays)

    def size_bytes(self) -> int:
        return self._numbers.size_bytes()

    def _encode(self, values: Sequence[Value | None]) -> list[Value | None]:
        if self._is_array:
            return [_encode(value) if value else None for value in values]
        numbers = iter(_encode([value for value in values if value is not None]))
        return [None if value is None else next(numbers) for value in values]


def _encode(positions: Sequence[tuple[int, int]]) -> list[int]:
    return list(z_curve(np.array(positions, np.int32).reshape(-1, 2)).tolist())


def _decode(numbers: Sequence[int]) -> list[GeoPosition]:
    return [GeoPosition(x, y) for x, y in positions_of(np.array(numbers, np.int64)).tolist()]
