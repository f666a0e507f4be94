"""Values that no attribute has: literals, relevance(), now(), docidnsspecific() and debugwait()."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paperwasp.core.clock import wait
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidQuery
from paperwasp.limits.grouping import WAIT_SECONDS
from paperwasp.search.grouping.expression_node import (
    ExpressionNode,
    Lids,
    Rows,
    Scope,
    bind,
    bind_arguments,
    inner_constant,
    inner_expression,
    register,
)
from paperwasp.search.grouping.memory import TextMemory
from paperwasp.search.grouping.request import Constant, Expression
from paperwasp.search.grouping.tables import InternedTable, TextTable, distinct, encoded, mapped
from paperwasp.search.grouping.values import Kind, Table, Values

# Literals, relevance() and now(): values that no attribute has.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#accessor-expressions


_LONGS = range(-(2**63), 2**63)


class ConstantNode(ExpressionNode):
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


class Relevance(ExpressionNode):
    """The score of the hit."""

    kind = Kind.DOUBLE

    def values(self, rows: Rows) -> Values:
        return Values(self.kind, rows.relevances)


@register("constant")
def _constant(expression: Expression, scope: Scope) -> ExpressionNode:
    return ConstantNode(inner_constant(expression, 0))


@register("relevance")
def _relevance(expression: Expression, scope: Scope) -> ExpressionNode:
    return Relevance()


@register("now")
def _now(expression: Expression, scope: Scope) -> ExpressionNode:
    return ConstantNode(scope.now_seconds)


# docidnsspecific(): what a user chose of the id of a document, `x` of `id:namespace:type::x`.
#
# It is known in streaming search; where documents are found by an index it is the empty text, as in Vespa.
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html; getdocidnamespacespecificfunctionnode.h


class UserSpecified(ExpressionNode):
    """The user-specified part of document ids."""

    kind = Kind.STRING

    def __init__(self, document_ids: Callable[[Lids], Sequence[str]], memory: TextMemory) -> None:
        self._document_ids = document_ids
        self._table = TextTable(memory=memory)

    def values(self, rows: Rows) -> Values:
        lids, places = distinct(rows.lids)
        return Values(self.kind, mapped(_user_specified, self._document_ids(lids), self._table)[places], self._table)


def _user_specified(document_id: str) -> bytes:
    return encoded(DocumentId.parse(document_id).user_specified)


@register("docidnsspecific")
def _document_id(expression: Expression, scope: Scope) -> ExpressionNode:
    bind_arguments(expression, scope, 0, 0)
    return ConstantNode("") if scope.document_ids is None else UserSpecified(scope.document_ids, scope.texts)


# debugwait(expression, seconds, busy): the value of an expression, for which one waits at each row.
#
# It makes grouping slow, so that one can see what happens when it is. With busy the processor is kept busy meanwhile.
# Vespa: searchlib/expression/debugwaitfunctionnode.cpp
# Differs: all rows together are waited for in one go, never longer than `WAIT_SECONDS`; a query whose time is over
# meanwhile ends.


class Delayed(ExpressionNode):
    """Another node, whose values come late."""

    def __init__(self, node: ExpressionNode, seconds: float, *, is_busy: bool) -> None:
        self._node = node
        self._seconds = seconds
        self._is_busy = is_busy
        self.kind = node.kind
        self.is_multi = node.is_multi
        self.size_bytes = node.size_bytes
        self.arrays = node.arrays

    def values(self, rows: Rows) -> Values:
        wait(min(self._seconds * len(rows.lids), WAIT_SECONDS), is_busy=self._is_busy)
        return self._node.values(rows)


@register("debugwait")
def _debug_wait(expression: Expression, scope: Scope) -> ExpressionNode:
    node = bind(inner_expression(expression, 0), scope)
    seconds, is_busy = inner_constant(expression, 1), inner_constant(expression, 2)
    if not isinstance(seconds, int | float) or not isinstance(is_busy, bool) or len(expression.arguments) != 3:
        raise InvalidQuery("Function 'debugwait' takes an expression, a number of seconds, and true or false")
    return Delayed(node, float(seconds), is_busy=is_busy)
