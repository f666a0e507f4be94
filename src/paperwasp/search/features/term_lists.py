"""The positions of all terms of a query in a field: of those that do not search it, none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.search.features.block import Block


@dataclass(frozen=True, eq=False)
class TermLists:
    """Parallel to the terms of the query; hit i has positions[offsets[i]:offsets[i + 1]]."""

    offsets: list[NDArray[np.uint32]]
    positions: list[NDArray[np.uint32]]
    matched: NDArray[np.bool_]
    """Of each hit whether any term matches."""

    @classmethod
    def of(cls, block: Block, field: str) -> TermLists:
        nowhere = np.zeros(len(block.lids) + 1, np.uint32), np.zeros(0, np.uint32)
        matched = np.zeros(len(block.lids), np.bool_)
        found = []
        for number, term in enumerate(block.terms):
            searches = field in term.fields
            found.append(block.positions(number, field) if searches else nowhere)
            if searches:
                matched |= block.matched(number, field)
        return cls([offsets for offsets, _ in found], [positions for _, positions in found], matched)
