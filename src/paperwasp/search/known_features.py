"""Rank features of the first phase that later steps need again, of the same hits: kept, not computed a second time.

They are kept of features that say the same of a hit in every phase, and where few documents match.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.search.blocks import BLOCK_LIDS
from paperwasp.search.features.block import Block
from paperwasp.search.operators.field_match import Lids

_SAME_IN_EVERY_PHASE: Final = ("bm25(", "closeness(", "itemRawScore(", "rawScore(")
"""How the names of features begin that depend on the query and the hit alone, and that take time."""
Columns = dict[object, NDArray[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class KnownFeatures:
    """Values of features for some hits."""

    lids: Lids
    """Rising."""
    columns: Mapping[object, NDArray[np.float64]]

    def of(self, lids: Lids) -> Columns:
        """Return what is known of other hits: nothing, unless all of them are among these."""
        if not (self.columns and len(lids) and len(self.lids)):
            return {}
        places = np.minimum(self.lids.searchsorted(lids), len(self.lids) - 1)
        if not np.array_equal(self.lids[places], lids):
            return {}
        return {name: column[places] for name, column in self.columns.items()}


NO_FEATURES: Final = KnownFeatures(np.zeros(0, np.uint32), {})


@dataclass(slots=True)
class FeatureNotes:
    """The features with these names of one block of hits after another."""

    names: frozenset[str]
    _blocks: list[tuple[Lids, Columns]] = field(default_factory=list)
    _hits: int = 0

    def note(self, block: Block) -> None:
        """Keep what a block computed. What is not a number for each hit is not kept, nor anything of many hits."""
        if not self.names:
            return
        self._hits += block.hits
        columns: Columns = {}
        for name in self.names:
            column = block.known.get(name)
            if isinstance(column, np.ndarray) and len(column) == block.hits:
                columns[name] = column
        self._blocks.append((block.lids, columns))
        if self._hits > BLOCK_LIDS or len(columns) < len(self.names):
            self.names = frozenset()

    def known(self) -> KnownFeatures:
        """Return the features of all blocks together, by rising lids."""
        if not (self.names and self._blocks):
            return NO_FEATURES
        if len(self._blocks) == 1:
            lids, columns = self._blocks[0]
            return KnownFeatures(lids, columns)
        blocks = sorted((block for block in self._blocks if len(block[0])), key=lambda block: int(block[0][0]))
        lids = np.concatenate([lids for lids, _ in blocks])
        columns = {name: np.concatenate([each[name] for _, each in blocks]) for name in self.names}
        return KnownFeatures(lids, columns)


def reused_features(profile: CompiledProfile) -> frozenset[str]:
    """Return the names of the first phase's features that the global phase, or features of hits, need again."""
    phase = profile.global_phase
    later = [*profile.match_features.values(), *profile.summary_features.values()]
    programs = [*(phase.inputs.values() if phase is not None else ()), *later]
    needed = _names(program for program in programs if isinstance(program, Program))
    return frozenset(name for name in needed & _names([profile.first_phase]) if name.startswith(_SAME_IN_EVERY_PHASE))


def _names(programs: Iterable[Program]) -> frozenset[str]:
    return frozenset(feature.name for program in programs for feature in program.features)
