"""Queries for tests, from flat names."""

from __future__ import annotations

from typing import Any, Final

from paperwasp.search.operators.item import Item
from paperwasp.search.query import Match, Observe, Order, Query, QueryDeadline, Rank, Show

NAMES: Final[dict[str, tuple[str, str]]] = {
    "document_types": ("match", "document_types"),
    "rank_profile": ("rank", "profile"),
    "hits": ("order", "hits"),
    "offset": ("order", "offset"),
    "order_by": ("order", "keys"),
    "inputs": ("rank", "inputs"),
    "rank_properties": ("rank", "properties"),
    "features": ("rank", "features"),
    "summary": ("show", "summary"),
    "summary_fields": ("show", "fields"),
    "bolding": ("show", "bolding"),
    "tags": ("show", "tags"),
    "objects": ("show", "objects"),
    "list_features": ("show", "list_features"),
    "deadline_ns": ("deadline", "at_ns"),
    "language": ("match", "language"),
    "trace_level": ("observe", "trace_level"),
    "explain_level": ("observe", "explain_level"),
    "profiling": ("observe", "profiling"),
    "gram_match": ("match", "gram_match"),
    "soft_timeout": ("deadline", "is_soft"),
    "soft_timeout_factor": ("deadline", "soft_share"),
    "match_phase": ("match", "match_phase"),
    "ranking": ("rank", "override"),
    "tensor_form": ("show", "tensor_form"),
    "exact_tensors": ("show", "exact_tensors"),
    "streaming": ("match", "streaming"),
    "prefetch": ("show", "prefetch"),
    "source": ("show", "source"),
    "now_seconds": ("rank", "now_seconds"),
    "search_after": ("order", "after"),
    "global_hits": ("rank", "global_hits"),
    "global_page": ("rank", "global_page"),
    "expressions": ("rank", "expressions"),
}
"""Flat name → group and field of a Query, in the order in which scripts show them."""

GROUPS: Final = {
    "match": Match,
    "rank": Rank,
    "order": Order,
    "show": Show,
    "observe": Observe,
    "deadline": QueryDeadline,
}


def query_of(tree: Item, document_types: tuple[str, ...] = (), rank_profile: str = "default", **named: Any) -> Query:
    """Return the query for a tree, with what is named in NAMES and else as a plain request has it."""
    groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    groups["match"]["tree"] = tree
    for name, value in {"document_types": document_types, "rank_profile": rank_profile, **named}.items():
        group, field = NAMES[name]
        groups[group][field] = value
    return Query(**{name: GROUPS[name](**given) for name, given in groups.items()})
