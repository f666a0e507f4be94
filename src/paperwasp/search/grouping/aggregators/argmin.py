"""`argmin(key, value)`: the value of a group's hit that has the least key; `argmax` is that of the negated key.

The key is a number; of several values of a hit the least counts. Hits without a key are passed over: those that have
no value, NaN, or where an attribute of the key's expression is not set. Of equal keys the hit of the lowest lid is
taken. A group without a key shows null. Vespa: argmax_aggregation_result.cpp
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, aggregates, written_as
from paperwasp.search.grouping.conversion import LEAST, TEXTS
from paperwasp.search.grouping.elements import as_numbers
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Node, Rows
from paperwasp.search.grouping.picked import PickedState, picked_rows, picked_state
from paperwasp.search.grouping.ragged import lengths_of
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Kind, Values

_NUMBERS = frozenset({Kind.BOOL, Kind.LONG, Kind.DOUBLE})
Mask = NDArray[np.bool_]


@written_as("argmin")
@dataclass(frozen=True, slots=True, eq=False)
class ArgminState(PickedState):
    """The value of the hit with the least key of each group."""


class Argmin(Aggregator):
    """Picks hits by a key. `attributes`: those that must be set."""

    def __init__(self, key: Node, attributes: Sequence[Node], value: Node) -> None:
        self._key = key
        self._attributes = attributes
        self._value = value

    def collect(self, rows: Rows, groups: Groups, count: int) -> ArgminState:
        values = self._key.values(rows)
        numbers = as_numbers(values)
        is_known = np.ones(len(groups), np.bool_)
        for node in self._attributes:
            is_known &= _is_set(node, node.values(rows))
        owners = np.arange(len(groups))
        if values.offsets is not None:
            owners = np.repeat(owners, lengths_of(values.offsets))
        usable = is_known[owners] & (numbers == numbers)
        owners, numbers = owners[usable], numbers[usable]
        chosen = picked_rows(numbers, groups[owners], count)
        has = chosen >= 0
        picked = np.full(count, -1)
        picked[has] = owners[chosen[has]]
        keys = np.zeros(len(groups), numbers.dtype)
        keys[picked[has]] = numbers[chosen[has]]
        return picked_state(ArgminState, self._value, rows, picked, keys)


def _is_set(node: Node, values: Values) -> Mask:
    """Which rows have a value of an attribute: one that is not what stands for none."""
    if values.offsets is not None:
        return lengths_of(values.offsets) > 0
    data = values.data
    if values.kind is Kind.LONG:
        return ~np.isin(data, [LEAST >> 8 * (8 - node.size_bytes)])
    if values.kind in TEXTS and values.table is not None:
        codes, places = np.unique(data, return_inverse=True)
        is_text = np.array([len(text) > 0 for text in values.table.values_of(codes)], np.bool_)
        return is_text[places]
    return ~np.isnan(data) if values.kind is Kind.DOUBLE else np.ones(len(data), np.bool_)


def _attributes_of(expression: Expression) -> Iterator[Expression]:
    if expression.function == "attribute":
        yield expression
    for each in expression.arguments:
        if isinstance(each, Expression):
            yield from _attributes_of(each)


@aggregates("argmin")
def _argmin(aggregation: Aggregation, bind: Binder) -> Argmin:
    arguments = aggregation.expression.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Expression) or not isinstance(arguments[1], Expression):
        raise InvalidQuery("The aggregator 'argmin' needs a key and a value")
    key = bind(arguments[0])
    if key.kind not in _NUMBERS:
        raise InvalidQuery(f"The key of 'argmin' or 'argmax' must be a number, not {key.kind.value}")
    return Argmin(key, [bind(each) for each in dict.fromkeys(_attributes_of(arguments[0]))], bind(arguments[1]))
