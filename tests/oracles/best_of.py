"""The plain twin of core/rank/best_of.cpp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def best_of(
    lids: NDArray[np.uint32], scores: NDArray[np.float64], wanted: int
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """The lids and scores of the best hits, best first; of equal scores the lower lid. NaN is worse than any number.

    Errors of the kernel: ValueError unless there is a score for each lid; OutOfTime.
    """
    ranks = np.where(np.isnan(scores), -np.inf, scores)
    order = np.lexsort((lids, -ranks))[:wanted]
    return lids[order], scores[order]
