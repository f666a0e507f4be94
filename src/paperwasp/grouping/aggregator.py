"""What an aggregator is: it collects a state for each group of a level, in columns; states can be merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.grouping.node import Rows
from paperwasp.grouping.values import Values

Numbers = NDArray[np.int64]


class State(ABC):
    """The aggregate of the groups of one level, a row a group."""

    @abstractmethod
    def selected(self, rows: Numbers) -> Self:
        """The state of these groups, in this order."""

    @classmethod
    @abstractmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        """One state of `count` groups: row j of parts[i] belongs to group places[i][j]."""

    @abstractmethod
    def shown(self) -> Sequence[Any]:
        """The value of each group in an answer: int, float, str, bytes, bool, or a list of them."""

    @abstractmethod
    def order_values(self) -> Values:
        """The value of each group that groups are ordered by."""

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The state as arrays, to be written to another process: see docs/formats/grouping.md."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Errors: ValueError for arrays that are no such state."""


class Aggregator(ABC):
    """A bound aggregate of one level, for the documents of one type."""

    @abstractmethod
    def collect(self, rows: Rows, groups: NDArray[np.uint32], count: int) -> State:
        """The state of `count` groups. groups[i] is the group of row i."""
