"""debugwait(expression, seconds, busy): the value of an expression, for which one waits at each row.

It makes grouping slow, so that one can see what happens when it is. With busy the processor is kept busy meanwhile.
Vespa: searchlib/expression/debugwaitfunctionnode.cpp
Differs: all rows together are waited for in one go, never longer than `WAIT_SECONDS`; a query whose time is over
meanwhile ends.
"""

from __future__ import annotations

from paperwasp.core.clock import wait
from paperwasp.errors import InvalidQuery
from paperwasp.limits.grouping import WAIT_SECONDS
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Node, Rows, Scope, bind, inner_constant, inner_expression, register
from paperwasp.search.grouping.values import Values


class Delayed(Node):
    """Another node, whose values come late."""

    def __init__(self, node: Node, seconds: float, *, is_busy: bool) -> None:
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
def _debug_wait(expression: Expression, scope: Scope) -> Node:
    node = bind(inner_expression(expression, 0), scope)
    seconds, is_busy = inner_constant(expression, 1), inner_constant(expression, 2)
    if not isinstance(seconds, int | float) or not isinstance(is_busy, bool) or len(expression.arguments) != 3:
        raise InvalidQuery("Function 'debugwait' takes an expression, a number of seconds, and true or false")
    return Delayed(node, float(seconds), is_busy=is_busy)
