"""The plain twin of core/rank/forest.cpp: the sum of a forest of decision trees for each row, one after another.

A forest is arrays. `NODES`: a node goes right, to the child after its left one, where the value of its column is not
below its threshold. A leaf is its own left child. `COLUMNS`: a column is a feature as nodes compare it, so that no node
has to ask whether a value is missing: NaN becomes an infinity on the side where it goes. Column 0 is zero, and that of
leaves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.ranking.forest import MEMBER_OR_MISSING, MISSING_LEFT, MISSING_RIGHT

COLUMNS: Final = 4
"""Numbers of a column: feature, kind, and where its members begin and end among those of all columns, which rise."""


def forest_sum(
    nodes: NDArray[Any],
    values: NDArray[np.float64],
    roots: NDArray[np.uint32],
    columns: NDArray[np.int32],
    members: NDArray[np.float64],
    features: Sequence[NDArray[np.float64]],
    rows: int,
) -> NDArray[np.float64]:
    """For each row, the values of the leaves where it ends, added in the order of the trees.

    `features`: one array for each, of length `rows` or 1. `columns`: of COLUMNS numbers each.
    """
    sums = np.zeros(rows)
    described = columns.reshape(-1, COLUMNS).tolist()
    sets = [members[start:end].tolist() for _, _, start, end in described]
    for row in range(rows):
        for root in roots.tolist():
            at = root
            while (left := int(nodes["left"][at])) != at:
                column = int(nodes["column"][at])
                feature, kind, _, _ = described[column]
                value = float(features[feature][row % len(features[feature])])
                at = left + (_compared(value, kind, sets[column]) >= float(nodes["threshold"][at]))
            sums[row] += values[at]
    return sums


def _compared(value: float, kind: int, members: list[float]) -> float:
    is_missing = value != value
    if kind in (MISSING_RIGHT, MISSING_LEFT):
        return value if not is_missing else (-np.inf if kind == MISSING_LEFT else np.inf)
    place = bisect_left(members, value)
    is_member = place < len(members) and members[place] == value
    return -1.0 if (kind == MEMBER_OR_MISSING if is_missing else is_member) else 1.0
