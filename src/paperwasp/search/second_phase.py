"""The second phase: the best hits of the first are scored by another expression, the others are moved below them.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from paperwasp.core.clock import OutOfTime
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.search.blocks import blocks_of
from paperwasp.search.bound import BoundQuery
from paperwasp.search.features.block import Block, FirstPhase
from paperwasp.search.mutations import ON_SECOND_PHASE
from paperwasp.search.profiling import EXPRESSION, SECOND_PHASE
from paperwasp.search.ranked import NO_SCORES, TIMEOUT, RankedHits, Scores, finite
from paperwasp.search.rescaling import NOT_RESCALED, Rescaling
from paperwasp.search.scoring import scores_of


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
    block = Block(bound.setting, lids, _known_first(first), profile.phases, end)
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


def _known_first(scores: Scores) -> dict[str, Scores]:
    """The first phase's scores as `firstPhase`, where they are the values of its expression."""
    return {"firstPhase": scores} if np.isfinite(scores).all() else {}
