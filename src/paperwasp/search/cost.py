"""How long a query takes, before it runs: short ones run where they are, others on a worker thread.

A hand-off to another thread costs more than most queries do. Which queries are short is estimated from how many
documents their terms match, and from what ranking and writing hits by the same rank profile has taken before.
"""

from __future__ import annotations

from typing import Final

from paperwasp import limits
from paperwasp.search.bound import BoundQuery
from paperwasp.search.grouping.cutting import most_groups
from paperwasp.search.operators.item import Item

FACET_NS: Final = 30_000
"""Of a facet, whatever it counts."""
FACET_HIT_NS: Final = 10
"""Of one hit that it counts."""
FACET_GROUP_NS: Final = 1_500
"""Of one group that is shown."""


def is_plain(tree: Item, types_count: int) -> bool:
    """Return whether a tree is planned for this number of document types in little time, whatever the index holds."""
    waiting = [tree]
    left = limits.INLINE_QUERY_ITEMS // max(1, types_count)
    while waiting:
        item = waiting.pop()
        left -= item.lookups()
        if left < 0 or not item.is_plain:
            return False
        waiting.extend(item.children_of())
    return True


def estimate_ns(bound: BoundQuery, hits: int) -> float:
    """Return about how long a query takes for one document type, rather too long than too short."""
    space, cost, profile = bound.setting.space, bound.cost, bound.profile
    matching_ns, matches = bound.setting.operator.cost(space.limit)
    ranking_ns = 0.0 if bound.is_pruned else matches * cost.first_ns
    if profile.second_phase is not None:
        ranking_ns += min(matches, profile.rerank_count) * cost.second_ns
    if profile.global_phase is not None:
        ranking_ns += min(matches, bound.query.rank.global_hits) * cost.global_ns
    return matching_ns + ranking_ns + min(matches, hits) * (cost.write_ns + cost.shown_ns) + cost.fixed_ns


def grouped_ns(bound: BoundQuery, hits: int, matches: int) -> float:
    """Return about how long a query takes whose matches were found: all are scored, and the facets counted."""
    cost, profile = bound.cost, bound.profile
    found = matches * cost.first_ns + min(matches, hits) * (cost.write_ns + cost.shown_ns) + cost.fixed_ns
    if profile.second_phase is not None:
        found += min(matches, profile.rerank_count) * cost.second_ns
    for request in bound.query.groupings:
        most = most_groups(request.levels[0])
        groups = matches if most is None else min(matches, most)
        found += FACET_NS + matches * FACET_HIT_NS + groups * FACET_GROUP_NS
    return found
