"""nearestNeighbor: the documents whose vectors are nearest to one of the query.

Where the field has a graph it is searched for `targetHits` documents, as `choose` says; however
few these are, it is explored as for a hundred (Vespa explores for `targetHits`, and misses more of the nearest).
Without a graph, with `approximate: false`, and where the rest of the query leaves few documents, all of these are
compared in the order of their lids. Each that is no farther than the last of the nearest `targetHits` before it is a
hit: more than `targetHits` are found, all of which are ranked and counted. As in Vespa with one thread.

Vespa: https://docs.vespa.ai/en/querying/nearest-neighbor-search.html, nearest_neighbor_blueprint.cpp,
exact_nearest_neighbor_iterator.cpp, nearest_neighbor_distance_heap.h
"""

from __future__ import annotations

import math
import sys
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import IllegalQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.best import BestMatch, BestOperator
from paperwasp.search.operators.field_match import Bitmap, Lids, Occurrences
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, condition
from paperwasp.search.operators.operator import NeighborTuning, Operator, SearchSpace
from paperwasp.search.operators.term import bits_of
from paperwasp.search.operators.word import fields_of
from paperwasp.search.yql_syntax import AnnotationScope, dotted_name
from paperwasp.storage.attributes.distances import Distances, Found, GraphSearch, KernelGraph
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.tensor import TensorView
from paperwasp.storage.attributes.vector_graph import GraphView

_BLOCK_LIDS: Final = 65_536
"""Documents whose vectors are compared together."""
_BYTES_A_NS: Final = 16
"""The bytes of vectors that are compared in a nanosecond."""
_DOCUMENT_NS: Final = 5
_NODE_NS: Final = 50
"""To fetch a vector from anywhere in memory."""
_NODES_OF_HIT: Final = 20
"""Nodes to which a search of a graph computes distances, for each hit that it keeps in sight."""
_MIN_TARGET_HITS: Final = 100
"""The default of `minTargetHits`."""
_FARTHEST: Final = sys.float_info.max
"""A distance above it is no number, or infinite."""
_NS_PER_MS: Final = 1_000_000
_Computed = tuple[NDArray[np.float64], NDArray[np.uint32]]


