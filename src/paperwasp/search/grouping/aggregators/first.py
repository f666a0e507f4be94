"""`first(expression)`: the value of a group's best hit, by relevance; of several values the first.

Of hits of equal relevance that of the lowest lid is taken; one that has no value is passed over. Where no hit has one,
the value is what is empty in its type: 0, the empty string. Vespa: first_aggregation_result.cpp
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, aggregates, argument, written_as
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.picked import PickedState, empty_of, picked_rows, picked_state
from paperwasp.search.grouping.ragged import lengths_of
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Values


@written_as("first")
@dataclass(frozen=True, slots=True, eq=False)
class FirstState(PickedState):
    """The value of the best hit of each group."""

    def nothing(self) -> Any:
        return empty_of(self.values.kind)


class _FirstValue(Node):
    """The first value of rows that each have one."""

    def __init__(self, node: Node) -> None:
        self.kind = node.kind
        self._node = node

    def values(self, rows: Rows) -> Values:
        values = self._node.values(rows)
        data = values.data if values.offsets is None else values.data[values.offsets[:-1]]
        return Values(values.kind, data, values.table)


class First(Aggregator):
    """Picks the values of best hits."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._value = _FirstValue(node)

    def collect(self, rows: Rows, groups: Groups, count: int) -> FirstState:
        keys = -rows.relevances
        usable = keys == keys
        if self._node.is_multi:
            offsets = self._node.values(rows).offsets
            usable &= True if offsets is None else lengths_of(offsets) > 0
        places = np.flatnonzero(usable)
        chosen = picked_rows(keys[places], groups[places], count)
        picked = np.where(chosen >= 0, places[chosen] if len(places) else -1, -1)
        return picked_state(FirstState, self._value, rows, picked, keys)


@aggregates("first")
def _first(aggregation: Aggregation, bind: Binder) -> First:
    return First(bind(argument(aggregation)))
