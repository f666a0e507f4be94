"""Literals, relevance() and now(): values that no attribute has.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#accessor-expressions
"""

from __future__ import annotations

from typing import Any

import numpy as np

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expression import Constant, Expression
from paperwasp.search.grouping.node import Node, Rows, Scope, inner_constant, register
from paperwasp.search.grouping.tables import InternedTable, TextTable, encoded
from paperwasp.search.grouping.values import Kind, Table, Values

_LONGS = range(-(2**63), 2**63)


class ConstantNode(Node):
    """The same value for every row."""

    def __init__(self, value: Constant) -> None:
        self.value = value
        self._table: Table | None = None
        self._datum: Any = value
        if isinstance(value, bool):
            self.kind = Kind.BOOL
            self.size_bytes = 1
        elif isinstance(value, int):
            if value not in _LONGS:
                raise InvalidQuery(f"{value} is no number of 64 bits")
            self.kind = Kind.LONG
        elif isinstance(value, float):
            self.kind = Kind.DOUBLE
        else:
            self.kind = Kind.STRING if isinstance(value, str) else Kind.RAW
            self._datum = 0
            self._table = TextTable((encoded(value),)) if isinstance(value, str) else InternedTable((value,))

    def values(self, rows: Rows) -> Values:
        dtypes: dict[Kind, Any] = {Kind.BOOL: np.bool_, Kind.LONG: np.int64, Kind.DOUBLE: np.float64}
        return Values(self.kind, np.full(len(rows.lids), self._datum, dtypes.get(self.kind, np.uint32)), self._table)


class Relevance(Node):
    """The score of the hit."""

    kind = Kind.DOUBLE

    def values(self, rows: Rows) -> Values:
        return Values(self.kind, rows.relevances)


@register("constant")
def _constant(expression: Expression, scope: Scope) -> Node:
    return ConstantNode(inner_constant(expression, 0))


@register("relevance")
def _relevance(expression: Expression, scope: Scope) -> Node:
    return Relevance()


@register("now")
def _now(expression: Expression, scope: Scope) -> Node:
    return ConstantNode(scope.now_seconds)
