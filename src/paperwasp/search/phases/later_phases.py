"""The second phase and the global phase: the best hits of the phase before are scored by another expression."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from paperwasp.base.records import replace
from paperwasp.core.clock import OutOfTime
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.block import Block, FirstPhase
from paperwasp.search.mutations import ON_SECOND_PHASE, ON_SUMMARY
from paperwasp.search.observe import EXPRESSION, SECOND_PHASE
from paperwasp.search.phases.ranked_hits import NO_SCORES, NOT_RESCALED, TIMEOUT, RankedHits, Rescaling, Scores, finite
from paperwasp.search.phases.scoring import blocks_of, scores_of
from paperwasp.search.query import Query

# The second phase: the best hits of the first are scored by another expression, the others are moved below them.
#
# Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html


def rerank(bound: BoundQuery, ranked: RankedHits) -> tuple[RankedHits, Rescaling]:
    """Rank the best `rerank_count` again, or those that diversity leaves, and say how the others' scores are moved.

    Without a second phase, or time for it, the hits stay as the first phase ranked them.
    """
    program = bound.profile.second_phase
    if program is None:
        return ranked, NOT_RESCALED
    try:
        if not bound.is_over():
            return _reranked(bound, ranked, program)
    except OutOfTime:
        pass
    return replace(ranked, degraded=ranked.degraded | TIMEOUT), NOT_RESCALED


def _reranked(bound: BoundQuery, ranked: RankedHits, program: Program) -> tuple[RankedHits, Rescaling]:
    profile, observer = bound.profile, bound.observer
    ranked, count = _diverse(bound, ranked)
    order = np.argsort(ranked.lids[:count])
    lids, first = ranked.lids[:count][order], ranked.first_phase[:count][order]
    reranked = ranked.lids[:count]
    end = FirstPhase(-np.inf if ranked.highest is None else ranked.highest, reranked)
    known = {"firstPhase": first} if np.isfinite(first).all() else {}  # else they are not the values of its expression
    block = Block(bound.setting, lids, known, profile.phases, end)
    begun_ns = time.thread_time_ns()
    with observer.task(SECOND_PHASE, EXPRESSION, count):
        scores = _scores(bound, block, program)
    bound.cost.reranked(count, time.thread_time_ns() - begun_ns)
    rescaling = Rescaling.below(first, scores)
    if bound.diversifier is not None and count > 0:
        rescaling = replace(rescaling, most=float(scores.min()))
    all_lids = np.concatenate([lids, ranked.lids[count:]])
    all_scores = np.concatenate([scores, rescaling(ranked.first_phase[count:])])
    all_first = np.concatenate([first, ranked.first_phase[count:]])
    best = np.lexsort((all_lids, -all_scores))
    if (limit := profile.second_phase_rank_score_drop_limit) is not None:
        best = best[all_scores[best] > limit]
        ranked = replace(ranked, total_count=ranked.total_count - (len(all_lids) - len(best)))
    observer.tag("second_phase", reranked=count)
    observer.reach(ON_SECOND_PHASE, [lids])
    hits = replace(
        ranked,
        lids=all_lids[best],
        scores=all_scores[best],
        first_phase=all_first[best],
        highest=end.highest,
        reranked=reranked,
    )
    return hits, rescaling


def _scores(bound: BoundQuery, block: Block, program: Program) -> Scores:
    """The scores of all hits. Raises OutOfTime where the time is over between two blocks of them."""
    found: list[Scores] = []
    for places in blocks_of(block.hits, len(block.setting.terms)):
        if found and bound.is_over():
            raise OutOfTime
        found.append(scores_of(block.part(places), program))
    return finite(np.concatenate([NO_SCORES, *found]))


def _diverse(bound: BoundQuery, ranked: RankedHits) -> tuple[RankedHits, int]:
    """The hits with those first that the second phase ranks, and how many these are."""
    diversifier, rerank_count = bound.diversifier, bound.profile.rerank_count
    count = min(rerank_count, len(ranked.lids))
    if diversifier is None or count == 0:
        return ranked, count
    chosen = np.zeros(len(ranked.lids), np.bool_)
    chosen[:count] = diversifier.chosen(ranked.lids[:count], rerank_count, diversifier.min_groups)
    return ranked.of(np.argsort(~chosen, kind="stable")), int(np.count_nonzero(chosen))


def reranked_count(profile: CompiledProfile) -> int:
    """How many hits the second phase ranks."""
    return profile.rerank_count if profile.second_phase is not None else 0


# The global phase: the best hits of one document type, merged from all nodes, are ranked again.
#
# The container does it (`container.search.global_ranking`), but for one class of query: where the hits that it would
# rank come from one node that searches one document type, that node ranks them itself and writes the page alone, not
# all hits that may be ranked. Both do it by the functions here, and give the same page.
#
# Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#using-a-global-phase-expression


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
