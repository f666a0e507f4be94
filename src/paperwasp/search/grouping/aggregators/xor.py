"""`xor(expression)`: the exclusive or of all values of a group's hits, as integers; 0 of none.

Floats are rounded, and text is the number that it begins with. Vespa: xoraggregationresult.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, aggregates, argument, written_as
from paperwasp.search.grouping.column_state import WHOLE, ColumnState, number_values
from paperwasp.search.grouping.elements import as_integers, spread
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("xor")
@dataclass(frozen=True, slots=True, eq=False)
class XorState(ColumnState):
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

    def __init__(self, node: Node) -> None:
        self._node = node

    def collect(self, rows: Rows, groups: Groups, count: int) -> XorState:
        values = self._node.values(rows)
        found = np.zeros(count, np.int64)
        np.bitwise_xor.at(found, spread(values, groups), as_integers(values))
        return XorState(found)


@aggregates("xor")
def _xor(aggregation: Aggregation, bind: Binder) -> Xor:
    return Xor(bind(argument(aggregation)))
