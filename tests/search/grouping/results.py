"""Partial results by hand: groups in columns, with states that hold what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.grouping.aggregator import Numbers, State
from paperwasp.search.grouping.partial import Groups
from paperwasp.search.grouping.values import Kind, Values


@dataclass(frozen=True)
class Shown(State):
    """A state that is its values."""

    values: Sequence[Any]

    @property
    def group_count(self) -> int:
        return len(self.values)

    def selected(self, rows: Numbers) -> Self:
        return type(self)([self.values[row] for row in rows.tolist()])

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        raise NotImplementedError

    def shown(self) -> Sequence[Any]:
        return self.values

    def order_values(self) -> Values:
        raise NotImplementedError

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        raise NotImplementedError


class Listed:
    """A table over a list."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = values

    def values_of(self, codes: NDArray[np.uint32]) -> Sequence[Any]:
        return [self._values[code] for code in codes.tolist()]


def values(kind: Kind, given: Sequence[Any]) -> Values:
    """These values, of numbers in columns and else in a table."""
    types = {Kind.LONG: np.int64, Kind.DOUBLE: np.float64, Kind.BOOL: np.bool_}
    if kind in types:
        return Values(kind, np.array(given, types[kind]))
    return Values(kind, np.arange(len(given), dtype=np.uint32), Listed(given))


def root(*outputs: Any) -> Groups:
    """The root group with one value an aggregation."""
    states = tuple(Shown([output]) for output in outputs)
    return Groups(1, np.zeros(1, np.uint32), Values(Kind.NULL, np.zeros(1, np.uint32)), np.ones(1), states)


def groups(
    tag: int,
    parents: Sequence[int],
    ids: Sequence[Any],
    *outputs: Sequence[Any],
    kind: Kind = Kind.STRING,
    relevances: Sequence[float] | None = None,
) -> Groups:
    """Groups of one level."""
    found = np.array([0.0] * len(ids) if relevances is None else relevances)
    states = tuple(Shown(output) for output in outputs)
    return Groups(tag, np.array(parents, np.uint32), values(kind, ids), found, states)
