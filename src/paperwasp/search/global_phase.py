"""The global phase: the best hits of one document type, merged from all nodes, are ranked again.

The container does it (`container.search.global_ranking`), but for one class of query: where the hits that it would
rank come from one node that searches one document type, that node ranks them itself and writes the page alone, not all
hits that may be ranked. Both do it by the functions here, and give the same page.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#using-a-global-phase-expression
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.search.mutations import ON_SUMMARY
from paperwasp.search.query import Query
from paperwasp.search.ranked import RankedHits
from paperwasp.search.rescaling import Rescaling

Scores = NDArray[np.float64]


def relevances(phase: GlobalPhase, rows: Scores, before: Scores) -> Scores:
    """The relevances of hits that had the scores `before`, falling: of the first ones by their values in `rows`, and
    of the rest, which are moved where they would otherwise be above those."""
    scores = phase.scores(rows)
    scores = np.where(np.isnan(scores), -np.inf, scores)
    chosen, rest = before[: len(rows)], before[len(rows) :]
    if not len(rest):
        return scores
    rescaling = replace(Rescaling.below(chosen, scores), most=np.inf)  # hits below are not above those before
    return np.concatenate([scores, rescaling(rest)])


class GlobalHits(NamedTuple):
    """The first hits by the global phase, as many as are asked for."""

    ranked: RankedHits
    before: Scores
    """The scores that they had before."""
    dropped_count: int
    """How many hits the phase drops, of all."""


def rank_globally(query: Query, ranked: RankedHits) -> GlobalHits | None:
    """Return the first hits by the global phase. None: the container ranks by it, since it did not ask for that, or
    wants what only it can tell."""
    phase, wanted = ranked.bound.profile.global_phase, query.rank.global_page
    if phase is None or wanted is None or ranked.bound.observer.wants(ON_SUMMARY):
        return None
    count = min(query.rank.global_hits, len(ranked.lids))
    if not count:
        return None
    found = relevances(phase, ranked.columns(phase.inputs, count), ranked.scores)
    limit = wanted.rank_score_drop_limit
    order = np.argsort(-found, kind="stable")
    kept = order if limit is None else order[found[order] > limit]
    places = kept[: wanted.hits]
    ranked.bound.observer.step("global phase", "content node")
    return GlobalHits(ranked.of(places, found[places]), ranked.scores[places], len(order) - len(kept))
