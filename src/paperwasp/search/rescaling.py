"""Scores of the hits that a later phase does not rank: they are scaled and moved below those that it does, so that one
order holds for all. The second phase and the global phase do so alike.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rescaling:
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
