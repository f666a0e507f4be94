"""zcurve.x and zcurve.y of the number of a position; size: how many values an argument has.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#other-expressions
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paperwasp.attribute.position import positions_of
from paperwasp.errors import InvalidQuery
from paperwasp.grouping.conversion import BUCKETS, as_longs
from paperwasp.grouping.expression import Expression
from paperwasp.grouping.node import Computed, Node, Scope, bind_arguments, register
from paperwasp.grouping.values import Kind, Values


@register("zcurve.x", "zcurve.y")
def _z_curve(expression: Expression, scope: Scope) -> Node:
    (argument,) = bind_arguments(expression, scope, 1, 1)
    axis = int(expression.function == "zcurve.y")
    if argument.kind in BUCKETS:
        raise InvalidQuery(f"Function '{expression.function}' does not take buckets")

    def compute(values: Sequence[Values]) -> Values:
        numbers = np.ascontiguousarray(as_longs(values[0]))
        return Values(Kind.LONG, positions_of(numbers)[:, axis].astype(np.int64), None, values[0].offsets)

    return Computed(Kind.LONG, [argument], compute, is_multi=argument.is_multi)


@register("size")
def _size(expression: Expression, scope: Scope) -> Node:
    (argument,) = bind_arguments(expression, scope, 1, 1)

    def compute(values: Sequence[Values]) -> Values:
        offsets = values[0].offsets
        if offsets is None:
            return Values(Kind.LONG, np.ones(len(values[0].data), np.int64))
        wide = offsets.astype(np.int64)
        return Values(Kind.LONG, wide[1:] - wide[:-1])

    return Computed(Kind.LONG, [argument], compute)
