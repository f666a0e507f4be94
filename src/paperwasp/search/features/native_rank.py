"""nativeRank and its parts, nativeFieldMatch, nativeAttributeMatch and nativeProximity; and nativeDotProduct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct

from paperwasp.document.types import ArrayType, WeightedSetType
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.search.features.native_parameters import (
    FIELD_MATCH,
    PROXIMITY,
    BoostTable,
    MatchParameters,
    NearParameters,
    Pair,
    field_table,
    match_parameters,
    near_parameters,
    pairs_within,
    searched_index_fields,
    sliding_window,
    uses_normalization,
)
from paperwasp.search.features.native_query import NativeFeature, NativeSetup, by_kernel
from paperwasp.search.features.parts import Part, PartsOf, explains, parts_of
from paperwasp.search.features.setting import RankTerm

# nativeFieldMatch(field, …): how often, and how early, the terms of the query occur in indexed fields.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeFieldMatch
# Where the page and the running system differ (the index into a table is a share of its last index, not of its size,
# and a first occurrence of the length less one) this follows the running system.


@register(FIELD_MATCH, "field", outputs=("score",), repeated=True, listed=lambda setup: (FIELD_MATCH,))
def bind_field_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return by_kernel(setup, arguments, (1.0, 0.0, 0.0), general_field_match(setup, arguments))


def general_field_match(setup: RankSetup, arguments: tuple[str, ...]) -> Compute:
    """The feature for every query, term by term, and with the scores of all hits."""
    parameters = {field: match_parameters(setup, field) for field in searched_index_fields(setup, arguments)}

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        divisor = 0.0
        for number, term in enumerate(block.terms):
            fields = [field for field in term.fields if field in parameters]
            if fields and term.weight != 0:
                divisor += term.significance * term.weight * sum(parameters[field].weight for field in fields)
                scores += _term_scores(block, number, term, fields, parameters)
        return scores / divisor if divisor > 0 else scores

    return compute


def _term_scores(
    block: Block, number: int, term: RankTerm, fields: list[str], parameters: Mapping[str, MatchParameters]
) -> Floats:
    scores = np.zeros(len(block.lids))
    for field in fields:
        scores += parameters[field].boosts(block, number, field)
    weighted: Floats = scores * (term.significance * term.weight)
    return weighted


@explains(FIELD_MATCH)
def bind_parts_field_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> PartsOf:
    """Explain the score of each term in each field, with its parts and its weight."""
    parameters = {field: match_parameters(setup, field) for field in searched_index_fields(setup, arguments)}

    def parts(block: Block) -> list[Part]:
        return [
            _part(block, number, term, field, parameters[field])
            for number, term in enumerate(block.terms)
            for field in term.fields
            if field in parameters and term.weight != 0
        ]

    return parts


def _part(block: Block, number: int, term: RankTerm, field: str, parameters: MatchParameters) -> Part:
    occurrences = block.occurrences(number, field).astype(np.float64)
    made_of = {
        "weight of the term": one(term.weight),
        "significance of the term": one(term.significance),
        "weight of the field": one(parameters.weight),
        "occurrences": occurrences,
        "field length": parameters.lengths(block, field).astype(np.float64),
    }
    below = tuple(Part(text, value) for text, value in made_of.items())
    return Part(f"term({number}) in {field}", parameters.boosts(block, number, field), below, number)


# nativeAttributeMatch(attribute, …): how well the terms of the query match attributes.
#
# A match weighs as much as the keys of a weighted set that match, or as the number of elements of an array that do.
# Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeAttributeMatch


ATTRIBUTE_MATCH = "nativeAttributeMatch"


class AttributeParameters(Struct, frozen=True):
    """How a match in one attribute counts."""

    weight: int
    boosts: BoostTable | None
    """The score of a match by its weight, out of `highest`; below 0 for weights below 0. None: it gives no score."""
    highest: float

    is_single: bool
    """Whether all matches weigh 1."""

    def worth(self, block: Block, term: int, field: str) -> Floats:
        """The score of a term's matches; 0 where it does not match."""
        assert self.boosts is not None
        matched = block.matched(term, field).astype(np.float64)
        if self.is_single:
            return matched * float(self.boosts[np.array([1])][0])
        weights = block.match_weights(term, field)
        boosts = self.boosts[np.abs(weights)]
        return matched * np.where(weights < 0, -boosts, boosts)


def attribute_parameters(setup: RankSetup, field: str) -> AttributeParameters:
    """The settings of an attribute: its rank properties over the defaults of Vespa. A filter matches without score."""
    table = field_table(setup, ATTRIBUTE_MATCH, "weightTable", field)
    highest = table.max if uses_normalization(setup) else 1.0
    type_ = setup.field(field).type
    is_single = not isinstance(type_, ArrayType | WeightedSetType)
    return AttributeParameters(
        setup.weight(field), None if setup.is_filter(field) else table, highest or 1.0, is_single
    )


def counted_fields(setup: RankSetup, arguments: tuple[str, ...]) -> list[str]:
    """The attributes among the arguments, or all; without those that have no weight."""
    fields = [field for field in setup.attribute_fields if not arguments or field in arguments]
    return [field for field in fields if setup.weight(field) != 0]


