"""The first phase: the best of all matches, found by a kernel without scoring all, or scored in blocks of lids.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

import time
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.ranking.program import find_best_of
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.block import Block
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH
from paperwasp.search.observe import EXPRESSION, FIRST_PHASE
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.operators.nearest_neighbor import NearestNeighborMatch, NearestNeighborOperator
from paperwasp.search.phases.order import ranked_behind
from paperwasp.search.phases.pruning import pruned_hits
from paperwasp.search.phases.ranked_hits import (
    NO_LIDS,
    NO_SCORES,
    NOT_DEGRADED,
    TIMEOUT,
    Matches,
    RankedHits,
    Rescaling,
    Scores,
    best_of,
    best_with,
    finite,
)
from paperwasp.search.phases.scored_blocks import KERNEL_THREAD_NS, score_blocks, threads_worth
from paperwasp.search.phases.scoring import NO_FEATURES, FeatureNotes, KnownFeatures, scores_of

_ANY: Final = np.zeros(1, np.uint32)
"""Some document: what is the same for all hits is computed for it."""


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
        lids = np.sort(lids)
        scores = _scores(bound, lids)
        order = np.lexsort((lids, -scores))
        lids, scores = lids[order], scores[order]
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
    if rescaling is None and (found := _best_by_kernel(bound, matches, kept)) is not None:
        return found
    lids = matches.lids(bound.setting.space.limit) if kept > 0 else NO_LIDS
    best, notes = _Best(bound, kept, rescaling, without), FeatureNotes(bound.ready.reused)
    scored = score_blocks(bound, lids, notes, best.take)
    if scored < len(lids):
        share = scored / len(lids)
        return _hits(bound, scored - best.dropped, best.lids, best.scores, share, best.highest, matches)
    bound.observer.step("rank", "general (rank program in blocks)")
    bound.observer.tag("first_phase", scored=scored, kept=len(best.lids))
    bound.observer.reach(ON_FIRST_PHASE, best.passed())
    count = matches.count - best.dropped
    return _hits(bound, count, best.lids, best.scores, 1.0, best.highest, matches, notes.known())


def _best_by_kernel(bound: BoundQuery, matches: Matches, kept: int) -> RankedHits | None:
    """Return the best `kept` by a feature, such as nativeRank or a dot product, as a kernel finds them; None where all
    matches have to be scored."""
    profile, observer = bound.profile, bound.observer
    feature = profile.first_phase.feature
    find_best = None if feature is None else find_best_of(feature)
    if find_best is None or kept <= 0 or not matches.count or bound.setting.features:
        return None
    if profile.rank_score_drop_limit is not None or observer.wants(ON_FIRST_PHASE):
        return None
    with observer.task(FIRST_PHASE, EXPRESSION, matches.count):
        threads = threads_worth(bound, matches.count, matches.count * bound.cost.first_ns, KERNEL_THREAD_NS)
        found = find_best(Block(bound.setting, _ANY), matches.bitmap, kept, threads, bound.helpers.work)
        if found is None:
            return None
        bound.cost.ranked(found.searched, found.spent_ns)
    observer.step("rank", "kernel best")
    observer.tag("first_phase", searched=found.searched, kept=len(found.lids))
    share = found.searched / matches.count
    highest = float(found.scores[0]) if len(found.scores) else -np.inf
    return _hits(bound, matches.count, found.lids, found.scores, share, highest, matches)


def all_scored(bound: BoundQuery, matches: Matches) -> RankedHits:
    """Return all matches with their scores, by ascending lid. What the first phase drops is not a hit, and not counted.

    Raises OutOfTime where there was no time for any.
    """
    lids = matches.lids(bound.setting.space.limit)
    every, notes = _Every(bound, lids), FeatureNotes(bound.ready.reused)
    scored = score_blocks(bound, lids, notes, every.take)
    hits, scores = every.hits()
    if scored < len(lids):
        return _hits(bound, len(hits), hits, scores, scored / len(lids), every.highest, matches)
    bound.observer.step("rank", "general (rank program in blocks)")
    bound.observer.tag("first_phase", scored=scored, kept=len(hits))
    bound.observer.reach(ON_FIRST_PHASE, every.passed())
    return _hits(bound, len(hits), hits, scores, 1.0, every.highest, matches, notes.known())


class _Scored:
    """The best hits of blocks, which come in any order."""

    def __init__(self, bound: BoundQuery) -> None:
        self._bound = bound
        self._passed: list[tuple[int, Lids]] = []
        """The number of the first hit of a block among all, and those that are not dropped."""
        self.dropped = 0
        self.highest = -np.inf

    def _above_drop_limit(self, number: int, lids: Lids, scores: Scores) -> tuple[Lids, Scores]:
        self.highest = max(self.highest, float(scores.max(initial=-np.inf)))
        near, limit = lids, self._bound.profile.rank_score_drop_limit
        if limit is not None:
            kept = scores > limit
            near, scores = lids[kept], scores[kept]
            self.dropped += len(lids) - len(near)
        self._passed.append((number, near))
        return near, scores

    def passed(self) -> list[Lids]:
        """The lids that are not dropped, rising."""
        return [lids for _, lids in sorted(self._passed, key=itemgetter(0))]


class _Every(_Scored):
    """All of them with their scores."""

    def __init__(self, bound: BoundQuery, lids: Lids) -> None:
        """`lids`: of all that are to be scored."""
        super().__init__(bound)
        self._lids = lids
        self._scores: Scores | None = None
        """The scores of all, where they come in several blocks; the hits that passed tell which have come."""
        self._taken: dict[int, Scores] = {}
        """By the number of the first hit of a block: the scores that are not dropped."""

    def take(self, number: int, lids: Lids, scores: Scores) -> float:
        _, above = self._above_drop_limit(number, lids, scores)
        if len(above) < len(lids) or len(lids) == len(self._lids):
            self._taken[number] = above
            return -np.inf
        if self._scores is None:
            self._scores = np.empty(len(self._lids))
        to = self._scores[number : number + len(lids)]
        to[:] = above
        self._taken[number] = to
        return -np.inf

    def hits(self) -> tuple[Lids, Scores]:
        """Return them by rising lid."""
        blocks, count = self.passed(), sum(map(len, self._taken.values()))
        if self._scores is not None and count == len(self._lids):
            return self._lids, self._scores
        scores = [self._taken[number] for number in sorted(self._taken)]
        if len(blocks) == 1:
            return blocks[0], scores[0]
        return np.concatenate([NO_LIDS, *blocks]), np.concatenate([NO_SCORES, *scores])


class _Best(_Scored):
    """The best of them: with `rescaling`, of those that the page may have, by the relevances that it makes of scores.
    `without`: ascending lids of hits that the page has otherwise."""

    def __init__(self, bound: BoundQuery, kept: int, rescaling: Rescaling | None, without: Lids) -> None:
        super().__init__(bound)
        self._kept = kept
        self._rescaling = rescaling
        self._without = without
        self.lids, self.scores = NO_LIDS, NO_SCORES

    def take(self, number: int, lids: Lids, scores: Scores) -> float:
        near, scores = self._above_drop_limit(number, lids, scores)
        if self._rescaling is not None:
            scores = self._rescaling(scores)
            on_page = _on_page(self._bound, near, scores, self._without)
            near, scores = near[on_page], scores[on_page]
        self.lids, self.scores = best_with(self.lids, self.scores, near, scores, self._kept)
        is_full = self._rescaling is None and len(self.scores) == self._kept
        return float(self.scores[-1]) if is_full else -np.inf


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


def _scores(bound: BoundQuery, lids: Lids) -> Scores:
    profile = bound.profile
    with bound.observer.task(FIRST_PHASE, EXPRESSION, len(lids)):
        return finite(scores_of(Block(bound.setting, lids, phases=profile.phases), profile.first_phase))


def _on_page(bound: BoundQuery, lids: Lids, scores: Scores, without: Lids) -> NDArray[np.bool_]:
    """Which hits the page may have."""
    on_page = ~np.isin(lids, without) if len(without) else np.ones(len(lids), np.bool_)
    after = bound.query.order.after
    if after is not None:
        on_page &= ranked_behind(lids, scores, after)
    return on_page


# The first phase of a query that is one nearestNeighbor, ranked by the closeness that it has found: nothing else is
# computed, neither a bitmap of what matches nor blocks of hits.


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
