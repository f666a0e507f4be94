"""array.at and interpolatedlookup, which look up one value among those of an attribute, for each row by an expression.

array.at takes the element of a number, the first where it is below 0, the last where there are fewer. Where there is no
element it gives 0, false or the empty text. interpolatedlookup says between which of the elements, which rise, a number
lies, counted from 0: halfway between the fifth and the sixth it is 4.5; below the first, and of no elements, it is 0.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#accessor-expressions
Differs: numbers of elements from 2^32 on take the last, as the page says; there they lose their higher bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.columns import AttributeColumn, column_of
from paperwasp.search.grouping.conversion import BUCKETS, TEXTS, as_doubles, first_doubles, first_longs
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.expressions.attributes import attribute_name
from paperwasp.search.grouping.node import Node, Rows, Scope, bind, inner_expression, register
from paperwasp.search.grouping.values import Kind, Values
from paperwasp.storage.attributes.elements import numbers_within
from paperwasp.storage.attributes.rows import spread

Doubles = NDArray[np.float64]
Lengths = NDArray[np.int64]


class ElementAt(Node):
    """The element of an array whose number another node says."""

    def __init__(self, column: AttributeColumn, number: Node) -> None:
        self._column = column
        self._number = number
        self.kind = column.kind
        self.size_bytes = column.size_bytes
        self.arrays = number.arrays

    def values(self, rows: Rows) -> Values:
        numbers = first_longs(self._number.values(rows))
        return self._column.element_of(rows.lids, np.maximum(numbers, 0))


class Interpolated(Node):
    """Where what another node says lies among the elements of an array of numbers."""

    kind = Kind.DOUBLE

    def __init__(self, column: AttributeColumn, number: Node) -> None:
        self._column = column
        self._number = number
        self.arrays = number.arrays

    def values(self, rows: Rows) -> Values:
        column = self._column
        wanted = first_doubles(self._number.values(rows))
        if not column.is_multi:
            return Values(self.kind, np.zeros(len(rows.lids)))
        starts, lengths = column.runs(rows.lids)
        elements = as_doubles(Values(column.kind, column.at(spread(starts, lengths))))
        return Values(self.kind, _positions(elements, lengths, wanted))


def _positions(elements: Doubles, lengths: Lengths, wanted: Doubles) -> Doubles:
    """By the first element of each row that is above what is wanted; where there is none, the last."""
    found = np.maximum(lengths - 1, 0).astype(np.float64)
    places = np.flatnonzero(np.repeat(wanted, lengths) < elements)
    rows = np.repeat(np.arange(len(lengths)), lengths)[places]
    rows, first = np.unique(rows, return_index=True)
    places = places[first]
    numbers = numbers_within(lengths)[places]
    found[rows] = 0.0
    inner = numbers > 0
    rows, places = rows[inner], places[inner]
    with np.errstate(all="ignore"):
        below = elements[places - 1]
        found[rows] = numbers[inner] - 1 + (wanted[rows] - below) / (elements[places] - below)
    return found


@register("array.at", "interpolatedlookup")
def _lookup(expression: Expression, scope: Scope) -> Node:
    function = expression.function
    column = column_of(attribute_name(expression, 0), scope)
    number = bind(inner_expression(expression, 1), scope)
    if len(expression.arguments) != 2 or number.kind in BUCKETS:
        raise InvalidQuery(f"Function '{function}' takes an attribute and a number")
    if function == "array.at":
        if not column.is_multi:
            raise InvalidQuery(f"Function 'array.at' takes an array, and attribute '{column.name}' has one value")
        return ElementAt(column, number)
    if column.kind in TEXTS:
        raise InvalidQuery(f"Function 'interpolatedlookup' takes numbers, not the {column.kind.value} '{column.name}'")
    return Interpolated(column, number)
