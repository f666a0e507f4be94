"""Aggregators: each collects a state for each group of a level, in columns; states can be merged.

An aggregator file registers what makes its aggregator of an `Aggregation`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, Self, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.language.operation import BOTH
from paperwasp.search.grouping.request import Aggregation, Expression
from paperwasp.search.grouping.values import Kind, Values

Numbers = NDArray[np.int64]
Groups = NDArray[np.uint32]


class State:
    """The aggregate of the groups of one level, a row a group."""

    form: ClassVar[str] = ""
    """The name of its arrays in a partial result that is written as bytes."""

    @property
    @abstractmethod
    def group_count(self) -> int:
        """How many groups it has."""

    @abstractmethod
    def selected(self, rows: Numbers) -> Self:
        """The state of these groups, in this order."""

    @classmethod
    @abstractmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        """One state of `count` groups: row j of parts[i] belongs to group places[i][j]. No number is in one of
        `places` twice, and each is in some of them."""

    @abstractmethod
    def shown(self) -> Sequence[Any]:
        """The value of each group in an answer: int, float, str, bytes, bool, or a list of them."""

    @abstractmethod
    def order_values(self) -> Values:
        """The value of each group that groups are ordered by."""

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[Any]]:
        """The state as arrays, to be written to another process."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Errors: ValueError for arrays that are no such state."""


_S = TypeVar("_S", bound=State)
_STATES: Final[dict[str, type[State]]] = {}


def written_as(form: str) -> Callable[[type[_S]], type[_S]]:
    """Register a state under the name that it has in bytes: that of its aggregate."""

    def register(state: type[_S]) -> type[_S]:
        state.form = form
        _STATES[form] = state
        return state

    return register


def state_of_form(form: str) -> type[State]:
    """The state that is written under this name. Errors: ValueError where there is none."""
    found = _STATES.get(form)
    if found is None:
        raise ValueError(f"there is no state of an aggregate '{form}'")
    return found


class Aggregator(ABC):
    """A bound aggregate of one level, for the documents of one type."""

    @abstractmethod
    def collect(self, rows: Rows, groups: Groups, count: int) -> State:
        """The state of `count` groups. groups[i] is the group of row i."""


Binder = Callable[[Expression], ExpressionNode]
"""Binds the expression that is aggregated to the columns of a document type."""
Maker = Callable[[Aggregation, Binder], Aggregator]

_MAKERS: Final[dict[str, Maker]] = {}


def aggregates(name: str) -> Callable[[Maker], Maker]:
    """Register what makes the aggregator of this name."""

    def register(maker: Maker) -> Maker:
        _MAKERS[name] = maker
        return maker

    return register


def is_aggregate(expression: Expression) -> bool:
    """Whether an expression is an aggregate, as opposed to a function of a hit."""
    return expression.function in _MAKERS and (expression.function not in BOTH or len(expression.arguments) == 1)


def aggregator_names() -> frozenset[str]:
    """The names of all aggregates."""
    return frozenset(_MAKERS)


def aggregator_of(aggregation: Aggregation, bind: Binder) -> Aggregator:
    """Bind an aggregate. Errors: InvalidQuery where there is none of this name."""
    maker = _MAKERS.get(aggregation.expression.function)
    if maker is None:
        raise InvalidQuery(f"'{aggregation.expression.function}' is not an aggregator")
    return maker(aggregation, bind)


def argument(aggregation: Aggregation) -> Expression:
    """The expression that is aggregated. Errors: InvalidQuery where there is none."""
    arguments = aggregation.expression.arguments
    if not arguments or not isinstance(arguments[0], Expression):
        raise InvalidQuery(f"The aggregator '{aggregation.expression.function}' needs an expression")
    return arguments[0]


# States that are arrays with a number, or a few, for each group.


WHOLE: Final = (np.int64,)
FLOAT: Final = (np.float64,)
NUMBER: Final = (np.int64, np.float64)


class ColumnState(Struct, State, frozen=True, eq=False):
    """A state whose members are arrays with a row a group."""

    dtypes: ClassVar[tuple[tuple[type[Any], ...], ...]]
    """Which types each of them may have."""

    @property
    def group_count(self) -> int:
        first: NDArray[Any] = getattr(self, self.__struct_fields__[0])
        return len(first)

    def selected(self, rows: Numbers) -> Self:
        return type(self)(*(array[rows] for array in self.arrays().values()))

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        names = list(cls.__struct_fields__)
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
