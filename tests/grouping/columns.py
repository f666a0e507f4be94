"""Columns of plain values for tests: nodes over them, and how requests are bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paperwasp.grouping.binding import Accept, Binding, Given
from paperwasp.grouping.expression import Expression
from paperwasp.grouping.node import Node, Rows
from paperwasp.grouping.request import Filter
from paperwasp.grouping.values import Kind, ListTable, Values

DTYPES = {Kind.LONG: np.int64, Kind.DOUBLE: np.float64, Kind.BOOL: np.bool_}
Column = Sequence[Any]
"""The value of each lid, or the list of its values."""


class ColumnNode(Node):
    """Reads a column."""

    def __init__(self, kind: Kind, column: Column) -> None:
        self.kind = kind
        self._column = column
        self.is_multi = any(isinstance(value, list) for value in column)

    def values(self, rows: Rows) -> Values:
        found = [self._column[lid] for lid in rows.lids.tolist()]
        flat = [value for values in found for value in values] if self.is_multi else found
        offsets = None
        if self.is_multi:
            offsets = np.cumsum([0, *(len(values) for values in found)]).astype(np.uint32)
        if self.kind in DTYPES:
            return Values(self.kind, np.array(flat, DTYPES[self.kind]), None, offsets)
        distinct = list(dict.fromkeys(flat))
        codes = {value: code for code, value in enumerate(distinct)}
        return Values(self.kind, np.array([codes[value] for value in flat], np.uint32), ListTable(distinct), offsets)


class _Combined(Node):
    """add(…) and neg(…) of numbers."""

    def __init__(self, nodes: Sequence[Node], sign: int) -> None:
        self.kind = Kind.DOUBLE if any(node.kind is Kind.DOUBLE for node in nodes) else Kind.LONG
        self._nodes = nodes
        self._sign = sign

    def values(self, rows: Rows) -> Values:
        total = sum(node.values(rows).data for node in self._nodes) * self._sign
        return Values(self.kind, np.asarray(total, DTYPES[self.kind]))


def binding_of(columns: Mapping[str, tuple[Kind, Column]]) -> Binding:
    """Binds attributes to columns of these names, and add and neg over them or over aggregates."""

    def node(expression: Expression, given: Given) -> Node:
        if expression in given:
            return given[expression]
        if expression.function in ("add", "neg"):
            nodes = [node(each, given) for each in expression.arguments if isinstance(each, Expression)]
            return _Combined(nodes, -1 if expression.function == "neg" else 1)
        return ColumnNode(*columns[str(expression.arguments[0])])

    def accept(wanted: Filter) -> Accept:
        """Accepts what has a value that is in `settings`."""
        assert wanted.expression is not None
        column = columns[str(wanted.expression.arguments[0])][1]
        return lambda rows: np.array([column[lid] in wanted.settings for lid in rows.lids.tolist()], np.bool_)

    return Binding(node, accept)


def attribute(name: str) -> Expression:
    """The expression of an attribute."""
    return Expression("attribute", (name,))


class ColumnSource:
    """Columns as the oracle reads them."""

    def __init__(self, columns: Mapping[str, tuple[Kind, Column]]) -> None:
        self._columns = columns

    def values(self, expression: Expression, lid: int) -> list[Any]:
        value = self._columns[str(expression.arguments[0])][1][lid]
        return value if isinstance(value, list) else [value]

    def kind(self, expression: Expression) -> Kind:
        return self._columns[str(expression.arguments[0])][0]

    def is_multi(self, expression: Expression) -> bool:
        return any(isinstance(value, list) for value in self._columns[str(expression.arguments[0])][1])
