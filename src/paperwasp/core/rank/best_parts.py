"""The best hits of a bitmap as kernels find them in parts of the lids, which several threads may take."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

Part = tuple[int, int]
"""The first lid of a part, and the first one behind it. Both begin a word of the bitmap, unless there are no more."""
ALL: Final[Part] = (0, 2**32 - 1)
_PARTS_OF_THREAD: Final = 4
"""Then all threads end at about the same time. A part takes about 10 µs more than its share."""


class BestHits(NamedTuple):
    """Best first; of equal scores the lower lid first."""

    lids: NDArray[np.uint32]
    scores: NDArray[np.float64]
    searched: int
    """Hits that were scored, or seen not to be among the best, before the time was over."""
    spent_ns: int
    """Of processor time, of all threads."""


def parts_for(threads: int, limit: int) -> list[Part]:
    """Parts of the lids below a limit for this number of threads, all about as large."""
    words, parts = -(-limit // 64), threads * _PARTS_OF_THREAD
    return list(pairwise([64 * (words * part // parts) for part in range(parts)] + [ALL[1]]))


def joined(parts: Sequence[BestHits], count: int) -> BestHits:
    """The best `count` of all parts."""
    if len(parts) == 1:
        return parts[0]
    lids, scores = _core.best_of(
        np.concatenate([each.lids for each in parts]), np.concatenate([each.scores for each in parts]), count
    )
    return BestHits(lids, scores, sum(each.searched for each in parts), sum(each.spent_ns for each in parts))
