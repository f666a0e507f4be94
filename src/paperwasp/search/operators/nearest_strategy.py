"""How nearestNeighbor finds documents: by comparing all vectors, or by a graph with or without a filter.

The filter is what the rest of the query leaves, and its hit ratio, the share that this is of all documents, decides.

Vespa: nearest_neighbor_blueprint.cpp (`set_global_filter`), https://docs.vespa.ai/en/querying/approximate-nn-hnsw.html
Differs: the ratio is always counted; in Vespa an estimate of it decides first whether it is counted at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.search.operators.tuning import NeighborTuning

EXACT: Final = "exact"
EXACT_FALLBACK: Final = "exact fallback"
"""The graph is left alone, because the filter leaves few documents."""
TOP_K: Final = "index top k"
TOP_K_WITH_FILTER: Final = "index top k using filter"

ANNOTATIONS: Final = {
    "hnsw.approximateThreshold": "approximate_threshold",
    "hnsw.explorationSlack": "exploration_slack",
    "hnsw.filterFirstExploration": "filter_first_exploration",
    "hnsw.filterFirstThreshold": "filter_first_threshold",
    "hnsw.postFilterThreshold": "post_filter_threshold",
    "hnsw.targetHitsMaxAdjustmentFactor": "target_hits_max_adjustment_factor",
}


@dataclass(frozen=True, slots=True)
class Strategy:
    """What was chosen, and why."""

    algorithm: str
    target_hits: int
    """More than the query asks for, where hits are left out afterwards."""
    hit_ratio: float | None = None
    """Of the filter; None: nothing is filtered."""
    filter_hits: int = 0
    """How many documents the filter leaves."""
    filter_first: bool = False

    @property
    def uses_graph(self) -> bool:
        return self.algorithm in (TOP_K, TOP_K_WITH_FILTER)

    @property
    def uses_filter(self) -> bool:
        """Whether the graph is searched with the filter."""
        return self.algorithm == TOP_K_WITH_FILTER


def tuned(tuning: NeighborTuning, annotations: tuple[tuple[str, float], ...]) -> NeighborTuning:
    """Return the settings of the rank profile or the query with what annotations of an item say instead."""
    return replace(tuning, **{ANNOTATIONS[name]: value for name, value in annotations}) if annotations else tuning


def choose(target_hits: int, tuning: NeighborTuning, allowed: int, documents: int) -> Strategy:
    """Choose how to search a graph, or not to, where the rest of the query leaves `allowed` of the documents."""
    if allowed >= documents:
        return Strategy(TOP_K, target_hits)
    ratio = allowed / documents
    if ratio < tuning.approximate_threshold:
        return Strategy(EXACT_FALLBACK, target_hits, ratio, allowed)
    if ratio > tuning.post_filter_threshold:
        adjusted = min(target_hits / ratio, target_hits * tuning.target_hits_max_adjustment_factor)
        return Strategy(TOP_K, max(1, int(adjusted)), ratio, allowed)
    return Strategy(TOP_K_WITH_FILTER, target_hits, ratio, allowed, ratio < tuning.filter_first_threshold)
