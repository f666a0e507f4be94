"""The positions of all terms of a query in a field: of those that do not search it, none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paperwasp.features.base import MatchContext


@dataclass(frozen=True, eq=False)
class TermLists:
    """Parallel to the terms of the query; hit i has positions[offsets[i]:offsets[i + 1]]."""

    offsets: list[NDArray[np.uint32]]
    positions: list[NDArray[np.uint32]]
    matched: NDArray[np.bool_]
    """Of each hit whether any term matches."""

    @classmethod
    def of(cls, context: MatchContext, field: str) -> TermLists:
        nowhere = np.zeros(len(context.lids) + 1, np.uint32), np.zeros(0, np.uint32)
        matched = np.zeros(len(context.lids), np.bool_)
        found = []
        for number, term in enumerate(context.terms):
            searches = field in term.fields
            found.append(context.positions(number, field) if searches else nowhere)
            if searches:
                matched |= context.matched(number, field)
        return cls([offsets for offsets, _ in found], [positions for _, positions in found], matched)
