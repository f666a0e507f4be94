"""dotProduct: one of many values; the raw score is the sum of the products of weights of query and document.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#dotproduct
"""

from __future__ import annotations

from paperwasp.operators.base import Operator, SearchSpace, TermOperator, planner
from paperwasp.operators.items import DotProductItem
from paperwasp.operators.weighted_match import DotProductMatch, tokens_matches


@planner(DotProductItem)
def plan_dot_product(item: DotProductItem, space: SearchSpace) -> Operator:
    matches = [DotProductMatch(tokens) for tokens in tokens_matches(item, item.tokens, space)]
    return TermOperator(space, matches, item.annotations)
