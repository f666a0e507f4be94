"""Ranks the documents of one type: matching, first phase, second phase, or sorting.

Matches are scored in blocks of lids, never one by one; the best are kept.
Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.column import bitmap_of
from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime
from paperwasp.features.block import Block, FirstPhase
from paperwasp.features.setting import QuerySetting
from paperwasp.operators import Operator
from paperwasp.operators.field_match import Bitmap
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.search.best_hits import best_of, best_with
from paperwasp.search.diversity import Diversifier
from paperwasp.search.match_phase import Limiter
from paperwasp.search.mutations import ON_FIRST_PHASE, ON_MATCH, ON_SECOND_PHASE, Touched
from paperwasp.search.order import RELEVANCE, Level, ScoresOf, first_hits
from paperwasp.search.paging import ranked_behind, sorted_behind
from paperwasp.search.profiling import EXPRESSION, FIRST_PHASE, SECOND_PHASE, Profilers
from paperwasp.search.pruning import pruned_hits
from paperwasp.search.query import SearchAfter
from paperwasp.search.rank_cost import RankCost
from paperwasp.search.rescaling import NOT_MOVED, Moving
from paperwasp.search.scoring import features_of, scores_in_time, scores_of
from paperwasp.search.trace import QueryTrace
from paperwasp.tensor.value import Tensor

BLOCK_LIDS: Final = 16_384
FIRST_BLOCK_LIDS: Final = 256
LEAST_BLOCK_LIDS: Final = 64
BLOCK_NS: Final = 10_000_000
"""How long a block is computed, about: between blocks the clock is asked, and hits of whole blocks are the answer."""
MANY_TERMS: Final = 1024
"""So many may be ranked by in whole blocks."""
_SHALLOW_HITS: Final = 1000
"""A page that is not deeper is found among so many of the best hits, where these are found without scoring all."""

Lids = NDArray[np.uint32]
Scores = NDArray[np.float64]
_NOTHING: Final = nullcontext()
_NO_LIDS: Final = np.zeros(0, np.uint32)
_NO_SCORES: Final = np.zeros(0)


@dataclass(frozen=True, eq=False)
class RankedHits:
    """Hits of one document type, best first. `first_phase` are the scores before the second phase."""

    setting: QuerySetting
    profile: CompiledProfile
    total_count: int
    lids: Lids
    scores: Scores
    first_phase: Scores
    coverage: float = 1.0
    """The share of the documents that was searched."""
    degraded: frozenset[str] = frozenset()
    """Why not all: "timeout", "match-phase"."""
    first_phase_end: FirstPhase | None = None
    """None: the hits were not ranked."""
    touched: Touched | None = None

    def of(self, places: slice | NDArray[Any]) -> RankedHits:
        """The hits at these places."""
        return replace(self, lids=self.lids[places], scores=self.scores[places], first_phase=self.first_phase[places])

    def features(
        self, programs: Mapping[str, RankValue], places: Sequence[int], *, while_matching: bool = False
    ) -> list[dict[str, float | Tensor]]:
        """name → value of rank features, for the hits at these places. `while_matching`: with what is known only then,
        of the first phase as a whole."""
        if not programs or not places:
            return [{} for _ in places]
        order = np.argsort(self.lids[places])
        picked = np.asarray(places)[order]
        end = self.first_phase_end if while_matching else None
        relevance = {"relevance": self.scores[picked]}
        block = Block(self.setting, self.lids[picked], relevance, self.profile.phases, end)
        found = features_of(block, programs)
        return [found[place] for place in np.argsort(order).tolist()]


@dataclass(frozen=True, eq=False)
class Ranker:
    """One query, planned for one document type."""

    operator: Operator
    profile: CompiledProfile
    setting: QuerySetting
    out_of_time: Callable[[], bool]
    limiter: Limiter | None = None
    """match-phase, where the profile or the query asks for it."""
    diversifier: Diversifier | None = None
    """Of what the second phase ranks."""
    trace: QueryTrace | None = None
    after: SearchAfter | None = None
    """Only hits behind this one are wanted."""
    touched: Touched | None = None
    """Takes which documents reached which phase, where the profile changes them."""
    profilers: Profilers | None = None
    cost: RankCost = field(default_factory=RankCost)
    """Takes how long the phases took."""

    def best(self, wanted: int) -> RankedHits:
        """The best `wanted` by relevance; ties: the lower lid first. With `after`, the best of those behind it."""
        if self.profile.second_phase is None and self.after is None:
            return self._pruned(wanted) or self._exhaustive(self.matches(), wanted)
        if self.profile.second_phase is not None and self.profile.second_phase_rank_score_drop_limit is not None:
            return self._above_second_limit(wanted)
        known = max(wanted, self._reranked_count, 0 if self.after is None else _SHALLOW_HITS) + 1
        ranked = self._pruned(known)
        matches = self.matches() if ranked is None else None
        if matches is not None and self.profile.second_phase is None:
            return self._exhaustive(matches, wanted, NOT_MOVED)
        ranked = ranked or self._exhaustive(matches or self.matches(), known)
        reranked, moving = self._second_phase(ranked)
        # What is not known is below the last hit that is: what is above that one has its place.
        least = float(moving(ranked.first_phase[-1:])[0]) if len(ranked.lids) == known else -np.inf
        page = self._behind_page(reranked)
        is_whole = len(ranked.lids) < known or "timeout" in reranked.degraded
        if is_whole or np.count_nonzero(page.scores > least) >= wanted:
            return page.of(slice(wanted))
        return self._with_others(page, ranked, moving, wanted)

    def _above_second_limit(self, wanted: int) -> RankedHits:
        """As `best`, where the second phase drops hits: which, and how many are left, is known when all are scored."""
        matches = self.matches()
        reranked, _ = self._second_phase(self._exhaustive(matches, matches.count))
        return self._behind_page(reranked).of(slice(wanted))

    def _with_others(self, page: RankedHits, known: RankedHits, moving: Moving, wanted: int) -> RankedHits:
        """The page, where it needs hits that are not among the best by the first phase: all are scored for it."""
        again = known.lids[: self._reranked_count] if self.profile.second_phase is not None else known.lids[:0]
        matches = self.matches()
        others = self._exhaustive(matches, wanted, moving, np.sort(again))
        own = page.of(np.isin(page.lids, again))
        lids = np.concatenate([own.lids, others.lids])
        scores = np.concatenate([own.scores, others.scores])
        first = np.concatenate([own.first_phase, self._first_phase_of(others.lids)])
        best = np.lexsort((lids, -scores))[:wanted]
        return replace(
            others,
            lids=lids[best],
            scores=scores[best],
            first_phase=first[best],
            first_phase_end=page.first_phase_end,
        )

    @property
    def _reranked_count(self) -> int:
        return self.profile.rerank_count if self.profile.second_phase is not None else 0

    def _behind_page(self, ranked: RankedHits) -> RankedHits:
        return ranked if self.after is None else ranked.of(ranked_behind(ranked.lids, ranked.scores, self.after))

    def _pruned(self, kept: int) -> RankedHits | None:
        if self.limiter is not None or self.setting.features:
            return None
        if self.touched is not None and self.touched.wants(ON_MATCH, ON_FIRST_PHASE):
            return None
        with self._task(FIRST_PHASE, "top_k"):
            pruned = pruned_hits(self.operator, self.profile, self.setting, kept)
        if pruned is None:
            return None
        lids, scores = pruned.lids, pruned.scores
        in_time = pruned.searched == 1
        if not pruned.exact and in_time:
            lids, scores = self._rescored(lids)
        if self.trace is not None:
            self._note("match", "kernel best")
            self._note("rank", "kernel best" if pruned.exact else "kernel best, then the rank program")
            least = float(scores[kept - 1]) if 0 < kept <= len(scores) else None
            self.trace.tag("top_k", lists=pruned.lists, wanted=kept, found=pruned.total_count, threshold=least)
        scored = pruned.searched
        if pruned.rest_count and in_time:
            rest = self._exhaustive(Matches(pruned.rest, pruned.rest_count), kept)
            lids, scores = best_of(np.concatenate([lids, rest.lids]), np.concatenate([scores, rest.scores]), kept)
            scored = rest.coverage
        kept = min(kept, pruned.total_count)  # a weakAnd finds fewer than match
        return self._ranked(Matches(None, pruned.total_count), lids[:kept], scores[:kept], scored)

    def _ranked(
        self, matches: Matches, lids: Lids, scores: Scores, scored: float = 1.0, highest: float | None = None
    ) -> RankedHits:
        """`scored`: the share of the matches that were ranked in time. `highest`: of all first phase's scores, where
        that is not the first."""
        if highest is None:
            highest = float(scores[0]) if len(scores) else -np.inf
        degraded = matches.degraded | ({"timeout"} if scored < 1 else frozenset())
        return RankedHits(
            self.setting,
            self.profile,
            matches.count,
            lids,
            scores,
            scores,
            matches.coverage * scored,
            degraded,
            first_phase_end=FirstPhase(highest, _NO_LIDS),
            touched=self.touched,
        )

    def _rescored(self, lids: Lids) -> tuple[Lids, Scores]:
        rising = np.sort(lids)
        scores = self._first_phase(rising)
        order = np.lexsort((rising, -scores))
        return rising[order], scores[order]

    def _first_phase(self, lids: Lids) -> Scores:
        with self._task(FIRST_PHASE, EXPRESSION, len(lids)):
            return _finite(scores_of(Block(self.setting, lids, phases=self.profile.phases), self.profile.first_phase))

    def _task(self, phase: str, name: str, count: int = 1) -> AbstractContextManager[None]:
        """Within it something is done that a profile of the phase tells of."""
        profiler = None if self.profilers is None else self.profilers.of(phase)
        return _NOTHING if profiler is None else profiler.task(name, count)

    def matches(self) -> Matches:
        """All documents that match; with a match-phase, those of them that it leaves."""
        space = self.setting.space
        bitmap = self.operator.bitmap() & space.accept
        limited = None if self.limiter is None else self.limiter.limited(bitmap)
        count = _core.bitmap_count(bitmap if limited is None else limited.matches, space.accept)
        self._note("match", "general (bitmaps)")
        self._tell("matching", matches=count, limited=limited is not None)
        if self.touched is not None and self.touched.wants(ON_MATCH):
            self.touched.note(ON_MATCH, _core.bitmap_lids(bitmap if limited is None else limited.matches, space.limit))
        if limited is None:
            return Matches(bitmap, count)
        return Matches(limited.matches, count, limited.documents / space.documents, frozenset({"match-phase"}))

    def _note(self, step: str, by: str) -> None:
        if self.trace is not None:
            self.trace.step(step, by)

    def _tell(self, phase: str, **told: object) -> None:
        if self.trace is not None:
            self.trace.tag(phase, **told)

    def _exhaustive(
        self, matches: Matches, kept: int, moving: Moving | None = None, without: Lids = _NO_LIDS
    ) -> RankedHits:
        """The best `kept` by the first phase. With `moving`, of the page: by the relevances that it makes.

        What the first phase drops is no hit, and not counted.
        """
        lids = matches.lids(self.setting.space.limit) if kept > 0 else _NO_LIDS
        best_lids, best_scores = _NO_LIDS, np.zeros(0)
        scored = dropped = 0
        highest = -np.inf
        passed: list[Lids] = []
        for places in _blocks(len(lids), self._block_lids):
            block = lids[places]
            floor = float(best_scores[-1]) if moving is None and len(best_scores) == kept else -np.inf
            found = self._scored_in_time(block, scored == 0, floor)
            scored += len(found)
            highest = max(highest, float(found.max(initial=-np.inf)))
            near, scores = self._above_drop_limit(block[: len(found)], found)
            dropped += len(found) - len(near)
            if self.touched is not None:
                passed.append(near)
            if moving is not None:
                scores = moving(scores)
                on_page = self._on_page(near, scores, without)
                near, scores = near[on_page], scores[on_page]
            best_lids, best_scores = best_with(best_lids, best_scores, near, scores, kept)
            if len(found) < len(block):
                counted = replace(matches, count=scored - dropped)
                return self._ranked(counted, best_lids, best_scores, scored / len(lids), highest)
        self._note("rank", "general (rank program in blocks)")
        self._tell("first_phase", scored=scored, kept=len(best_lids))
        if self.touched is not None:
            self.touched.note(ON_FIRST_PHASE, np.concatenate([_NO_LIDS, *passed]))
        return self._ranked(replace(matches, count=matches.count - dropped), best_lids, best_scores, highest=highest)

    def _on_page(self, lids: Lids, scores: Scores, without: Lids) -> NDArray[np.bool_]:
        """Which hits the page may have. `without`: rising lids of those that it has otherwise."""
        on_page = ~np.isin(lids, without) if len(without) else np.ones(len(lids), np.bool_)
        if self.after is not None:
            on_page &= ranked_behind(lids, scores, self.after)
        return on_page

    @property
    def _block_lids(self) -> int:
        """Fewer where terms are so many that what is known of each in a block would fill the memory."""
        return max(BLOCK_LIDS * MANY_TERMS // max(MANY_TERMS, len(self.setting.terms.operators)), 1)

    def _scored_in_time(self, lids: Lids, is_first: bool, floor: float) -> Scores:
        """The first phase's scores of as many as there was time for; those that are not above the floor need not be
        known. None of the first block is an error: OutOfTime."""
        if not is_first and self.out_of_time():
            return _NO_SCORES
        try:
            with self._task(FIRST_PHASE, EXPRESSION, len(lids)):
                program = self.profile.first_phase
                prunes = program.is_feature and self.profile.rank_score_drop_limit is None
                floor = floor if prunes else -np.inf
                block = Block(self.setting, lids, phases=self.profile.phases, score_floor=floor)
                begun_ns = time.thread_time_ns()
                scores = scores_in_time(block, program)
                self.cost.ranked(len(scores), time.thread_time_ns() - begun_ns)
                return _finite(scores)
        except OutOfTime:
            if is_first:
                raise
            return _NO_SCORES

    def _above_drop_limit(self, lids: Lids, scores: Scores) -> tuple[Lids, Scores]:
        limit = self.profile.rank_score_drop_limit
        if limit is None:
            return lids, scores
        kept = scores > limit
        return lids[kept], scores[kept]

    def _second_phase(self, ranked: RankedHits) -> tuple[RankedHits, Moving]:
        """Ranks the best `rerank_count` anew, or those that diversity leaves, and says what becomes of the others.

        Without a second phase, or time for it, the hits stay as the first phase ranked them.
        """
        if self.profile.second_phase is None:
            return ranked, NOT_MOVED
        try:
            if not self.out_of_time():
                return self._reranked(ranked)
        except OutOfTime:
            pass
        return replace(ranked, degraded=ranked.degraded | {"timeout"}), NOT_MOVED

    def _reranked(self, ranked: RankedHits) -> tuple[RankedHits, Moving]:
        ranked, count = self._diverse(ranked)
        order = np.argsort(ranked.lids[:count])
        lids, first = ranked.lids[:count][order], ranked.first_phase[:count][order]
        highest = -np.inf if ranked.first_phase_end is None else ranked.first_phase_end.highest
        end = FirstPhase(highest, ranked.lids[:count])
        block = Block(self.setting, lids, _known_first(first), self.profile.phases, end)
        begun_ns = time.thread_time_ns()
        with self._task(SECOND_PHASE, EXPRESSION, count):
            scores = self._second_scores(block)
        self.cost.reranked(count, time.thread_time_ns() - begun_ns)
        moving = Moving.below(first, scores)
        if self.diversifier is not None and count > 0:
            moving = replace(moving, most=float(scores.min()))
        all_lids = np.concatenate([lids, ranked.lids[count:]])
        all_scores = np.concatenate([scores, moving(ranked.first_phase[count:])])
        all_first = np.concatenate([first, ranked.first_phase[count:]])
        best = np.lexsort((all_lids, -all_scores))
        if (limit := self.profile.second_phase_rank_score_drop_limit) is not None:
            best = best[all_scores[best] > limit]
            ranked = replace(ranked, total_count=ranked.total_count - (len(all_lids) - len(best)))
        self._tell("second_phase", reranked=count)
        if self.touched is not None:
            self.touched.note(ON_SECOND_PHASE, lids)
        hits = replace(
            ranked, lids=all_lids[best], scores=all_scores[best], first_phase=all_first[best], first_phase_end=end
        )
        return hits, moving

    def _second_scores(self, block: Block) -> Scores:
        """The second phase's scores of all hits. Raises OutOfTime where the time is over between two blocks of them."""
        assert self.profile.second_phase is not None
        found: list[Scores] = []
        for places in _blocks(block.hits, self._block_lids):
            if found and self.out_of_time():
                raise OutOfTime
            found.append(scores_of(block.part(places), self.profile.second_phase))
        return _finite(np.concatenate([_NO_SCORES, *found]))

    def _diverse(self, ranked: RankedHits) -> tuple[RankedHits, int]:
        """The hits with those first that the second phase ranks, and how many these are."""
        count = min(self.profile.rerank_count, len(ranked.lids))
        if self.diversifier is None or count == 0:
            return ranked, count
        chosen = np.zeros(len(ranked.lids), np.bool_)
        chosen[:count] = self.diversifier.chosen(
            ranked.lids[:count], self.profile.rerank_count, self.diversifier.min_groups
        )
        order = np.argsort(~chosen, kind="stable")
        turned = replace(
            ranked, lids=ranked.lids[order], scores=ranked.scores[order], first_phase=ranked.first_phase[order]
        )
        return turned, int(np.count_nonzero(chosen))

    def sorted_by(self, levels: Sequence[Level], wanted: int) -> RankedHits:
        """The first `wanted` in the order of the levels; ties: the lower lid first.

        Documents are only ranked where `[relevance]` is among them, or hits are dropped by their score; else the
        relevance of all is 0. Vespa: matcher.cpp (`willNeedRanking`).
        """
        matches = self.matches()
        limit = self.setting.space.limit
        if self.profile.rank_score_drop_limit is None and not any(level.field == RELEVANCE for level in levels):
            bitmap = self._behind(levels, matches.needed, _no_scores)
            lids = first_hits(levels, bitmap, limit, wanted, _no_scores)
            self._note("order", "kernel sorting")
            self._tell("sorting", levels=len(levels))
            return replace(self._ranked(matches, lids, np.zeros(len(lids))), first_phase_end=None)
        ranked = self._exhaustive(matches, matches.count)
        ranked, _ = self._second_phase(ranked)
        rising = np.argsort(ranked.lids)
        known, scores = ranked.lids[rising], ranked.scores[rising]
        bitmap = self._behind(levels, bitmap_of(known, limit), lambda lids: scores[np.searchsorted(known, lids)])
        lids = first_hits(levels, bitmap, limit, wanted, lambda lids: scores[np.searchsorted(known, lids)])
        self._tell("sorting", levels=len(levels))
        places = rising[np.searchsorted(known, lids)]
        return replace(ranked, lids=lids, scores=ranked.scores[places], first_phase=ranked.first_phase[places])

    def _behind(self, levels: Sequence[Level], matches: Bitmap, scores_of: ScoresOf) -> Bitmap:
        """Those of the matches that the page is about."""
        if self.after is None:
            return matches
        limit = self.setting.space.limit
        lids = _core.bitmap_lids(matches, limit)
        return bitmap_of(lids[sorted_behind(levels, lids, scores_of, limit, self.after)], limit)

    def _first_phase_of(self, lids: Lids) -> Scores:
        """The first phase's scores of lids in any order."""
        order = np.argsort(lids)
        scores = np.empty(len(lids))
        scores[order] = self._first_phase(lids[order])
        return scores


