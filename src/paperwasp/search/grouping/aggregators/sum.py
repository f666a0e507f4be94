"""`sum(expression)`: the sum of all values of a group's hits, an integer where the values are. Integers wrap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, aggregates, argument, written_as
from paperwasp.search.grouping.column_state import NUMBER, ColumnState, added, number_values
from paperwasp.search.grouping.elements import as_numbers, spread
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("sum")
@dataclass(frozen=True, slots=True, eq=False)
class SumState(ColumnState):
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

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> SumState:
        values = self._node.values(rows)
        return SumState(_core.group_sums(as_numbers(values), spread(values, groups), count))


@aggregates("sum")
def _sum(aggregation: Aggregation, bind: Binder) -> Sum:
    return Sum(bind(argument(aggregation)))
