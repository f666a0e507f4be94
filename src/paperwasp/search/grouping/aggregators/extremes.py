"""min and max: the least and the greatest of the values of a group's hits, which are numbers, text or raw bytes.

A group without any value has the extreme of the type that any value replaces, as in Vespa: the least or greatest
integer or float, the empty text, or one that is behind others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import (
    Aggregator,
    Binder,
    Groups,
    Numbers,
    State,
    aggregates,
    argument,
    number_values,
    written_as,
)
from paperwasp.search.grouping.conversion import LEAST, MOST, TEXTS, as_numbers, spread
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.value_columns import arrays_of, order_key, values_from
from paperwasp.search.grouping.values import Kind, ListTable, Values

_GREATEST_DOUBLE: Final = float(np.finfo(np.float64).max)
_BEHIND: Final = {Kind.STRING: "\ufffd", Kind.RAW: b"\xff"}
_EMPTY: Final = {Kind.STRING: "", Kind.RAW: b""}
_KINDS: Final = TEXTS | {Kind.LONG, Kind.DOUBLE}


class ExtremeState(Struct, State, frozen=True, eq=False):
    """The extreme value of each group."""

    is_max: ClassVar[bool]
    values: Values

    @property
    def group_count(self) -> int:
        return len(self.values.data)

    def selected(self, rows: Numbers) -> Self:
        values = self.values
        return type(self)(Values(values.kind, values.data[rows], values.table))

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        kinds = {part.values.kind for part in parts}
        if kinds <= TEXTS and len(kinds) == 1:
            return cls._merged_texts(kinds.pop(), parts, places, count)
        numbers = [as_numbers(part.values) for part in parts]
        dtype = np.dtype(np.int64) if all(part.dtype == np.int64 for part in numbers) else np.dtype(np.float64)
        found = np.full(count, _number_start(dtype, is_max=cls.is_max), dtype)
        for part, place in zip(numbers, places, strict=True):
            found[place] = (np.fmax if cls.is_max else np.fmin)(found[place], part)
        return cls(number_values(found))

    @classmethod
    def _merged_texts(cls, kind: Kind, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        best: list[Any] = [None] * count
        pick = max if cls.is_max else min
        for part, place in zip(parts, places, strict=True):
            for group, value in zip(place.tolist(), part.shown(), strict=True):
                best[group] = value if best[group] is None else pick(best[group], value, key=order_key)
        return cls(Values(kind, np.arange(count, dtype=np.uint32), ListTable(best)))

    def shown(self) -> Sequence[Any]:
        values = self.values
        return values.data.tolist() if values.table is None else values.table.values_of(values.data)

    def order_values(self) -> Values:
        return self.values

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return arrays_of(self.values)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        values = values_from(arrays)
        if values.kind not in _KINDS:
            raise ValueError(f"the state of an extreme has values of the type {values.kind.value}")
        return cls(values)


class Extreme(Aggregator):
    """Finds the extreme value of a node."""

    def __init__(self, node: ExpressionNode, state: type[ExtremeState]) -> None:
        self._node = node
        self._state = state

    def collect(self, rows: Rows, groups: Groups, count: int) -> ExtremeState:
        values = self._node.values(rows)
        groups = spread(values, groups)
        if values.kind in TEXTS and values.table is not None:
            return self._state(_extreme_texts(values, groups, count, is_max=self._state.is_max))
        numbers = as_numbers(values)
        start = _number_start(numbers.dtype, is_max=self._state.is_max)
        return self._state(
            number_values(_core.group_extremes(numbers, groups, count, start, is_max=self._state.is_max))
        )


def _extreme_texts(values: Values, groups: Groups, count: int, *, is_max: bool) -> Values:
    """Each distinct value is compared once, and then its place in their order."""
    assert values.table is not None
    codes, numbers = np.unique(values.data, return_inverse=True)
    texts = values.table.values_of(codes)
    order = sorted(range(len(texts)), key=lambda number: order_key(texts[number]))
    places = np.empty(len(texts), np.int64)
    places[order] = np.arange(len(texts))
    none = (_EMPTY if is_max else _BEHIND)[values.kind]
    found = _core.group_extremes(places[numbers], groups, count, -1 if is_max else len(texts), is_max=is_max)
    has_none = (found < 0) | (found == len(texts))
    table = ListTable([*(texts[number] for number in order), none])
    return Values(values.kind, np.where(has_none, len(texts), found).astype(np.uint32), table)


def _number_start(dtype: np.dtype[Any], *, is_max: bool) -> float:
    if dtype == np.int64:
        return LEAST if is_max else MOST
    return -_GREATEST_DOUBLE if is_max else _GREATEST_DOUBLE


@written_as("min")
class MinState(ExtremeState, frozen=True, eq=False):
    """The least value of each group."""

    is_max: ClassVar[bool] = False


@aggregates("min")
def _min(aggregation: Aggregation, bind: Binder) -> Extreme:
    return Extreme(bind(argument(aggregation)), MinState)


@written_as("max")
class MaxState(ExtremeState, frozen=True, eq=False):
    """The greatest value of each group."""

    is_max: ClassVar[bool] = True


@aggregates("max")
def _max(aggregation: Aggregation, bind: Binder) -> Extreme:
    return Extreme(bind(argument(aggregation)), MaxState)
