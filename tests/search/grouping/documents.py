"""Columns of a few documents, and the values that expressions make of them, as plain Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from paperwasp.document.types import DataType
from paperwasp.search.grouping.expressions import Rows, Scope, bind
from paperwasp.search.grouping.request import Bucket, Constant, Expression
from paperwasp.search.grouping.values import Values
from paperwasp.storage.attributes import ColumnView, create_column


def column(data_type: DataType, values: Sequence[Any], *, cased: bool = False) -> ColumnView:
    """A column with a value for each lid; None: unset."""
    made = create_column(data_type, cased=cased)
    made.append(values)
    return made.snapshot()


def rows_of(count: int, relevances: Sequence[float] | None = None, **elements: Sequence[int]) -> Rows:
    """Every lid once."""
    scores = np.zeros(count) if relevances is None else np.array(relevances, np.float64)
    return Rows(
        np.arange(count, dtype=np.uint32), scores, {name: np.array(each, np.uint32) for name, each in elements.items()}
    )


def plain(values: Values) -> list[Any]:
    """The values of each row as Python values: one, or a list of them."""
    found = list(values.data.tolist() if values.table is None else values.table.values_of(values.data))
    if values.offsets is None:
        return found
    offsets = values.offsets.tolist()
    return [found[start:end] for start, end in pairwise(offsets)]


def of(function: str, *arguments: Expression | Constant | Bucket) -> Expression:
    """An expression."""
    return Expression(function, arguments)


def attribute(name: str) -> Expression:
    return of("attribute", name)


def constant(value: Constant) -> Expression:
    return of("constant", value)


def evaluated(expression: Expression, scope: Scope, rows: Rows) -> list[Any]:
    """What an expression makes of rows. Checks that the node says beforehand what it makes."""
    node = bind(expression, scope)
    values = node.values(rows)
    assert values.kind == node.kind
    assert (values.offsets is not None) == node.is_multi
    found = plain(values)
    assert len(found) == len(rows.lids)
    return found


def scope_of(columns: Mapping[str, ColumnView], **settings: Any) -> Scope:
    return Scope(columns, **settings)
