"""query(name) and queryTermCount: what the query brings.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#query-features
"""

from __future__ import annotations

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, one, register


@register("query", "name")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = arguments[0]

    def compute(context: MatchContext) -> Floats:
        return one(context.inputs.get(name, 0.0))

    return compute


@register("queryTermCount", listed=lambda setup: ("queryTermCount",))
def bind_term_count(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return one(len(context.terms))

    return compute