@register(ATTRIBUTE_MATCH, "field", outputs=("score",), repeated=True, listed=lambda setup: (ATTRIBUTE_MATCH,))
def bind_attribute_match(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    parameters = {field: attribute_parameters(setup, field) for field in counted_fields(setup, arguments)}

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        divisor = 0
        for number, term in enumerate(block.terms):
            for field in term.fields:
                if field in parameters and term.weight != 0:
                    settings = parameters[field]
                    weight = settings.weight * term.weight
                    divisor += weight
                    if settings.boosts is not None:
                        scores += settings.worth(block, number, field) * (weight / settings.highest)
        return scores / divisor if divisor > 0 else scores

    return compute


# nativeProximity(field, …): how near the terms of the query are to each other in indexed fields.
#
# Elements are as far apart as the `element-gap` of the field says; without one only pairs within one element count.
# Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeProximity


@register(PROXIMITY, "field", outputs=("score",), repeated=True, listed=lambda setup: (PROXIMITY,))
def bind_proximity(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return by_kernel(setup, arguments, (0.0, 1.0, 0.0), general_proximity(setup, arguments))


def general_proximity(setup: RankSetup, arguments: tuple[str, ...]) -> Compute:
    """The feature for every query, pair by pair, and with the scores of all hits."""
    parameters = {field: near_parameters(setup, field) for field in searched_index_fields(setup, arguments)}
    window = sliding_window(setup)

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        total_weight = 0
        for field, settings in parameters.items():
            terms = list(terms_of(block, field))
            pairs = list(pairs_within(terms, window))
            if pairs:
                total_weight += settings.weight
                scores += _field_scores(block, field, settings, pairs)
        return scores / total_weight if total_weight > 0 else scores

    return compute


def _field_scores(block: Block, field: str, settings: NearParameters, pairs: list[Pair]) -> Floats:
    scores = np.zeros(len(block.lids))
    for pair in pairs:
        scores += settings.boosts(block, field, pair.first, pair.second) * pair.weight / settings.highest
    scores *= settings.weight
    divisor = sum(pair.weight for pair in pairs)
    return scores / divisor if divisor > 0 else scores


# nativeRank(field, …): a text ranking of all fields out of nativeFieldMatch, nativeProximity and nativeAttributeMatch.
#
# It is the first phase of a rank profile that has none.
# Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeRank


NAME = "nativeRank"


_PARTS: Final = {
    "nativeFieldMatch": bind_field_match,
    "nativeProximity": bind_proximity,
    "nativeAttributeMatch": bind_attribute_match,
}


def _weights(setup: RankSetup) -> tuple[float, float, float]:
    """The weights of the parts."""
    return (
        setup.number(100, f"{NAME}.fieldMatchWeight"),
        setup.number(25 if uses_normalization(setup) else 100, f"{NAME}.proximityWeight"),
        setup.number(100, f"{NAME}.attributeMatchWeight"),
    )


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind_native_rank(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    weights = _weights(setup)
    proximity = general_proximity(setup, arguments)
    attributes = bind_attribute_match(setup, arguments, "score")
    parts = general_field_match(setup, arguments), proximity, attributes
    divisor = sum(weights)
    if divisor <= 0:
        return constant(0.0)

    def general(block: Block) -> Floats:
        scores = one(0.0)
        for weight, part in zip(weights, parts, strict=True):
            if weight != 0:
                scores = scores + part(block) * weight
        return scores / divisor

    native = NativeSetup.of(setup, arguments, weights)
    if weights[2] == 0:
        return NativeFeature(native, general, proximity)
    fields = frozenset(counted_fields(setup, arguments))
    return NativeFeature(native, general, proximity, attributes, fields)


@explains(NAME)
def bind_parts_native_rank(setup: RankSetup, arguments: tuple[str, ...], output: str) -> PartsOf:
    """The parts with the share that each has, and what they are made of."""
    weights = _weights(setup)
    divisor = sum(weights)
    given = f"({','.join(arguments)})" if arguments else ""
    bound = []
    for (name, bind_part), weight in zip(_PARTS.items(), weights, strict=True):
        if weight > 0 and divisor > 0:
            within = parts_of(name, setup, arguments, "score")
            bound.append((f"{name}{given}", bind_part(setup, arguments, "score"), weight / divisor, within))

    def parts(block: Block) -> list[Part]:
        return [
            Part(text, compute(block), (Part("share", one(share)), *(within(block) if within else ())))
            for text, compute, share, within in bound
        ]

    return parts


# nativeDotProduct(field) and nativeDotProduct: the weights of terms times those of what they match.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#nativeDotProduct(field)


@register("nativeDotProduct", "field", optional=1)
def bind_native_dot_product(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        sums = np.zeros(len(block.lids))
        for number, term in enumerate(block.terms):
            for field in term.fields:
                if not arguments or field == arguments[0]:
                    sums += block.match_weights(number, field) * term.weight
        return sums

    return compute