class NearestNeighborMatch(BestMatch):
    """The nearest documents, none farther than the item's threshold."""

    def __init__(self, space: SearchSpace, field: str, distances: Distances, item: NearestNeighborItem) -> None:
        super().__init__(space, field, item.target_hits)
        self._distances = distances
        self._item = item
        threshold = item.distance_threshold
        self._limit = np.inf if threshold is None else distances.limit(threshold)
        self._graph = distances.graph if item.approximate else None
        self._tuning = tuned(space.tuning.neighbors, item.tuning)
        self._strategy = Strategy(EXACT, item.target_hits)
        self._found: tuple[Lids, _Computed] | None = None

    @property
    def finds_alone(self) -> bool:
        """A graph is searched once, for what passes the filter."""
        return self._graph is not None

    def find(self, allowed: Bitmap) -> Lids:
        space, graph = self._space, self._graph
        if graph is not None:
            self._strategy = self._chosen(allowed)
        if graph is not None and self._strategy.uses_graph:
            lids, computed = self._near(self._searched(graph, allowed))
        else:
            lids, computed = self._compared(_core.bitmap_lids(allowed, space.limit))
        self._found = lids, computed
        return lids

    def found(self) -> Lids:
        """Return all documents that match, where the rest of the query leaves all."""
        self.select(None)
        assert self._found is not None
        return self._found[0]

    def _searched(self, graph: GraphView, allowed: Bitmap) -> Found:
        """Search the graph. It may be of a later moment than the view: where documents that died since are found,
        the others are looked for again."""
        strategy, accept = self._strategy, self._space.accept
        found = self._search(graph, allowed if strategy.uses_filter else None)
        if not strategy.uses_filter and not bits_of(accept, found.lids).all():
            found = self._search(graph, accept)
        return found if strategy.hit_ratio is None or strategy.uses_filter else found.of(bits_of(allowed, found.lids))

    def _near(self, found: Found) -> tuple[Lids, _Computed]:
        """Return the documents of a graph that are near in the view, too, with their distances and vectors."""
        lids = found.lids
        distances, vectors = self._distances.of_found(found)
        near = distances <= min(self._limit, _FARTHEST)
        return (lids, (distances, vectors)) if near.all() else (lids[near], (distances[near], vectors[near]))

    def _search(self, graph: GraphView, accept: Bitmap | None) -> Found:
        self._space.check_time()
        return self._distances.search(graph, self._graph_search(self._strategy, accept))

    def _graph_search(self, strategy: Strategy, accept: Bitmap | None) -> GraphSearch:
        tuning, limit = self._tuning, self._space.limit
        budget_ms = tuning.time_budget_ms
        wanted = min(strategy.target_hits, limit)
        return GraphSearch(
            wanted,
            min(self._explored(wanted), max(wanted, limit)),
            accept,
            limit,
            float(self._limit),
            strategy.filter_first,
            tuning.filter_first_exploration,
            tuning.exploration_slack,
            self._space.monotonic_ns() + int(budget_ms) * _NS_PER_MS if budget_ms < math.inf else 0,
        )

    @property
    def metric(self) -> str:
        """The name of the distance metric."""
        return self._distances.metric

    def kernel_search(self, allowed: Bitmap, *, is_alone: bool) -> tuple[KernelGraph, GraphSearch, int] | None:
        """The graph, how it is searched for what is near among some live documents, whatever the vector is, and how
        many of these are compared one by one in place of that, if they are; None where the column has no graph, or the
        time for it is bounded. is_alone: whether no other term finds a number of documents beside it."""
        graph = self._distances.kernel_graph
        if graph is None or self._tuning.time_budget_ms < math.inf or not (is_alone or self.finds_alone):
            return None
        strategy = Strategy(EXACT, self._target_hits) if self._graph is None else self._chosen(allowed)
        compared = 0 if strategy.uses_graph else max(1, self._count(allowed))
        return graph, self._graph_search(strategy, allowed if strategy.uses_filter else None), compared

    def _chosen(self, allowed: Bitmap) -> Strategy:
        return choose(self._target_hits, self._tuning, self._count(allowed), self._space.documents)

    def _count(self, allowed: Bitmap) -> int:
        """Count these documents."""
        space = self._space
        return space.documents if allowed is space.accept else _core.bitmap_count(allowed, space.accept)

    def _compared(self, lids: Lids) -> tuple[Lids, _Computed]:
        """The documents of some that are hits, in the order of lids, with what was computed of them."""
        heap, held = np.zeros(max(1, min(self._target_hits, len(lids)))), 0
        found = [(lids[:0], np.zeros(0), np.zeros(0, np.uint32))]
        for start in range(0, len(lids), _BLOCK_LIDS):
            self._space.check_time()
            block = lids[start : start + _BLOCK_LIDS]
            computed, vectors = self._distances.computed(block)
            hits, held = _core.nearest_hits(computed, float(self._limit), heap, held)
            found.append((block[hits], computed[hits], vectors[hits]))
        lids, computed, vectors = map(np.concatenate, zip(*found, strict=True))
        return lids, (computed, vectors)

    def _computed(self, lids: Lids) -> _Computed:
        """Return distances and vectors: those of documents that were found are known, others are computed."""
        if self._found is not None and len(lids):
            known, (computed, vectors) = self._found
            if len(known) >= len(lids):  # of more documents, not all were found
                places = np.minimum(known.searchsorted(lids), len(known) - 1)
                if np.array_equal(known[places], lids):
                    return computed[places], vectors[places]
        return self._distances.computed(lids)

    def cost(self, limit: int) -> tuple[float, int]:
        """Rather too long, where a graph is searched."""
        vector_ns = self._distances.bytes_of_vector / _BYTES_A_NS
        if self._graph is None:
            return self._space.documents * (_DOCUMENT_NS + vector_ns), self.estimate()
        explored = min(self._explored(self._target_hits), self._space.documents)
        return explored * _NODES_OF_HIT * (_NODE_NS + vector_ns), self.estimate()

    def _explored(self, wanted: int) -> int:
        """Return how many documents a search of the graph keeps in sight to find the nearest `wanted`."""
        return max(wanted + self._item.explore_additional_hits, limits.GRAPH_EXPLORED_LEAST)

    def scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._distances.closeness(self._computed(lids)[0])

    def nearest(self, lids: Lids) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint32]]:
        """The nearest vector of each document, whether it matches or not: its distance, its raw score and its number.
        Infinite, the least score and any number where a document has no vector."""
        computed, vectors = self._computed(lids)
        there = computed < np.inf
        if there.all():
            apart = self._distances.distance(computed)
            return apart, self._distances.closeness_at(apart), vectors
        distances, scores = np.full(len(lids), np.inf), np.full(len(lids), self.least_score)
        distances[there] = self._distances.distance(computed[there])
        scores[there] = self._distances.closeness_at(distances[there])
        return distances, scores, vectors

    @property
    def least_score(self) -> float:
        """The raw score of no vector: 0, or for dot products the least number."""
        return self._distances.least_closeness

    def elements(self, lids: Lids) -> Occurrences:
        """The nearest vector of each document that matches."""
        found = self.occurrences(lids) > 0
        offsets = np.concatenate([[0], np.cumsum(found)]).astype(np.uint32)
        return offsets, self._computed(lids[found])[1]

    def details(self) -> dict[str, Any]:
        """The strategy and what it was chosen by, under the names that Vespa's traces have for it."""
        found = len(self._found[0]) if self.best.any() and self._found is not None else 0
        strategy, tuning, item = self._strategy, self._tuning, self._item
        attribute, query = self._distances.types
        counted = strategy.hit_ratio is not None
        return {
            "attribute_tensor": attribute,
            "query_tensor": query,
            "target_hits": item.target_hits,
            "adjusted_target_hits": strategy.target_hits,
            "explore_additional_hits": item.explore_additional_hits,
            "wanted_approximate": item.approximate,
            "has_index": self._distances.graph is not None,
            "algorithm": strategy.algorithm,
            **({"top_k_hits": found} if strategy.uses_graph else {}),
            **({"filter_first_heuristic_used": strategy.filter_first} if strategy.uses_filter else {}),
            "filter_first_upper_limit": tuning.filter_first_threshold,
            "filter_first_exploration": tuning.filter_first_exploration,
            "exploration_slack": tuning.exploration_slack,
            "target_hits_max_adjustment_factor": tuning.target_hits_max_adjustment_factor,
            "global_filter": {
                "wanted": self._graph is not None,
                "set": self._graph is not None,
                "calculated": counted,
                "lower_limit": tuning.approximate_threshold,
                "upper_limit": tuning.post_filter_threshold,
                **({"hits": strategy.filter_hits, "hit_ratio": strategy.hit_ratio} if counted else {}),
            },
        }


