"""count, sum, avg, stddev and xor of the values of a group's hits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import (
    FLOAT,
    NUMBER,
    WHOLE,
    Aggregator,
    Binder,
    ColumnState,
    Groups,
    Numbers,
    added,
    aggregates,
    argument,
    number_values,
    written_as,
)
from paperwasp.search.grouping.conversion import as_integers, as_numbers, spread, valid_doubles
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values

# `count()`: how many hits a group has. A hit that is in a group twice counts twice.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#group-list-aggregators


@written_as("count")
class CountState(ColumnState, frozen=True, eq=False):
    """How many hits each group has."""

    dtypes: ClassVar = (WHOLE,)
    counts: NDArray[np.int64]

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        return cls(added([part.counts for part in parts], list(places), count))

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self.counts.tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self.counts)


class Count(Aggregator):
    """Counts rows."""

    def collect(self, rows: Rows, groups: Groups, count: int) -> CountState:
        return CountState(_core.group_counts(groups, count))


@aggregates("count")
def _count(aggregation: Aggregation, bind: Binder) -> Count:
    return Count()


# `sum(expression)`: the sum of all values of a group's hits, an integer where the values are. Integers wrap.


@written_as("sum")
class SumState(ColumnState, frozen=True, eq=False):
    """The sum of each group."""

    dtypes: ClassVar = (NUMBER,)
    sums: NDArray[Any]
    """int64 or float64."""

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        return cls(added([part.sums for part in parts], list(places), count))

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self.sums.tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self.sums)


class Sum(Aggregator):
    """Adds the values of a node."""

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> SumState:
        values = self._node.values(rows)
        return SumState(_core.group_sums(as_numbers(values), spread(values, groups), count))


@aggregates("sum")
def _sum(aggregation: Aggregation, bind: Binder) -> Sum:
    return Sum(bind(argument(aggregation)))


# `avg(expression)`: the average of all values of a group's hits, always a float; 0 of none.
#
# Where the values are integers so is their sum, which wraps.
# Vespa: AverageAggregationResult.java (`getAverage`).


@written_as("avg")
class AvgState(ColumnState, frozen=True, eq=False):
    """The sum of each group, and how many values it is of."""

    dtypes: ClassVar = (NUMBER, WHOLE)
    sums: NDArray[Any]
    """int64 or float64."""
    counts: NDArray[np.int64]

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        sums = added([part.sums for part in parts], list(places), count)
        return cls(sums, added([part.counts for part in parts], list(places), count))

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self._averages().tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self._averages())

    def _averages(self) -> NDArray[np.float64]:
        averages = np.zeros(len(self.sums))
        with np.errstate(over="ignore", invalid="ignore"):
            np.divide(self.sums.astype(np.float64), self.counts, out=averages, where=self.counts != 0)
        return averages


class Avg(Aggregator):
    """Averages the values of a node."""

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> AvgState:
        values = self._node.values(rows)
        groups = spread(values, groups)
        return AvgState(_core.group_sums(as_numbers(values), groups, count), _core.group_counts(groups, count))


@aggregates("avg")
def _avg(aggregation: Aggregation, bind: Binder) -> Avg:
    return Avg(bind(argument(aggregation)))


# `stddev(expression)`: the standard deviation of all values of a group's hits, as a whole population; 0 of none.
#
# A NaN is passed over.
# Vespa: StandardDeviationAggregationResult.java
# Differs: where rounding leaves less than nothing under the root, as for equal values, this is 0; there it is NaN.


@written_as("stddev")
class StddevState(ColumnState, frozen=True, eq=False):
    """The moments of each group: how many values it has, their sum, and the sum of their squares."""

    dtypes: ClassVar = (WHOLE, FLOAT, FLOAT)
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        members = zip(*((part.counts, part.sums, part.squares) for part in parts), strict=True)
        return cls(*(added(member, places, count) for member in members))

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self._deviations().tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self._deviations())

    def _deviations(self) -> NDArray[np.float64]:
        counts = np.maximum(self.counts, 1).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            variances = (self.squares - self.sums * self.sums / counts) / counts
            return np.sqrt(np.maximum(variances, 0.0))


class Stddev(Aggregator):
    """Collects the moments of the values of a node."""

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> StddevState:
        values = self._node.values(rows)
        numbers, groups = valid_doubles(values, spread(values, groups))
        counts = _core.group_counts(groups, count)
        with np.errstate(over="ignore"):
            squares = numbers * numbers
        return StddevState(counts, _core.group_sums(numbers, groups, count), _core.group_sums(squares, groups, count))


@aggregates("stddev")
def _stddev(aggregation: Aggregation, bind: Binder) -> Stddev:
    return Stddev(bind(argument(aggregation)))


# `xor(expression)`: the exclusive or of all values of a group's hits, as integers; 0 of none.
#
# Floats are rounded, and text is the number that it begins with.
# Vespa: xoraggregationresult.cpp


@written_as("xor")
class XorState(ColumnState, frozen=True, eq=False):
    """The exclusive or of each group."""

    dtypes: ClassVar = (WHOLE,)
    bits: NDArray[np.int64]

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        found = np.zeros(count, np.int64)
        for part, place in zip(parts, places, strict=True):
            found[place] ^= part.bits
        return cls(found)

    def shown(self) -> Sequence[Any]:
        shown: list[Any] = self.bits.tolist()
        return shown

    def order_values(self) -> Values:
        return number_values(self.bits)


class Xor(Aggregator):
    """Combines the values of a node."""

    def __init__(self, node: ExpressionNode) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> XorState:
        values = self._node.values(rows)
        found = np.zeros(count, np.int64)
        np.bitwise_xor.at(found, spread(values, groups), as_integers(values))
        return XorState(found)


@aggregates("xor")
def _xor(aggregation: Aggregation, bind: Binder) -> Xor:
    return Xor(bind(argument(aggregation)))
