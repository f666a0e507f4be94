"""and, or and xor of longs, bit by bit. Of an argument with several values the first counts; of one alone, all.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#bitwise-expressions
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, as_longs, first_longs
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.expressions.arithmetic import reduced
from paperwasp.search.grouping.node import Computed, Node, Scope, bind_arguments, register
from paperwasp.search.grouping.values import Kind, Values

_UFUNCS: Final[dict[str, tuple[Any, int]]] = {
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


@register(*_UFUNCS)
def _bits(expression: Expression, scope: Scope) -> Node:
    arguments = bind_arguments(expression, scope)
    combine, initial = _UFUNCS[expression.function]
    if BUCKETS.intersection(each.kind for each in arguments):
        raise InvalidQuery(f"Function '{expression.function}' takes numbers, not buckets")
    if len(arguments) == 1 and not arguments[0].is_multi:
        raise InvalidQuery(f"Function '{expression.function}' of one argument takes an array of numbers")

    def compute(values: Sequence[Values]) -> Values:
        if len(values) == 1:
            offsets = values[0].offsets
            assert offsets is not None
            return Values(Kind.LONG, reduced(combine, as_longs(values[0]), offsets, initial))
        return Values(Kind.LONG, reduce(combine, [first_longs(each) for each in values]))

    return Computed(Kind.LONG, arguments, compute)
