"""The first phase: the best of all matches, found by a kernel without scoring all, or scored in blocks of lids.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import OutOfTime
from paperwasp.features.block import Block
from paperwasp.operators.field_match import Lids
from paperwasp.search.best_hits import best_of, best_with
from paperwasp.search.blocks import FIRST_BLOCK_LIDS, blocks_of, first_block
from paperwasp.search.bound import BoundQuery
from paperwasp.search.known_features import NO_FEATURES, FeatureNotes, KnownFeatures
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH
from paperwasp.search.paging import ranked_behind
from paperwasp.search.profiling import EXPRESSION, FIRST_PHASE
from paperwasp.search.pruning import pruned_hits
from paperwasp.search.ranked import NO_LIDS, NO_SCORES, NOT_DEGRADED, TIMEOUT, Matches, RankedHits, Scores, finite
from paperwasp.search.rescaling import Rescaling
from paperwasp.search.scoring import scores_in_time, scores_of


def pruned(bound: BoundQuery, kept: int) -> RankedHits | None:
    """Return the best `kept` as a kernel finds them; None where every match has to be scored."""
    observer = bound.observer
    if bound.limiter is not None or bound.setting.features or observer.wants(ON_MATCH, ON_FIRST_PHASE):
        return None
    with observer.task(FIRST_PHASE, "top_k"):
        found = pruned_hits(bound.setting.operator, bound.profile, bound.setting, kept)
    if found is None:
        return None
    lids, scores = found.lids, found.scores
    in_time = found.searched == 1
    if not found.exact and in_time:
        lids, scores = _rescored(bound, lids)
    if observer.is_tracing:
        observer.step("match", "kernel best")
        observer.step("rank", "kernel best" if found.exact else "kernel best, then the rank program")
        least = float(scores[kept - 1]) if 0 < kept <= len(scores) else None
        observer.tag("top_k", lists=found.lists, wanted=kept, found=found.total_count, threshold=least)
    scored = found.searched
    if found.rest is not None and found.rest_count and in_time:
        rest = exhaustive(bound, Matches(found.rest, found.rest_count), kept)
        lids, scores = best_of(np.concatenate([lids, rest.lids]), np.concatenate([scores, rest.scores]), kept)
        scored = rest.coverage
    kept = min(kept, found.total_count)  # a weakAnd finds fewer than match
    highest = float(scores[0]) if len(scores) else -np.inf
    return _hits(bound, found.total_count, lids[:kept], scores[:kept], scored, highest)


def exhaustive(
    bound: BoundQuery, matches: Matches, kept: int, rescaling: Rescaling | None = None, without: Lids = NO_LIDS
) -> RankedHits:
    """Return the best `kept` of all matches, which are all scored.

    With `rescaling`, those of the page, by the relevances that it makes of scores. `without`: ascending lids of hits
    that the page has otherwise. What the first phase drops is not a hit, and not counted.
    """
    if rescaling is None and kept >= matches.count:
        hits = all_scored(bound, matches)
        return hits.of(np.argsort(-hits.scores, kind="stable"))
    lids = matches.lids(bound.setting.space.limit) if kept > 0 else NO_LIDS
    best_lids, best_scores = NO_LIDS, NO_SCORES
    scored = dropped = 0
    highest = -np.inf
    passed: list[Lids] = []
    notes = FeatureNotes(bound.plan.reused)
    for places in _blocks_of_all(bound, len(lids)):
        block = lids[places]
        floor = float(best_scores[-1]) if rescaling is None and len(best_scores) == kept else -np.inf
        found = _scored_in_time(bound, block, floor, notes, is_first=scored == 0)
        scored += len(found)
        highest = max(highest, _highest(found))
        near, scores = _above_drop_limit(bound, block[: len(found)], found)
        dropped += len(found) - len(near)
        passed.append(near)
        if rescaling is not None:
            scores = rescaling(scores)
            on_page = _on_page(bound, near, scores, without)
            near, scores = near[on_page], scores[on_page]
        best_lids, best_scores = best_with(best_lids, best_scores, near, scores, kept)
        if len(found) < len(block):
            share = scored / len(lids)
            return _hits(bound, scored - dropped, best_lids, best_scores, share, highest, matches)
    bound.observer.step("rank", "general (rank program in blocks)")
    bound.observer.tag("first_phase", scored=scored, kept=len(best_lids))
    bound.observer.reach(ON_FIRST_PHASE, passed)
    return _hits(bound, matches.count - dropped, best_lids, best_scores, 1.0, highest, matches, notes.known())


def all_scored(bound: BoundQuery, matches: Matches) -> RankedHits:
    """Return all matches with their scores, by ascending lid. What the first phase drops is not a hit, and not counted.

    Raises OutOfTime where there was no time for any.
    """
    lids = matches.lids(bound.setting.space.limit)
    notes = FeatureNotes(bound.plan.reused)
    passed: list[Lids] = []
    all_scores: list[Scores] = []
    done, highest = 0, -np.inf
    for places in _blocks_of_all(bound, len(lids)):
        block = lids[places]
        found = _scored_in_time(bound, block, -np.inf, notes, is_first=done == 0)
        done += len(found)
        highest = max(highest, _highest(found))
        near, scores = _above_drop_limit(bound, block[: len(found)], found)
        passed.append(near)
        all_scores.append(scores)
        if len(found) < len(block):
            break
    hits = passed[0] if len(passed) == 1 else np.concatenate([NO_LIDS, *passed])
    scores = all_scores[0] if len(all_scores) == 1 else np.concatenate([NO_SCORES, *all_scores])
    if done < len(lids):
        return _hits(bound, len(hits), hits, scores, done / len(lids), highest, matches)
    bound.observer.step("rank", "general (rank program in blocks)")
    bound.observer.tag("first_phase", scored=done, kept=len(hits))
    bound.observer.reach(ON_FIRST_PHASE, passed)
    return _hits(bound, len(hits), hits, scores, 1.0, highest, matches, notes.known())


def _blocks_of_all(bound: BoundQuery, count: int) -> Iterable[slice]:
    """The blocks of this number of hits: one where all have the same score."""
    if bound.profile.first_phase.constant is not None:
        return (slice(count),) if count else ()
    known_ns = bound.cost.known_ns
    first = FIRST_BLOCK_LIDS if known_ns is None else first_block(known_ns)
    return blocks_of(count, len(bound.setting.terms), first)


def first_phase_scores(bound: BoundQuery, lids: Lids) -> Scores:
    """Return the scores of lids in any order."""
    order = np.argsort(lids)
    scores = np.empty(len(lids))
    scores[order] = _scores(bound, lids[order])
    return scores


def _hits(
    bound: BoundQuery,
    count: int,
    lids: Lids,
    scores: Scores,
    scored: float,
    highest: float,
    matches: Matches | None = None,
    known: KnownFeatures = NO_FEATURES,
) -> RankedHits:
    """`scored`: the share of the matches that were ranked in time. `matches`: None: they were not all looked at."""
    degraded = NOT_DEGRADED if matches is None else matches.degraded
    return RankedHits(
        bound,
        count,
        lids,
        scores,
        scores,
        scored if matches is None else matches.coverage * scored,
        degraded if scored == 1 else degraded | TIMEOUT,
        highest,
        known=known,
    )


def _rescored(bound: BoundQuery, lids: Lids) -> tuple[Lids, Scores]:
    ascending = np.sort(lids)
    scores = _scores(bound, ascending)
    order = np.lexsort((ascending, -scores))
    return ascending[order], scores[order]


def _scores(bound: BoundQuery, lids: Lids) -> Scores:
    profile = bound.profile
    with bound.observer.task(FIRST_PHASE, EXPRESSION, len(lids)):
        return finite(scores_of(Block(bound.setting, lids, phases=profile.phases), profile.first_phase))


def _scored_in_time(bound: BoundQuery, lids: Lids, floor: float, notes: FeatureNotes, *, is_first: bool) -> Scores:
    """The scores of as many as there was time for; those that are not above the floor need not be known. None of
    the first block is an error: OutOfTime."""
    if not is_first and bound.is_over():
        return NO_SCORES
    profile = bound.profile
    try:
        with bound.observer.task(FIRST_PHASE, EXPRESSION, len(lids)):
            prunes = profile.first_phase.is_feature and profile.rank_score_drop_limit is None
            floor = floor if prunes else -np.inf
            block = Block(bound.setting, lids, phases=profile.phases, score_floor=floor)
            begun_ns = time.thread_time_ns()
            scores = scores_in_time(block, profile.first_phase)
            bound.cost.ranked(len(scores), time.thread_time_ns() - begun_ns)
            notes.note(block)
            return finite(scores)
    except OutOfTime:
        if is_first:
            raise
        return NO_SCORES


def _above_drop_limit(bound: BoundQuery, lids: Lids, scores: Scores) -> tuple[Lids, Scores]:
    limit = bound.profile.rank_score_drop_limit
    if limit is None:
        return lids, scores
    kept = scores > limit
    return lids[kept], scores[kept]


def _on_page(bound: BoundQuery, lids: Lids, scores: Scores, without: Lids) -> NDArray[np.bool_]:
    """Which hits the page may have."""
    on_page = ~np.isin(lids, without) if len(without) else np.ones(len(lids), np.bool_)
    after = bound.query.order.after
    if after is not None:
        on_page &= ranked_behind(lids, scores, after)
    return on_page


def _highest(scores: Scores) -> float:
    return float(scores.max(initial=-np.inf))
