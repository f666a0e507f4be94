"""The plain twin of core/rank/weak_and.cpp: which documents a weakAnd finds."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

ADJUST_HITS: Final = 4
"""The threshold is brought up to date after this number of hits."""


def select_weakly(
    children: Sequence[NDArray[np.bool_]],
    scores: Sequence[int],
    accept: NDArray[np.bool_],
    target: int,
    threshold: int,
) -> list[int]:
    """The lids that are hits, rising. `children`: for each, which documents it matches.

    A document scores the sum of its children's scores, and is a hit if that reaches the threshold as it is when its
    turn comes: the least of the best `target` scores of the hits before it, and never below the one given.
    """
    hits: list[int] = []
    best: list[int] = []
    latest: list[int] = []
    for lid in np.flatnonzero(accept).tolist():
        matched = [score for child, score in zip(children, scores, strict=True) if child[lid]]
        if not matched or sum(matched) < threshold:
            continue
        hits.append(lid)
        latest.append(sum(matched))
        if len(latest) == ADJUST_HITS:
            best = heapq.nlargest(target, [*best, *latest])
            latest = []
            if len(best) == target:
                threshold = max(threshold, best[-1])
    return hits
