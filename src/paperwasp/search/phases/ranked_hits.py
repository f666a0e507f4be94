"""Matches and ranked hits, which the steps of a query hand to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking import Program, RankValue
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.features.block import Block, FirstPhase
from paperwasp.search.operators.field_match import Bitmap, Lids
from paperwasp.search.phases.scoring import NO_FEATURES, KnownFeatures, features_of, scores_of

Scores = NDArray[np.float64]
NO_LIDS: Final = np.zeros(0, np.uint32)
NO_SCORES: Final = np.zeros(0)
TIMEOUT: Final = frozenset({"timeout"})
NOT_DEGRADED: Final = frozenset[str]()


class Matches(Struct, frozen=True, eq=False):
    """The documents that match."""

    bitmap: Bitmap
    count: int
    coverage: float = 1.0
    degraded: frozenset[str] = NOT_DEGRADED

    def lids(self, limit: int) -> Lids:
        """Ascending."""
        return _core.bitmap_lids(self.bitmap, limit)


class RankedHits(Struct, frozen=True, eq=False):
    """Hits of one document type, best first. `first_phase` are the scores before the second phase."""

    bound: BoundQuery
    total_count: int
    lids: Lids
    scores: Scores
    first_phase: Scores
    coverage: float = 1.0
    """The share of the documents that was searched."""
    degraded: frozenset[str] = NOT_DEGRADED
    """Why not all: "timeout", "match-phase"."""
    highest: float | None = None
    """The highest score of the first phase; None: the hits were not ranked."""
    reranked: Lids | None = None
    """The hits that the second phase ranked, best first by the first; None: it ranked none."""
    known: KnownFeatures = NO_FEATURES
    """Features that the first phase computed of them, and of others."""
    is_final: bool = False
    """Whether no other phase ranks them: they are those of the page, in its order."""

    @property
    def first_phase_end(self) -> FirstPhase | None:
        """The result of the first phase; None: the hits were not ranked."""
        if self.highest is None:
            return None
        return FirstPhase(self.highest, NO_LIDS if self.reranked is None else self.reranked)

    def of(self, places: slice | NDArray[Any], final_scores: Scores | None = None) -> RankedHits:
        """The hits at these places; with the scores of the last phase, where they are those of the page."""
        return RankedHits(  # not `replace`, which takes as long as all else
            self.bound,
            self.total_count,
            self.lids[places],
            self.scores[places] if final_scores is None else final_scores,
            self.first_phase[places],
            self.coverage,
            self.degraded,
            self.highest,
            self.reranked,
            self.known,
            final_scores is not None,
        )

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
        block = self._block(self.lids[picked], relevance, end)
        found = features_of(block, programs)
        return [found[place] for place in np.argsort(order).tolist()]

    def columns(self, programs: Mapping[str, Program], count: int) -> Scores:
        """The values of programs for the first `count` hits: a row a hit, a column a program."""
        features = [program.feature for program in programs.values()]
        known = self.known.of(self.lids[:count])
        columns = [known[feature.name] for feature in features if feature is not None and feature.name in known]
        if columns and len(columns) == len(features):
            return np.stack(columns, axis=1)
        order = np.argsort(self.lids[:count])
        relevance = {"relevance": self.scores[:count][order]}
        block = self._block(self.lids[:count][order], relevance)
        found = np.empty((count, len(programs)))
        for number, program in enumerate(programs.values()):
            found[order, number] = scores_of(block, program)
        return found

    def _block(self, lids: Lids, scores: Mapping[str, Scores], end: FirstPhase | None = None) -> Block:
        bound = self.bound
        return Block(bound.setting, lids, scores, bound.profile.phases, end, known=dict(self.known.of(lids)))


def finite(scores: Scores) -> Scores:
    """Replace what is not a finite number by -inf, as Vespa does: below all others, and rendered as "-Infinity"."""
    is_finite = np.isfinite(scores)
    return scores if is_finite.all() else np.where(is_finite, scores, -np.inf)


# The best of hits with scores: of all at once, or of one block after another.


def best_with(best: Lids, best_scores: Scores, lids: Lids, scores: Scores, kept: int) -> tuple[Lids, Scores]:
    """The best `kept` with more hits, all of whose lids are above theirs, or some below: of the former only higher
    scores than the last one's matter, once there are `kept`."""
    if not len(best):
        return best_of(lids, scores, kept)
    if len(best) == kept:
        last = best_scores[-1]
        better = np.flatnonzero(scores > last if not len(lids) or lids[0] > best.max() else scores >= last)
        if not len(better):
            return best, best_scores
        lids, scores = lids[better], scores[better]
    return best_of(np.concatenate([best, lids]), np.concatenate([best_scores, scores]), kept)


def best_of(lids: Lids, scores: Scores, kept: int) -> tuple[Lids, Scores]:
    """The best `kept`, best first. NaN is worse than any number."""
    return _core.best_of(lids, scores, kept)


def best_places(scores: Scores, kept: int) -> NDArray[np.int64]:
    """The places of the best `kept`, best first; of equal ones the lower place first. None of the scores is NaN."""
    if kept == 0:
        return np.zeros(0, np.int64)
    return _core.first_groups(np.zeros(len(scores), np.uint32), [-scores], kept)


# Scores of the hits that a later phase does not rank: they are scaled and moved below those that it does, so that one
# order holds for all. The second phase and the global phase do so alike.
#
# Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html


class Rescaling(Struct, frozen=True):
    """How scores of the phase before become relevances. Never falls where the score rises."""

    scale: float = 1.0
    shift: float = 0.0
    most: float = np.inf
    """No relevance is above it."""

    @classmethod
    def below(cls, first: Scores, second: Scores) -> Rescaling:
        """Below hits that had the scores `first` and now have `second`: into the range of these, if that has fallen."""
        first, second = first[np.isfinite(first)], second[np.isfinite(second)]
        if len(first) == 0 or len(second) == 0:
            return cls()
        low, high, least = float(first.min()), float(first.max()), float(second.min())
        if low <= least:
            return cls()
        scale = max(float(second.max()) - least, 1.0) / max(high - low, 1.0)
        return cls(scale, low * scale - least, least)

    def __call__(self, scores: Scores) -> Scores:
        with np.errstate(invalid="ignore"):
            moved = np.minimum(scores * self.scale - self.shift, self.most)
        return np.where(np.isneginf(scores), scores, moved)


NOT_RESCALED = Rescaling()
