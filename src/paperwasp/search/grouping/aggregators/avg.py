"""`avg(expression)`: the average of all values of a group's hits, always a float; 0 of none.

Where the values are integers so is their sum, which wraps. Vespa: AverageAggregationResult.java (`getAverage`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, aggregates, argument, written_as
from paperwasp.search.grouping.column_state import NUMBER, WHOLE, ColumnState, added, number_values
from paperwasp.search.grouping.elements import as_numbers, spread
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("avg")
@dataclass(frozen=True, slots=True, eq=False)
class AvgState(ColumnState):
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

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> AvgState:
        values = self._node.values(rows)
        groups = spread(values, groups)
        return AvgState(_core.group_sums(as_numbers(values), groups, count), _core.group_counts(groups, count))


@aggregates("avg")
def _avg(aggregation: Aggregation, bind: Binder) -> Avg:
    return Avg(bind(argument(aggregation)))
