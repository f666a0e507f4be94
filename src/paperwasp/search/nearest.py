"""The first phase of a query that is one nearestNeighbor, ranked by the closeness that it has found: nothing else is
computed, neither a bitmap of what matches nor blocks of hits."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from paperwasp.search.best_hits import best_of
from paperwasp.search.bound import BoundQuery
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH
from paperwasp.search.operators.nearest_neighbor import NearestNeighborMatch, NearestNeighborOperator
from paperwasp.search.ranked import RankedHits, finite

_CLOSENESS: Final = ("closeness(field,{})", "closeness({})")


def nearest(bound: BoundQuery, kept: int) -> RankedHits | None:
    """Return the best `kept`; None where the query or the rank profile is of another kind. Raises OutOfTime."""
    match = _only_match(bound)
    if match is None:
        return None
    lids = match.found()
    begun_ns = time.thread_time_ns()
    scores = finite(np.maximum(match.least_score, match.nearest(lids)[1]))
    bound.cost.ranked(len(lids), time.thread_time_ns() - begun_ns)
    best, best_scores = best_of(lids, scores, kept)
    highest = float(best_scores[0]) if len(best) else -np.inf
    return RankedHits(bound, len(lids), best, best_scores, best_scores, highest=highest)


def _only_match(bound: BoundQuery) -> NearestNeighborMatch | None:
    """The term in its field, if that is all that is searched, and ranked by. A query that is observed goes the general
    way, whose steps its trace names."""
    setting, profile, observer = bound.setting, bound.profile, bound.observer
    operator, program = setting.operator, profile.first_phase
    if type(operator) is not NearestNeighborOperator or not program.is_feature or len(operator.matches) != 1:
        return None
    if profile.rank_score_drop_limit is not None or bound.limiter is not None or setting.features:
        return None
    if observer.is_tracing or observer.wants(ON_MATCH, ON_FIRST_PHASE) or setting.terms != (operator,):
        return None
    (match,) = operator.matches
    is_ranked = program.features[program.result].name in [name.format(match.field) for name in _CLOSENESS]
    return match if is_ranked and isinstance(match, NearestNeighborMatch) else None
