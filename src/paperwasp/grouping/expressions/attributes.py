"""attribute(name), or its name alone: the value or values of an attribute.

In a level below one that groups by a part of an array of structs or of a map, other parts are read of the element that
the row is about: `group(persons.name) each(group(persons.age) …)`. The filter of a level that groups by an array or a
weighted set reads the element that the row is about: `group(tags) filter(regex("a.*", tags))` leaves other tags out.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#multivalue-attributes
"""

from __future__ import annotations

from paperwasp.errors import InvalidQuery
from paperwasp.grouping.columns import AttributeColumn, column_of
from paperwasp.grouping.expression import Expression
from paperwasp.grouping.node import Node, Rows, Scope, inner_constant, register
from paperwasp.grouping.values import Values


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
    of; empty where it is none."""

    is_multi = True

    def __init__(self, column: AttributeColumn, array: str) -> None:
        self._column = column
        self.kind = column.kind
        self.size_bytes = column.size_bytes
        if array:
            self.arrays = frozenset((array,))
        else:
            self.attributes = frozenset((column.name,))

    def values(self, rows: Rows) -> Values:
        return self._column.elements(rows.lids)


class OneElement(Node):
    """The element that a row is about, or its part where `array` is an array of structs or a map."""

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
    array = name.rpartition(".")[0]
    bound = array or name
    return OneElement(column, bound) if bound in scope.bound_arrays else AllElements(column, array)
