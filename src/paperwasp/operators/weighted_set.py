"""weightedSet: one of many values, of whose weights ranking sees those of the query.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#weightedset
"""

from __future__ import annotations

from paperwasp.operators.base import Operator, SearchSpace, TermOperator, planner
from paperwasp.operators.items import WeightedSetItem
from paperwasp.operators.weighted_match import WeightedSetMatch, tokens_matches


@planner(WeightedSetItem)
def plan_weighted_set(item: WeightedSetItem, space: SearchSpace) -> Operator:
    matches = [WeightedSetMatch(tokens) for tokens in tokens_matches(item, item.tokens, space)]
    return TermOperator(space, matches, item.annotations)
