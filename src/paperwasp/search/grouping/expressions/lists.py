"""size, sort and reverse of the values of a row; of one value alone the size is 1, and it stays as it is.

Values are sorted in the order of group ids: numbers by size with NaN first, texts by their bytes, buckets by their
limits.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#list-expressions
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.node import Computed, Node, Scope, bind_arguments, register
from paperwasp.search.grouping.ragged import lengths_of
from paperwasp.search.grouping.value_order import ranks_of
from paperwasp.search.grouping.values import Kind, Values


@register("size")
def _size(expression: Expression, scope: Scope) -> Node:
    (argument,) = bind_arguments(expression, scope, 1, 1)

    def compute(values: Sequence[Values]) -> Values:
        offsets = values[0].offsets
        if offsets is None:
            return Values(Kind.LONG, np.ones(len(values[0].data), np.int64))
        return Values(Kind.LONG, lengths_of(offsets))

    return Computed(Kind.LONG, [argument], compute)


@register("sort", "reverse")
def _arranged(expression: Expression, scope: Scope) -> Node:
    (argument,) = bind_arguments(expression, scope, 1, 1)
    if not argument.is_multi:
        return argument
    arrange = _sorted if expression.function == "sort" else _reversed

    def compute(values: Sequence[Values]) -> Values:
        return arrange(values[0])

    return Computed(argument.kind, [argument], compute, is_multi=True, size_bytes=argument.size_bytes)


def _sorted(values: Values) -> Values:
    assert values.offsets is not None
    rows = np.repeat(np.arange(len(values.offsets) - 1), lengths_of(values.offsets))
    order = np.lexsort((ranks_of(values), rows))
    return Values(values.kind, values.data[order], values.table, values.offsets)


def _reversed(values: Values) -> Values:
    assert values.offsets is not None
    bounds = values.offsets.astype(np.int64)
    places = np.repeat(bounds[:-1] + bounds[1:] - 1, np.diff(bounds)) - np.arange(len(values.data))
    return Values(values.kind, values.data[places], values.table, values.offsets)