class NearestNeighborOperator(BestOperator):
    """The nearest documents in the field."""


class NearestNeighborItem(TermItem, frozen=True):
    """The `target_hits` documents whose tensor is nearest to the query's tensor `query(tensor)`.

    `tuning` holds the annotations for the search of a graph: `hnsw.approximateThreshold` and its kin, name and value.
    An exact search has no use for it, nor for `approximate` and `explore_additional_hits`.
    """

    is_plain = True
    is_seen_by_rules = False
    without_elements = "nearestNeighbor"

    tensor: str
    target_hits: int = 0
    approximate: bool = True
    explore_additional_hits: int = 0
    distance_threshold: float | None = None
    tuning: tuple[tuple[str, float], ...] = ()

    def to_yql(self) -> str:
        extra: dict[str, Any] = {"targetHits": self.target_hits}
        if not self.approximate:
            extra["approximate"] = False
        if self.explore_additional_hits:
            extra["hnsw.exploreAdditionalHits"] = self.explore_additional_hits
        if self.distance_threshold is not None:
            extra["distanceThreshold"] = self.distance_threshold
        extra.update(self.tuning)
        return annotated(call("nearestNeighbor", (self.index, self.tensor)), self.annotations, extra)

    def plan(self, space: SearchSpace) -> Operator:
        """Errors: IllegalQuery, in the words of Vespa's ValidateNearestNeighborSearcher where that has such a check."""
        if self.target_hits < 1:
            raise _illegal(self, f"has invalid targetHits {self.target_hits}: Must be >= 1")
        tensor = space.inputs.get(self.tensor)
        name = f"'query({self.tensor})'"
        if not isinstance(tensor, Tensor):
            problem = f"requires a tensor rank feature named {name} but this is not present"
            if tensor is not None:
                what = "number" if isinstance(tensor, float) else "string"
                problem += f": it is the {what} '{tensor}', since no rank profile declares its type"
            raise _illegal(self, problem)
        if self.distance_threshold is not None and math.isnan(self.distance_threshold):
            raise _illegal(self, "has invalid distanceThreshold NaN: Must be a number")
        if not np.isfinite(tensor.cells).all():
            raise _illegal(self, f"{name} has a cell that is not a finite number")
        matches = [_match(self, field, tensor, space) for field in fields_of(self.index, space)]
        return NearestNeighborOperator(space, matches, self.annotations)


