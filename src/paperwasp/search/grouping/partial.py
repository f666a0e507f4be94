"""The partial result of a linear request: the groups of each level in columns, of one document type, node or cluster.

It can be merged with others, and its states written as arrays.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.values import Values


class Groups(Struct, frozen=True, eq=False):
    """The groups of one level. Those of one parent stand together, in their order."""

    tag: int
    parents: NDArray[np.uint32]
    """The row of each group's parent in the level above, rising."""
    ids: Values
    """One value a group."""
    relevances: NDArray[np.float64]
    """The relevance of the best hit of each group."""
    states: tuple[State, ...]
    """One of each aggregation of the level, in their order; then those that only `order` needs."""


class PartialResult(Struct, frozen=True, eq=False):
    """The groups of a request. The first of `levels` is the root: one group."""

    number: int
    levels: tuple[Groups, ...]
