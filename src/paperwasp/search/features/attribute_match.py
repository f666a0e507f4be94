"""attributeMatch(attribute): how well the terms of the query match an attribute, and what they weigh there.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#attributeMatch(name)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np
from msgspec import Struct

from paperwasp.document.types import (
    PREDICATE,
    ArrayType,
    DataType,
    ReferenceType,
    TensorFieldType,
    WeightedSetType,
)
from paperwasp.schema.data_types import is_position
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.setting import RankTerm
from paperwasp.storage.attributes.elements import weights_of

NAME: Final = "attributeMatch"
_OUTPUTS: Final = {
    "completeness": "completeness",
    "queryCompleteness": "query_completeness",
    "fieldCompleteness": "field_completeness",
    "normalizedWeight": "normalized_weight",
    "normalizedWeightedWeight": "normalized_weighted_weight",
    "weight": "weight",
    "significance": "significance",
    "importance": "importance",
    "matches": "matches",
    "totalWeight": "total_weight",
    "averageWeight": "average_weight",
    "maxWeight": "max_weight",
}
"""Each output, and what of `_Metrics` it is. The first is that of the name alone."""


def is_matched(type_: DataType) -> bool:
    """Whether terms of a query match attributes of the type, as this feature sees it."""
    return not (isinstance(type_, TensorFieldType | ReferenceType) or type_ == PREDICATE or is_position(type_))


def _listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.listed_attributes:
        if is_matched(setup.field(field).type):
            yield f"{NAME}({field})"
            yield from (f"{NAME}({field}).{output}" for output in _OUTPUTS)


class _Parameters(Struct, frozen=True):
    field: str
    is_array: bool
    is_weighted: bool
    greatest_weight: float
    importance: float
    """The weight of the field's completeness beside the query's."""
    attributes: frozenset[str]


class _Metrics(Struct, frozen=True, dict=True):
    """The metrics of one block of hits."""

    block: Block
    given: _Parameters

    @cached_property
    def _all(self) -> list[tuple[int, RankTerm]]:
        """All terms that search a field."""
        return [(number, term) for number, term in enumerate(self.block.terms) if any(term.fields)]

    @cached_property
    def _of_attributes(self) -> list[RankTerm]:
        return [term for _, term in self._all if not self.given.attributes.isdisjoint(term.fields)]

    @cached_property
    def _matched(self) -> list[tuple[RankTerm, Floats, Floats]]:
        """The terms that search this attribute: each with where it matches (1 or 0), and what it weighs there."""
        found = []
        for number, term in self._all:
            if self.given.field in term.fields:
                matched = self.block.matched(number, self.given.field).astype(np.float64)
                weights = self.block.match_weights(number, self.given.field) if self.given.is_weighted else matched
                found.append((term, matched, weights.astype(np.float64)))
        return found

    def _sum(self, values: Iterable[Floats]) -> Floats:
        return sum(values, np.zeros(len(self.block.lids)))

    @cached_property
    def matches(self) -> Floats:
        return self._sum(matched for _, matched, _ in self._matched)

    @cached_property
    def total_weight(self) -> Floats:
        if not self.given.is_weighted:
            return one(0.0)
        return self._sum(weights for _, _, weights in self._matched)

    @property
    def average_weight(self) -> Floats:
        return self.total_weight / np.maximum(self.matches, 1.0)

    @property
    def max_weight(self) -> Floats:
        if not self.given.is_weighted or not self._matched:
            return one(0.0)
        each = np.array([np.where(matched > 0, weights, -np.inf) for _, matched, weights in self._matched])
        greatest: Floats = each.max(axis=0)
        return np.where(self.matches > 0, greatest, 0.0)

    @property
    def query_completeness(self) -> Floats:
        return self.matches / max(len(self._matched), 1)

    @property
    def field_completeness(self) -> Floats:
        if self.given.is_weighted:
            whole = weights_of(self.block.column(self.given.field), self.block.lids)
            share = np.where(whole > 0, self.total_weight / np.where(whole > 0, whole, 1.0), 1.0)
            return np.where(self.total_weight > 0, np.minimum(share, 1.0), 0.0)
        counts = self.block.column(self.given.field).counts(self.block.lids) if self.given.is_array else one(1.0)
        return np.where(counts > 0, np.minimum(self.matches / np.maximum(counts, 1.0), 1.0), 0.0)

    @property
    def completeness(self) -> Floats:
        importance = self.given.importance
        return self.query_completeness * (1.0 - importance + importance * self.field_completeness)

    @property
    def normalized_weight(self) -> Floats:
        most = self.given.greatest_weight * max(len(self._of_attributes), 1)
        return np.minimum(np.maximum(self.total_weight, 0.0) / most, 1.0)

    @property
    def normalized_weighted_weight(self) -> Floats:
        if not self.given.is_weighted:
            return one(0.0)
        total = sum(term.weight for term in self._of_attributes)
        most = self.given.greatest_weight * (total if total > 0 else 1)
        products = self._sum(weights * term.weight for term, _, weights in self._matched)
        return np.minimum(np.maximum(products, 0.0) / most, 1.0)

    @property
    def weight(self) -> Floats:
        total = sum(term.weight for _, term in self._all)
        return self._sum(matched * term.weight for term, matched, _ in self._matched) / (total if total > 0 else 1)

    @property
    def significance(self) -> Floats:
        total = sum(term.significance for _, term in self._all)
        found = self._sum(matched * term.significance for term, matched, _ in self._matched)
        return found / total if total > 0 else one(0.0)

    @property
    def importance(self) -> Floats:
        return (self.weight + self.significance) * 0.5


@register(NAME, "attribute", outputs=tuple(_OUTPUTS), listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    type_ = setup.field(field).type
    name = f"{NAME}({field})"
    given = _Parameters(
        field,
        isinstance(type_, ArrayType),
        isinstance(type_, WeightedSetType),
        float(setup.whole(256, 2**31 - 1, f"{name}.maxWeight")) or 1.0,
        setup.number(0.05, f"{name}.fieldCompletenessImportance"),
        frozenset(setup.attribute_fields),
    )

    def compute(block: Block) -> Floats:
        metrics = block.once((NAME, field), lambda: _Metrics(block, given))
        values: Floats = getattr(metrics, _OUTPUTS[output])
        return values

    return compute
