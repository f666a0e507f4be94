"""Comparisons and range(): values of an attribute between two bounds.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

from paperwasp.attribute.number_term import NumberTerm
from paperwasp.operators.attribute_terms import range_match
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.term import TermOperator
from paperwasp.operators.word import fields_of
from paperwasp.query import RangeItem


@planner(RangeItem)
def plan_range(item: RangeItem, space: SearchSpace) -> Operator:
    term = NumberTerm(item.low, item.high, item.low_inclusive, item.high_inclusive, item.hit_limit)
    columns = ((field, space.column(field)) for field in fields_of(item.index, space))
    matches = [range_match(space, field, column, term) for field, column in columns if column is not None]
    return TermOperator(space, matches, item.annotations)
