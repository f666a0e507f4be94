"""nearestNeighbor: the documents whose vectors are nearest to one of the query.

All vectors of the documents that the rest of the query leaves are compared: exact, whatever `approximate` says.

Vespa: https://docs.vespa.ai/en/querying/nearest-neighbor-search.html
Differs: finds just the nearest `targetHits`, where Vespa's exact search finds at least those.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.distances import Distances
from paperwasp.attribute.imported import ImportedView
from paperwasp.attribute.tensor import TensorView
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.best import BestMatch, BestOperator
from paperwasp.operators.field_match import Bitmap, Lids, Occurrences
from paperwasp.operators.word import fields_of
from paperwasp.query import NearestNeighborItem
from paperwasp.schema.model import Field
from paperwasp.tensor.value import Tensor


class NearestNeighborMatch(BestMatch):
    """The nearest documents, none farther than the item's threshold."""

    def __init__(self, space: SearchSpace, field: str, distances: Distances, item: NearestNeighborItem) -> None:
        super().__init__(space, field, item.target_hits)
        self._distances = distances
        threshold = item.distance_threshold
        self._limit = np.inf if threshold is None else distances.limit(threshold)

    def candidates(self) -> Bitmap:
        return self._distances.documents(self._space.limit)

    def values(self, lids: Lids) -> NDArray[np.float64]:
        computed = self._distances.computed(lids)[0]
        return np.where(computed <= self._limit, -computed, -np.inf)

    def scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._distances.closeness(self._distances.computed(lids)[0])

    def nearest(self, lids: Lids) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint32]]:
        """The nearest vector of each document, whether it matches or not: its distance, its raw score and its number.
        Infinite, the least score and any number where a document has no vector."""
        computed, vectors = self._distances.computed(lids)
        distances, scores = np.full(len(lids), np.inf), np.full(len(lids), self.least_score)
        there = computed < np.inf
        distances[there] = self._distances.distance(computed[there])
        scores[there] = self._distances.closeness(computed[there])
        return distances, scores, vectors

    @property
    def least_score(self) -> float:
        """The raw score of no vector: 0, or for dot products the least number."""
        return self._distances.least_closeness

    def elements(self, lids: Lids) -> Occurrences:
        """The nearest vector of each document that matches."""
        found = self.occurrences(lids) > 0
        offsets = np.concatenate([[0], np.cumsum(found)]).astype(np.uint32)
        return offsets, self._distances.computed(lids[found])[1]


@planner(NearestNeighborItem)
def plan_nearest_neighbor(item: NearestNeighborItem, space: SearchSpace) -> Operator:
    said = f"nearestNeighbor({item.index}, {item.tensor})"
    if item.target_hits < 1:
        raise IllegalQuery(f"{said} has invalid targetHits {item.target_hits}: Must be >= 1")
    tensor = space.inputs.get(item.tensor)
    name = f"'query({item.tensor})'"
    if tensor is None:
        raise IllegalQuery(f"{said} requires a tensor rank feature named {name} but this is not present")
    if not isinstance(tensor, Tensor):
        what = "number" if isinstance(tensor, float) else "string"
        given = f"to be a tensor, but it is the {what} '{tensor}'"
        raise IllegalQuery(f"{said}: Expected {name} {given}: its type is declared by a rank profile")
    matches = [_match(said, item, field, tensor, space) for field in fields_of(item.index, space)]
    return BestOperator(space, matches, item.annotations)


def _match(
    said: str, item: NearestNeighborItem, field: Field, tensor: Tensor, space: SearchSpace
) -> NearestNeighborMatch:
    column = space.columns.get(field.name)
    if field.attribute is None or column is None:
        raise InvalidQuery(f"{said}: field '{field.name}' is not an attribute")
    if not isinstance(column, TensorView | ImportedView):
        raise IllegalQuery(f"{said}: Attribute is not a tensor, but of type {field.type}")
    try:
        distances = Distances(column, tensor, field.attribute.distance_metric)
    except ValueError as error:
        raise IllegalQuery(f"{said}: {error}") from None
    return NearestNeighborMatch(space, field.name, distances, item)
