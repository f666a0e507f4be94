"""The best of hits with scores: of all at once, or of one block after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

Lids = NDArray[np.uint32]
Scores = NDArray[np.float64]


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
