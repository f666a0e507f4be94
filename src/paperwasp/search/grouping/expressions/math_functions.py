"""math.exp, math.log, … : functions of one double or two. Of several values the first counts.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#single-argument-standard-mathematical-expressions
Differs: by a unit in the last place at most, where NumPy's functions and the C library's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, first_doubles
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Computed, Node, Scope, bind_arguments, register
from paperwasp.search.grouping.values import Kind, Values

_UFUNCS: Final[dict[str, Any]] = {
    "math.exp": np.exp,
    "math.log": np.log,
    "math.log1p": np.log1p,
    "math.log10": np.log10,
    "math.sqrt": np.sqrt,
    "math.cbrt": np.cbrt,
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
    "math.floor": np.floor,
    "math.pow": np.power,
    "math.hypot": np.hypot,
}


@register(*_UFUNCS)
def _math(expression: Expression, scope: Scope) -> Node:
    function = _UFUNCS[expression.function]
    arguments = bind_arguments(expression, scope, function.nin, function.nin)
    if BUCKETS.intersection(each.kind for each in arguments):
        raise InvalidQuery(f"Function '{expression.function}' takes numbers, not buckets")

    def compute(values: Sequence[Values]) -> Values:
        with np.errstate(all="ignore"):
            return Values(Kind.DOUBLE, function(*map(first_doubles, values)))

    return Computed(Kind.DOUBLE, arguments, compute)
