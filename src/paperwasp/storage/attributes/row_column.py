"""The common part of columns that keep their values as rows of elements: arrays, tensors, raw."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.storage.attributes.column import Column, Lids
from paperwasp.storage.attributes.rows import RowStore


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
