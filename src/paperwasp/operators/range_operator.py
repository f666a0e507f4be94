"""Comparisons and range(): values of an attribute between two bounds.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.term import AttributeMatch, FieldMatch, TermOperator
from paperwasp.operators.word import fields_of
from paperwasp.query import RangeItem


@planner(RangeItem)
def plan_range(item: RangeItem, space: SearchSpace) -> Operator:
    if item.hit_limit:
        raise InvalidQuery(f"hitLimit of a range in '{item.index}' is not supported yet")
    matches: list[FieldMatch] = []
    for field in fields_of(item.index, space):
        if (column := space.column(field)) is not None:
            bitmap = column.range_bitmap(item.low, item.high, item.low_inclusive, item.high_inclusive, space.limit)
            matches.append(AttributeMatch(space, field.name, bitmap))
    return TermOperator(space, matches, item.annotations)
