"""The global phase: the best hits of one document type, merged from all nodes, are ranked again.

The container does it (`container.search.global_ranking`), but for one class of query: where the hits that it would
rank come from one node that searches one document type, that node ranks them itself and writes the page alone, not all
hits that may be ranked. Both do it by the functions here, and give the same page.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#using-a-global-phase-expression
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.view import View
from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.search.fill import hits_of
from paperwasp.search.mutations import ON_SUMMARY
from paperwasp.search.query import Hit, Query
from paperwasp.search.ranked import RankedHits
from paperwasp.search.rescaling import Rescaling
from paperwasp.search.summary import SummaryForms

Scores = NDArray[np.float64]


def relevances(phase: GlobalPhase, rows: Scores, before: Scores) -> Scores:
    """The relevances of hits that had the scores `before`, falling: of the first ones by their values in `rows`, and
    of the rest, which are moved where they would otherwise be above those."""
    scores = phase.scores(rows)
    scores = np.where(np.isnan(scores), -np.inf, scores)
    chosen, rest = before[: len(rows)], before[len(rows) :]
    rescaling = replace(Rescaling.below(chosen, scores), most=np.inf)  # hits below are not above those before
    return np.concatenate([scores, rescaling(rest)])


def page_of(view: View, query: Query, ranked: RankedHits, forms: SummaryForms) -> tuple[list[Hit], int] | None:
    """The first hits by the global phase, as many as are asked for, and how many it drops. None: the container does it,
    since it did not ask for that, or wants what only it can tell."""
    phase, wanted = ranked.bound.profile.global_phase, query.rank.global_page
    if phase is None or wanted is None or ranked.bound.observer.wants(ON_SUMMARY):
        return None
    bare = replace(query, rank=replace(query.rank, global_hits=0))
    count = min(query.rank.global_hits, len(ranked.lids))
    if not count:
        return None
    found = relevances(phase, ranked.columns(phase.inputs, count), ranked.scores)
    limit = wanted.rank_score_drop_limit
    order = np.argsort(-found, kind="stable")
    kept = order if limit is None else order[found[order] > limit]
    places = kept[: wanted.hits]
    shown = ranked.of(places)
    ranked.bound.observer.step("global phase", "content node")
    hits = hits_of(view, bare, shown, range(len(places)), [None] * len(places), forms)
    pairs = zip(hits, found[places].tolist(), strict=True)
    return [hit._replace(relevance=relevance) for hit, relevance in pairs], len(order) - len(kept)
