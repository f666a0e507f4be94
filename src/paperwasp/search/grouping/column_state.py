"""States that are arrays with a number, or a few, for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.aggregator import Numbers, State
from paperwasp.search.grouping.values import Kind, Values

WHOLE: Final = (np.int64,)
FLOAT: Final = (np.float64,)
NUMBER: Final = (np.int64, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnState(State):
    """A state whose members are arrays with a row a group."""

    dtypes: ClassVar[tuple[tuple[type[Any], ...], ...]]
    """Which types each of them may have."""

    @property
    def group_count(self) -> int:
        first: NDArray[Any] = getattr(self, fields(self)[0].name)
        return len(first)

    def selected(self, rows: Numbers) -> Self:
        return type(self)(*(array[rows] for array in self.arrays().values()))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        names = [field.name for field in fields(cls)]
        if set(arrays) != set(names):
            raise ValueError(f"a state of the arrays {names} has {sorted(arrays)}")
        members = [arrays[name] for name in names]
        if len({array.shape for array in members}) > 1 or any(array.ndim != 1 for array in members):
            raise ValueError("the arrays of a state differ in length")
        if any(array.dtype not in dtypes for array, dtypes in zip(members, cls.dtypes, strict=True)):
            raise ValueError("an array of a state has another type of numbers")
        return cls(*members)


def added(parts: Sequence[NDArray[Any]], places: Sequence[Numbers], count: int) -> NDArray[Any]:
    """The sums of what parts have of each of `count` groups. Integers wrap; with a float among them all are floats."""
    dtype = np.result_type(*parts) if parts else np.dtype(np.int64)
    sums = np.zeros(count, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for part, place in zip(parts, places, strict=True):
            sums[place] += part
    return sums


def number_values(numbers: NDArray[Any]) -> Values:
    """An array of int64 or float64 as values."""
    return Values(Kind.LONG if numbers.dtype == np.int64 else Kind.DOUBLE, numbers)
