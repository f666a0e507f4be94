"""Columns of plain values for tests: nodes over them, and how requests are bound to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from paperwasp.search.grouping.binding import Accept, Binding, Given
from paperwasp.search.grouping.expression_node import ExpressionNode, Rows
from paperwasp.search.grouping.request import Expression, Filter
from paperwasp.search.grouping.values import Kind, ListTable, Values
from tests.search.grouping.oracle import OracleHit

DTYPES = {Kind.LONG: np.int64, Kind.DOUBLE: np.float64, Kind.BOOL: np.bool_}
Column = Sequence[Any]
"""The value of each lid, or the list of its values."""


class ColumnNode(ExpressionNode):
    """Reads a column. `is_bound`: whether of a list the one value that a row is about."""

    def __init__(self, name: str, kind: Kind, column: Column, *, is_bound: bool = False) -> None:
        self.kind = kind
        self._name = name
        self._column = column
        self._is_bound = is_bound
        self.is_multi = not is_bound and any(isinstance(value, list) for value in column)
        self.arrays = frozenset({name} if self.is_multi else ())

    def values(self, rows: Rows) -> Values:
        found = [self._column[lid] for lid in rows.lids.tolist()]
        if self._is_bound:
            found = [each[number] for each, number in zip(found, rows.elements[self._name].tolist(), strict=True)]
        flat = [value for values in found for value in values] if self.is_multi else found
        offsets = None
        if self.is_multi:
            offsets = np.cumsum([0, *(len(values) for values in found)]).astype(np.uint32)
        if self.kind in DTYPES:
            return Values(self.kind, np.array(flat, DTYPES[self.kind]), None, offsets)
        distinct = list(dict.fromkeys(flat))
        codes = {value: code for code, value in enumerate(distinct)}
        return Values(self.kind, np.array([codes[value] for value in flat], np.uint32), ListTable(distinct), offsets)


class _Combined(ExpressionNode):
    """add(…) and neg(…) of numbers."""

    def __init__(self, nodes: Sequence[ExpressionNode], sign: int) -> None:
        self.kind = Kind.DOUBLE if any(node.kind is Kind.DOUBLE for node in nodes) else Kind.LONG
        self._nodes = nodes
        self._sign = sign

    def values(self, rows: Rows) -> Values:
        total = sum(node.values(rows).data for node in self._nodes) * self._sign
        return Values(self.kind, np.asarray(total, DTYPES[self.kind]))


def binding_of(columns: Mapping[str, tuple[Kind, Column]], bound: frozenset[str] = frozenset()) -> Binding:
    """Binds attributes to columns of these names, and add and neg over them or over aggregates. `bound`: the columns of
    which rows are about one value."""

    def node(expression: Expression, given: Given) -> ExpressionNode:
        if expression in given:
            return given[expression]
        if expression.function in ("add", "neg"):
            nodes = [node(each, given) for each in expression.arguments if isinstance(each, Expression)]
            return _Combined(nodes, -1 if expression.function == "neg" else 1)
        name = str(expression.arguments[0])
        return ColumnNode(name, *columns[name], is_bound=name in bound)

    def accept(wanted: Filter) -> Accept:
        """Accepts what has a value that is in `settings`."""
        assert wanted.expression is not None
        column = columns[str(wanted.expression.arguments[0])][1]
        return lambda rows: np.array([column[lid] in wanted.settings for lid in rows.lids.tolist()], np.bool_)

    return Binding(node, accept, lambda name: binding_of(columns, bound | {name}))


def attribute(name: str) -> Expression:
    """The expression of an attribute."""
    return Expression("attribute", (name,))


class ColumnSource:
    """Columns as the oracle reads them."""

    def __init__(self, columns: Mapping[str, tuple[Kind, Column]]) -> None:
        self._columns = columns

    def array(self, expression: Expression, hit: OracleHit) -> str | None:
        name = str(expression.arguments[0])
        return name if self.is_multi(expression, hit) else None

    def values(self, expression: Expression, hit: OracleHit) -> list[Any]:
        name = str(expression.arguments[0])
        value = self._columns[name][1][hit.lid]
        if not isinstance(value, list):
            return [value]
        return [value[hit.elements[name]]] if name in hit.elements else value

    def kind(self, expression: Expression) -> Kind:
        return self._columns[str(expression.arguments[0])][0]

    def is_multi(self, expression: Expression, hit: OracleHit) -> bool:
        name = str(expression.arguments[0])
        return name not in hit.elements and any(isinstance(value, list) for value in self._columns[name][1])
