"""Ranks the documents of one type: matching, first phase, second phase, or sorting.

Matches are scored in blocks of lids, never one by one; the best are kept.
Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.match_context import BlockContext, QuerySetting
from paperwasp.content.messages import SortKey
from paperwasp.content.pruning import pruned_hits
from paperwasp.core import _core
from paperwasp.features.execution import BlockEvaluator
from paperwasp.operators import Operator
from paperwasp.ranking import CompiledProfile, Program

BLOCK_LIDS: Final = 16_384

Lids = NDArray[np.uint32]
Scores = NDArray[np.float64]


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
    """The share of the matches that was scored before the deadline."""

    def features(self, programs: Mapping[str, Program], places: Sequence[int]) -> list[dict[str, float]]:
        """name → value of rank features, for the hits at these places."""
        if not programs or not places:
            return [{} for _ in places]
        order = np.argsort(self.lids[places])
        picked = np.asarray(places)[order]
        phases = {"firstPhase": self.first_phase[picked], "secondPhase": self.scores[picked]}
        context = BlockContext(self.setting, self.lids[picked], phases)
        columns = BlockEvaluator(context).evaluate_all(programs)
        rows: list[dict[str, float]] = [{} for _ in places]
        for name, column in columns.items():
            for place, value in zip(order.tolist(), column.tolist(), strict=True):
                rows[place][name] = value
        return rows


@dataclass(frozen=True, eq=False)
class Ranker:
    """One query, planned for one document type."""

    operator: Operator
    profile: CompiledProfile
    setting: QuerySetting
    out_of_time: Callable[[], bool]

    def best(self, wanted: int) -> RankedHits:
        """The best `wanted` by relevance; ties: the lower lid first."""
        kept = max(wanted, self.profile.rerank_count) if self.profile.second_phase is not None else wanted
        pruned = pruned_hits(self.operator, self.profile, self.setting, kept)
        if pruned is not None:
            lids, scores = pruned.lids, pruned.scores
            if not pruned.exact:
                lids, scores = self._rescored(lids)
            ranked = self._ranked(pruned.total_count, lids[:kept], scores[:kept])
        else:
            ranked = self._exhaustive(kept)
        return self._second_phase(ranked, wanted) if self.profile.second_phase is not None else ranked

    def _ranked(self, total_count: int, lids: Lids, scores: Scores, coverage: float = 1.0) -> RankedHits:
        return RankedHits(self.setting, self.profile, total_count, lids, scores, scores, coverage)

    def _rescored(self, lids: Lids) -> tuple[Lids, Scores]:
        rising = np.sort(lids)
        scores = self._first_phase(rising)
        order = np.lexsort((rising, -scores))
        return rising[order], scores[order]

    def _first_phase(self, lids: Lids) -> Scores:
        """What is no finite number is -inf, as in Vespa: below all others, and rendered as "-Infinity"."""
        scores = BlockEvaluator(BlockContext(self.setting, lids)).evaluate(self.profile.first_phase)
        return np.where(np.isfinite(scores), scores, -np.inf)

    def matches(self) -> Lids:
        """All documents that match, rising."""
        space = self.setting.space
        return _core.bitmap_lids(self.operator.bitmap() & space.accept, space.limit)

    def _exhaustive(self, kept: int) -> RankedHits:
        matches = self.matches()
        best_lids, best_scores = np.zeros(0, np.uint32), np.zeros(0)
        scored = 0
        for start in range(0, len(matches) if kept > 0 else 0, BLOCK_LIDS):
            if start > 0 and self.out_of_time():
                return self._ranked(scored, best_lids, best_scores, scored / len(matches))
            block = matches[start : start + BLOCK_LIDS]
            scored += len(block)
            lids, scores = self._above_drop_limit(block, self._first_phase(block))
            best_lids, best_scores = _best_of(
                np.concatenate([best_lids, lids]), np.concatenate([best_scores, scores]), kept
            )
        return self._ranked(len(matches), best_lids, best_scores)

    def _above_drop_limit(self, lids: Lids, scores: Scores) -> tuple[Lids, Scores]:
        limit = self.profile.rank_score_drop_limit
        if limit is None:
            return lids, scores
        kept = scores > limit
        return lids[kept], scores[kept]

    def _second_phase(self, ranked: RankedHits, wanted: int) -> RankedHits:
        """Ranks the best `rerank_count` anew; the others follow, below them."""
        assert self.profile.second_phase is not None
        count = min(self.profile.rerank_count, len(ranked.lids))
        order = np.argsort(ranked.lids[:count])
        lids, first = ranked.lids[:count][order], ranked.first_phase[:count][order]
        context = BlockContext(self.setting, lids, {"firstPhase": first})
        scores = BlockEvaluator(context).evaluate(self.profile.second_phase)
        by_score = np.lexsort((lids, -scores))
        rest = _moved_below(ranked.first_phase[count:], first, scores)
        all_lids = np.concatenate([lids[by_score], ranked.lids[count:]])
        all_scores = np.concatenate([scores[by_score], rest])
        all_first = np.concatenate([first[by_score], ranked.first_phase[count:]])
        if (limit := self.profile.second_phase_rank_score_drop_limit) is not None:
            kept = all_scores > limit
            all_lids, all_scores, all_first = all_lids[kept], all_scores[kept], all_first[kept]
        return RankedHits(
            self.setting, self.profile, ranked.total_count,
            all_lids[:wanted], all_scores[:wanted], all_first[:wanted], ranked.coverage,
        )  # fmt: skip

    def sorted_by(self, keys: Sequence[SortKey], wanted: int) -> RankedHits:
        """The first `wanted` in the order of the keys; ties: the lower lid first.

        An attribute that this document type does not have is unset in all its documents.
        """
        lids = self.matches()
        by_relevance = any(key.field == "[relevance]" for key in keys)
        scores = self._all_scores(lids) if by_relevance else np.zeros(len(lids))
        order = np.arange(len(lids))
        for key in reversed(keys):
            column = self.setting.sorting_column(key.field)
            if key.field == "[relevance]":
                order = order[stable_order(scores[order], bool(key.descending))]
            elif column is not None:
                order = order[stable_order(column.sort_keys(lids)[order], bool(key.descending))]
        order = order[:wanted]
        return self._ranked(len(lids), lids[order], scores[order])

    def _all_scores(self, lids: Lids) -> Scores:
        blocks = [self._first_phase(lids[i : i + BLOCK_LIDS]) for i in range(0, len(lids), BLOCK_LIDS)]
        return np.concatenate(blocks) if blocks else np.zeros(0)


def stable_order(values: NDArray[Any], descending: bool) -> NDArray[np.intp]:
    """The order that sorts `values`, equal ones as they were."""
    if not descending:
        return np.argsort(values, kind="stable")
    return len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1]


def _best_of(lids: Lids, scores: Scores, kept: int) -> tuple[Lids, Scores]:
    """The best `kept`, best first. NaN is worse than any number."""
    ranks = np.where(np.isnan(scores), -np.inf, scores)
    if len(lids) > 4 * kept:
        # Everything that reaches the score of the last one kept: ties there are decided by lid.
        least = np.partition(ranks, len(ranks) - kept)[len(ranks) - kept]
        near = ranks >= least
        lids, scores, ranks = lids[near], scores[near], ranks[near]
    order = np.lexsort((lids, -ranks))[:kept]
    return lids[order], scores[order]


def _moved_below(rest: Scores, first: Scores, second: Scores) -> Scores:
    """First-phase scores of hits that were not ranked anew, scaled and moved below those that were."""
    if len(rest) == 0:
        return rest
    first, second = first[np.isfinite(first)], second[np.isfinite(second)]
    if len(first) == 0 or len(second) == 0:
        return rest
    low, high = float(first.min()), float(first.max())
    scale = (float(second.max()) - float(second.min())) / (high - low) if high > low else 1.0
    with np.errstate(invalid="ignore"):
        moved = rest * scale - (low * scale - float(second.min()))
    return np.where(np.isneginf(rest), rest, moved)
