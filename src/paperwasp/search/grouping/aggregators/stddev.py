"""`stddev(expression)`: the standard deviation of all values of a group's hits, as a whole population; 0 of none.

A NaN is passed over. Vespa: StandardDeviationAggregationResult.java
Differs: where rounding leaves less than nothing under the root, as for equal values, this is 0; there it is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, aggregates, argument, written_as
from paperwasp.search.grouping.column_state import FLOAT, WHOLE, ColumnState, added, number_values
from paperwasp.search.grouping.elements import spread, valid_doubles
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("stddev")
@dataclass(frozen=True, slots=True, eq=False)
class StddevState(ColumnState):
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

    def __init__(self, node: Node) -> None:
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
