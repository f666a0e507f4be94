"""`nearestNeighbor`: the documents nearest to a vector."""

from __future__ import annotations

from typing import Final

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item, NearestNeighborItem
from paperwasp.operators.registry import condition
from paperwasp.query.lexicon import dotted_name
from paperwasp.query.scope import Scope

_MIN_TARGET_HITS: Final = 100
_TUNING: Final = (
    "hnsw.approximateThreshold",
    "hnsw.explorationSlack",
    "hnsw.filterFirstExploration",
    "hnsw.filterFirstThreshold",
    "hnsw.postFilterThreshold",
    "hnsw.targetHitsMaxAdjustmentFactor",
)


@condition("nearestNeighbor")
def nearest_neighbor(parser: ArgumentReader, scope: Scope) -> Item:
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
    tuning = ((name, scope.get(name, float)) for name in _TUNING)
    return NearestNeighborItem(
        field,
        tensor,
        hits,
        approximate is not False,
        _explored(scope),
        None if threshold is None else float(threshold),
        tuple((name, float(value)) for name, value in tuning if value is not None),
        annotations=scope.of_term(),
    )


def _explored(scope: Scope) -> int:
    """How many hits are explored beside those that are wanted."""
    of_node = scope.count("hnsw.exploreAdditionalHits")
    return (scope.count("hnsw.totalExploreAdditionalHits") or 0) if of_node is None else of_node


def _target_hits(scope: Scope) -> int:
    """How many hits a node that has all documents shall find: what is wanted in total is not below `minTargetHits`.

    Vespa: NearestNeighborItem (`resolveTargetHits`): what is wanted of each node goes first.
    """
    of_node = scope.count("targetHits") or scope.count("targetNumHits")
    total = scope.count("totalTargetHits")
    if of_node or not total:
        return of_node or 0
    least = scope.count("minTargetHits")
    return max(total, _MIN_TARGET_HITS if least is None else least)
