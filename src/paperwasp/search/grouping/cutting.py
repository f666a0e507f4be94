"""Which groups of a level are left, and their order.

Groups are ordered by the keys of `order`, then by the relevance of their best hit, falling. Where there are more than
a node may give, those that it meets first among the hits in their order are taken of equal ones; in an answer they are
in the order of their ids. Where nothing is ordered, or only the best hits are grouped, the groups that are met first
are taken.

Vespa: aggregation/group.cpp (`cmpRank`, `postMerge`), groupinglevel.h (`allowMoreGroups`), Group.java (`postMerge`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.grouping.ragged import Numbers
from paperwasp.search.grouping.request import GroupingRequest, Level
from paperwasp.search.grouping.value_columns import ranks_of
from paperwasp.search.grouping.values import Values


def most_groups(level: Level) -> int | None:
    """How many groups of one parent a node gives; None: all."""
    return level.max_groups if level.precision is None else level.precision


def takes_first(request: GroupingRequest) -> bool:
    """Whether the groups that are met first are taken."""
    return request.top_n is not None or not any(level.order for level in request.levels)


def key_ranks(level: Level, columns: Sequence[Values]) -> list[NDArray[Any]]:
    """Numbers that rise in the order of the groups, for each key of `order`."""
    found = []
    for key, values in zip(level.order, columns, strict=True):
        ranks = ranks_of(values)
        found.append(ranks if key.is_ascending else _reversed(ranks))
    return found


def first_groups(parents: NDArray[np.uint32], keys: Sequence[NDArray[Any]], most: int | None) -> Numbers:
    """The numbers of the first groups of each parent, by rising keys, most important first; parent by parent.

    keys: int64 or float64. Errors: OutOfTime.
    """
    return _core.first_groups(parents, list(keys), len(parents) if most is None else max(0, most))


def has_more(parents: NDArray[Any], most: int | None) -> bool:
    """Whether some parent has more groups than that."""
    return most is not None and len(parents) > most and int(np.bincount(parents).max(initial=0)) > most


def _reversed(ranks: NDArray[Any]) -> NDArray[Any]:
    """Numbers that rise where others fall. ~ does not overflow, as a minus of the least integer would."""
    return ~ranks if ranks.dtype.kind == "i" else -ranks
