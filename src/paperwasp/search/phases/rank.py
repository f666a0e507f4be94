"""Ranks the documents of one type: the first of them by relevance, or in the order of a sorting.

Hits that are sorted are found level by level. The best of the first phase are those that a nearestNeighbor found, or
are found by a kernel, or by scoring all matches. With a second phase, or a page behind another, more of the best are
found than are shown, so that what moves does not go missing; where these are not enough, all are scored for the page.
Where the second phase drops hits, all are scored.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.mutations import ON_MATCH
from paperwasp.search.operators.field_match import Bitmap, Lids
from paperwasp.search.phases.first_phase import all_scored, exhaustive, first_phase_scores, nearest, pruned
from paperwasp.search.phases.later_phases import rerank, reranked_count
from paperwasp.search.phases.order import RELEVANCE, ScoresOf, first_hits, ranked_behind, sorted_behind
from paperwasp.search.phases.ranked_hits import NOT_RESCALED, Matches, RankedHits, Rescaling, Scores, best_places
from paperwasp.search.query import SearchAfter
from paperwasp.storage.attributes.column import bitmap_of

_SHALLOW_HITS: Final = 1000
"""A page that is not deeper is found among this number of the best hits, where these are found without scoring all."""


def rank(bound: BoundQuery, wanted: int) -> RankedHits:
    """Return the first `wanted` hits, or the first behind the page before; ties: the lower lid first.

    Raises OutOfTime where there was no time for any hit.
    """
    profile = bound.profile
    if bound.levels:
        return _sorted(bound, wanted)
    if profile.second_phase is None and bound.query.order.after is None:
        if wanted > 0 and (found := nearest(bound, wanted)) is not None:
            return found
        return pruned(bound, wanted) or exhaustive(bound, match(bound), wanted)
    if profile.second_phase is not None and profile.second_phase_rank_score_drop_limit is not None:
        return _above_second_limit(bound, wanted)
    return _moved(bound, wanted)


def rank_all(bound: BoundQuery, matches: Matches | None = None) -> RankedHits:
    """Return all hits by ascending lid, with their scores. Raises OutOfTime where there was no time for any.

    `matches`: those of `match`, where they are known.
    """
    if matches is None:
        matches = match(bound)
    if bound.levels and not _needs_scores(bound):
        lids = matches.lids(bound.setting.space.limit)
        scores = _no_scores(lids)
        return RankedHits(bound, matches.count, lids, scores, scores, matches.coverage, matches.degraded)
    if bound.profile.second_phase is None:
        return all_scored(bound, matches)
    ranked, _ = rerank(bound, exhaustive(bound, matches, matches.count))
    return ranked.of(np.argsort(ranked.lids))


def page_of_all(bound: BoundQuery, ranked: RankedHits, wanted: int) -> RankedHits:
    """The first `wanted` of all hits, which are by ascending lid; or the first behind the page before."""
    if bound.levels:
        return _in_order(bound, ranked, wanted, bound.query.order.after)
    page = _behind_page(bound, ranked)
    return page.of(best_places(page.scores, wanted))


def sorted_places(bound: BoundQuery, ranked: RankedHits) -> NDArray[np.int64] | None:
    """The place in the order of the levels of each of all hits, which are by ascending lid; None: there are none."""
    if not bound.levels:
        return None
    places = np.empty(len(ranked.lids), np.int64)
    ordered = _in_order(bound, ranked, len(ranked.lids), None)
    places[np.searchsorted(ranked.lids, ordered.lids)] = np.arange(len(places))
    return places


def _moved(bound: BoundQuery, wanted: int) -> RankedHits:
    """The best, where hits move after the first phase, or those before the page are left out."""
    profile, after = bound.profile, bound.query.order.after
    known = max(wanted, reranked_count(profile), 0 if after is None else _SHALLOW_HITS) + 1
    ranked = pruned(bound, known)
    if ranked is None:
        matches = match(bound)
        if profile.second_phase is None:
            return exhaustive(bound, matches, wanted, NOT_RESCALED)
        ranked = exhaustive(bound, matches, known)
    reranked, rescaling = rerank(bound, ranked)
    # What is not known is below the last hit that is: what is above that one has its place.
    least = float(rescaling(ranked.first_phase[-1:])[0]) if len(ranked.lids) == known else -np.inf
    page = _behind_page(bound, reranked)
    is_whole = len(ranked.lids) < known or "timeout" in reranked.degraded
    if is_whole or np.count_nonzero(page.scores > least) >= wanted:
        return page.of(slice(wanted))
    return _with_others(bound, page, ranked, rescaling, wanted)


def _with_others(
    bound: BoundQuery, page: RankedHits, known: RankedHits, rescaling: Rescaling, wanted: int
) -> RankedHits:
    """The page, where it needs hits that are not among the best by the first phase: all are scored for it."""
    again = known.lids[: reranked_count(bound.profile)]
    others = exhaustive(bound, match(bound), wanted, rescaling, np.sort(again))
    own = page.of(np.isin(page.lids, again))
    lids = np.concatenate([own.lids, others.lids])
    scores = np.concatenate([own.scores, others.scores])
    first = np.concatenate([own.first_phase, first_phase_scores(bound, others.lids)])
    best = np.lexsort((lids, -scores))[:wanted]
    return replace(
        others,
        lids=lids[best],
        scores=scores[best],
        first_phase=first[best],
        highest=page.highest,
        reranked=page.reranked,
    )


def _above_second_limit(bound: BoundQuery, wanted: int) -> RankedHits:
    """The best, where the second phase drops hits: which, and how many are left, is known when all are scored."""
    matches = match(bound)
    reranked, _ = rerank(bound, exhaustive(bound, matches, matches.count))
    return _behind_page(bound, reranked).of(slice(wanted))


def _behind_page(bound: BoundQuery, ranked: RankedHits) -> RankedHits:
    after = bound.query.order.after
    return ranked if after is None else ranked.of(ranked_behind(ranked.lids, ranked.scores, after))


def _sorted(bound: BoundQuery, wanted: int) -> RankedHits:
    """The first in the order of the query's levels.

    Documents are only ranked where `[relevance]` is among them, hits are dropped by their score, or documents are
    streamed; else the relevance of all is 0. Vespa: matcher.cpp (`willNeedRanking`), searchvisitor.cpp
    (`handleDocument`).
    """
    matches = match(bound)
    if _needs_scores(bound):
        ranked, _ = rerank(bound, exhaustive(bound, matches, matches.count))
        return _in_order(bound, ranked, wanted, bound.query.order.after)
    lids = _first(bound, matches.bitmap, wanted, _no_scores, bound.query.order.after)
    bound.observer.step("order", "kernel sorting")
    scores = _no_scores(lids)
    return RankedHits(bound, matches.count, lids, scores, scores, matches.coverage, matches.degraded)


def _needs_scores(bound: BoundQuery) -> bool:
    """Whether hits that are sorted have a relevance."""
    drops = bound.profile.rank_score_drop_limit is not None
    return drops or bound.setting.space.streamed or any(level.field == RELEVANCE for level in bound.levels)


def _in_order(bound: BoundQuery, ranked: RankedHits, wanted: int, after: SearchAfter | None) -> RankedHits:
    """The first of all hits in the order of the levels, or the first behind the page before."""
    ascending = np.argsort(ranked.lids, kind="stable")
    known, scores = ranked.lids[ascending], ranked.scores[ascending]
    bitmap = bitmap_of(known, bound.setting.space.limit)
    lids = _first(bound, bitmap, wanted, lambda lids: scores[np.searchsorted(known, lids)], after)
    return ranked.of(ascending[np.searchsorted(known, lids)])


def _first(bound: BoundQuery, matches: Bitmap, wanted: int, scores_of: ScoresOf, after: SearchAfter | None) -> Lids:
    """The first of the matches, or the first behind the page before."""
    levels, limit = bound.levels, bound.setting.space.limit
    if after is not None:
        lids = _core.bitmap_lids(matches, limit)
        matches = bitmap_of(lids[sorted_behind(levels, lids, scores_of, limit, after)], limit)
    lids = first_hits(levels, matches, limit, wanted, scores_of)
    bound.observer.tag("sorting", levels=len(levels))
    return lids


def _no_scores(lids: Lids) -> Scores:
    return np.zeros(len(lids))


_MATCH_PHASE: Final = frozenset({"match-phase"})


def match(bound: BoundQuery) -> Matches:
    """Return all documents that match; with a match-phase, those of them that it leaves. Raises OutOfTime."""
    space, observer = bound.setting.space, bound.observer
    bitmap = bound.setting.operator.bitmap() & space.accept
    limited = None if bound.limiter is None else bound.limiter.limited(bitmap)
    left = bitmap if limited is None else limited.matches
    count = _core.bitmap_count(left, space.accept)
    observer.step("match", "general (bitmaps)")
    observer.tag("matching", matches=count, limited=limited is not None)
    if observer.wants(ON_MATCH):
        observer.reach(ON_MATCH, [_core.bitmap_lids(left, space.limit)])
    if limited is None:
        return Matches(bitmap, count)
    return Matches(left, count, limited.documents / space.documents, _MATCH_PHASE)
