"""The settings of rank profiles and queries for matching: words that are in many documents, and nearest neighbours.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#filter-threshold, #weakand and #approximate-threshold
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import field
from typing import Final

from paperwasp.base.records import dataclass


@dataclass(frozen=True, slots=True)
class NeighborTuning:
    """How nearestNeighbor goes about it. Ratios are of the documents that the rest of the query leaves to all."""

    approximate_threshold: float = 0.02
    """Below this ratio all vectors are compared."""
    filter_first_threshold: float = 0.3
    """Below this ratio the graph is searched so that distances are only computed to what the rest leaves."""
    filter_first_exploration: float = 0.3
    """How far such a search looks around a node, from 0 to 1."""
    post_filter_threshold: float = 1.0
    """Above this ratio the graph is searched without the rest, for more hits than are wanted."""
    exploration_slack: float = 0.0
    """How much farther than the last of the nearest, as a share of its distance, a search follows nodes."""
    target_hits_max_adjustment_factor: float = 20.0
    """At most this multiple of the wanted hits is looked for without the rest."""
    time_budget_ms: float = math.inf
    """A whole number: after this time each search of a graph ends with what it has found. Infinite: there is none."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """Shares of the documents, from 0 to 1. At 1 nothing of the kind is done."""

    filter_threshold: float = 1.0
    """Words of an index that are in a greater share of the documents only filter: ranking sees that they match, and
    neither where nor how often."""
    filter_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The same of single fields, which goes before it."""
    filter_fields: Set[str] = frozenset()
    """Words of these fields only filter, however rare they are."""
    stopword_limit: float = 1.0
    """The share of documents above which a word is left out of a weakAnd."""
    adjust_target: float = 1.0
    """A document must score in a weakAnd what the part whose share is nearest to this does."""
    allow_drop_all: bool = False
    """Whether a weakAnd without anything left matches nothing; else its rarest part stays."""
    neighbors: NeighborTuning = NeighborTuning()
    """For nearestNeighbor."""

    def only_filters(self, name: str, frequency: int, documents: int) -> bool:
        """Whether a word that this number of documents have in a field only filters."""
        if name in self.filter_fields:
            return True
        return frequency > self.filter_thresholds.get(name, self.filter_threshold) * documents


NO_TUNING: Final = Tuning()