def _illegal(item: NearestNeighborItem, problem: str) -> IllegalQuery:
    return IllegalQuery(f"{_described(item)} {problem}")


def _described(item: NearestNeighborItem) -> str:
    """The item as messages have it. Vespa: NearestNeighborItem.toString."""
    limit = item.distance_threshold
    settings: dict[str, object] = {
        "field": item.index,
        "queryTensorName": item.tensor,
        "hnsw.exploreAdditionalHits": item.explore_additional_hits,
        "distanceThreshold": "Infinity" if limit is None else "NaN" if math.isnan(limit) else limit,
        "approximate": str(item.approximate).lower(),
        "targetHits": item.target_hits,
        **dict(item.tuning),
    }
    return f"NEAREST_NEIGHBOR {{{','.join(f'{name}={value}' for name, value in settings.items())}}}"


def _match(item: NearestNeighborItem, field: Field, tensor: Tensor, space: SearchSpace) -> NearestNeighborMatch:
    column = space.columns.get(field.name)
    if field.attribute is None or column is None:
        raise _illegal(item, "field is not an attribute")
    if not isinstance(column, TensorView | ImportedView):
        raise _illegal(item, "field is not a tensor")
    try:
        distances = Distances(column, tensor, field.attribute.distance_metric)
    except ValueError as error:
        raise _illegal(item, str(error)) from None
    return NearestNeighborMatch(space, field.name, distances, item)


@condition("nearestNeighbor", Argument.NAME, Argument.NAME, Argument.LITERAL)
def read_nearest_neighbor(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`nearestNeighbor(field, name)`: the `targetHits` nearest to the tensor `query(name)`.

    That there are target hits is checked where it is executed, as in Vespa.
    """
    tokens = parser.tokens
    field = parser.field_or_quoted()
    tokens.expect(",")
    named = tokens.current.kind == "string" or tokens.at("@")
    tensor = parser.text("the name of a query tensor") if named else dotted_name(tokens)
    hits = _target_hits(scope)
    approximate = scope.get("approximate", bool)
    threshold = scope.get("distanceThreshold", float)
    tuning = ((name, scope.get(name, float)) for name in ANNOTATIONS)
    of_node = scope.count("hnsw.exploreAdditionalHits")  # beside the hits that are wanted
    additional = (scope.count("hnsw.totalExploreAdditionalHits") or 0) if of_node is None else of_node
    return NearestNeighborItem(
        field,
        tensor,
        hits,
        approximate is not False,
        additional,
        None if threshold is None else float(threshold),
        tuple((name, float(value)) for name, value in tuning if value is not None),
        annotations=scope.of_term(),
    )


def _target_hits(scope: AnnotationScope) -> int:
    """How many hits a node that has all documents shall find: what is wanted in total is not below `minTargetHits`.

    Vespa: NearestNeighborItem (`resolveTargetHits`): what is wanted of each node goes first.
    """
    of_node = scope.count("targetHits") or scope.count("targetNumHits")
    total = scope.count("totalTargetHits")
    if of_node or not total:
        return of_node or 0
    least = scope.count("minTargetHits")
    return max(total, _MIN_TARGET_HITS if least is None else least)


# How nearestNeighbor finds documents: by comparing all vectors, or by a graph with or without a filter.
#
# The filter is what the rest of the query leaves, and its hit ratio, the share that this is of all documents, decides.
#
# Vespa: nearest_neighbor_blueprint.cpp (`set_global_filter`),
# https://docs.vespa.ai/en/querying/approximate-nn-hnsw.html
# Differs: the ratio is always counted; in Vespa an estimate of it decides first whether it is counted at all.


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


class Strategy(Struct, frozen=True):
    """The way that was chosen, and why."""

    algorithm: str
    target_hits: int
    """More than the query asks for, where hits are left out afterwards."""
    hit_ratio: float | None = None
    """The share of documents that the filter leaves; None: nothing is filtered."""
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
