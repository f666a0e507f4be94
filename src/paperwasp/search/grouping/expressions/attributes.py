"""attribute(name), or its name alone: the value or values of an attribute.

In a level that groups by an array, a map or a weighted set, and in those below it, this is read of the element that the
row is about: `group(persons.name) each(group(persons.age) …)`, `group(tags) filter(regex("a.*", tags))` and
`group(numbers) each(output(sum(numbers)))`.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#multivalue-attributes;
current_index_setup.cpp, attributenode.cpp (`onExecute`)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.columns import Z_CURVE_SUFFIX, AttributeColumn, column_of
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Node, Rows, Scope, inner_constant, register
from paperwasp.search.grouping.values import Values


class Single(Node):
    """A single-valued attribute."""

    def __init__(self, column: AttributeColumn) -> None:
        self._column = column
        self.kind = column.kind
        self.size_bytes = column.size_bytes

    def values(self, rows: Rows) -> Values:
        return self._column.single(rows.lids)


class AllElements(Node):
    """An array or a weighted set: all its elements, or keys. `array`: the one of structs, or the map, that it is a part
    of, or its own name."""

    is_multi = True

    def __init__(self, column: AttributeColumn, array: str) -> None:
        self._column = column
        self.kind = column.kind
        self.size_bytes = column.size_bytes
        self.arrays = frozenset((array,))

    def values(self, rows: Rows) -> Values:
        return self._column.elements(rows.lids)

    def element_numbers(self, rows: Rows, offsets: NDArray[np.uint32]) -> NDArray[Any]:
        found = self._column.numbers_of_set(rows.lids)
        return super().element_numbers(rows, offsets) if found is None else found


class OneElement(Node):
    """The element of `array` that a row is about, or its part."""

    def __init__(self, column: AttributeColumn, array: str) -> None:
        self._column = column
        self._array = array
        self.kind = column.kind
        self.size_bytes = column.size_bytes

    def values(self, rows: Rows) -> Values:
        return self._column.element_of(rows.lids, rows.elements[self._array])


@register("attribute")
def _attribute(expression: Expression, scope: Scope) -> Node:
    return attribute_node(attribute_name(expression, 0), scope)


def attribute_name(expression: Expression, number: int) -> str:
    """The name that an argument is, or that it has as an attribute. Errors: InvalidQuery."""
    argument = expression.arguments[number] if number < len(expression.arguments) else None
    if isinstance(argument, Expression) and argument.function == "attribute":
        return attribute_name(argument, 0)
    name = inner_constant(expression, number)
    if not isinstance(name, str):
        raise InvalidQuery(f"Argument {number + 1} of function '{expression.function}' must be an attribute")
    return name


def attribute_node(name: str, scope: Scope) -> Node:
    """The node of the attribute of this name. Errors: InvalidQuery."""
    column = column_of(name, scope)
    if not column.is_multi:
        return Single(column)
    array = name.rpartition(".")[0] or name.removesuffix(Z_CURVE_SUFFIX)
    return OneElement(column, array) if array in scope.bound_arrays else AllElements(column, array)