@dataclass(frozen=True, eq=False, slots=True)
class Matches:
    """What matched. `bitmap` None: it was not made, since the best hits were found without it."""

    bitmap: Bitmap | None
    count: int
    coverage: float = 1.0
    degraded: frozenset[str] = field(default_factory=frozenset)

    @property
    def needed(self) -> Bitmap:
        assert self.bitmap is not None
        return self.bitmap

    def lids(self, limit: int) -> Lids:
        """Rising."""
        return _core.bitmap_lids(self.needed, limit)


def _blocks(hits: int, most: int) -> Iterator[slice]:
    """Yield slices of the hits in blocks, each sized so that its expression takes about BLOCK_NS.

    Expressions that are expensive for each hit, such as those over tensors, get small blocks, so that some hits have
    scores when the time is over.
    """
    start, size = 0, min(most, FIRST_BLOCK_LIDS)
    while start < hits:
        end = min(start + size, hits)
        begun_ns = time.monotonic_ns()
        yield slice(start, end)
        needed_ns = max(1, time.monotonic_ns() - begun_ns)
        wanted = min(4 * size, (end - start) * BLOCK_NS // needed_ns)
        start = end
        size = min(most, max(LEAST_BLOCK_LIDS, wanted))


def _finite(scores: Scores) -> Scores:
    """What is no finite number is -inf, as in Vespa: below all others, and rendered as "-Infinity"."""
    is_finite = np.isfinite(scores)
    return scores if is_finite.all() else np.where(is_finite, scores, -np.inf)


def _known_first(scores: Scores) -> dict[str, Scores]:
    """The first phase's scores as `firstPhase`, where they are the values of its expression."""
    return {"firstPhase": scores} if np.isfinite(scores).all() else {}


def _no_scores(lids: Lids) -> Scores:
    return np.zeros(len(lids))
