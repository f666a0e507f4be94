"""nativeRank(field, …): a text ranking of all fields out of nativeFieldMatch, nativeProximity and nativeAttributeMatch.

It is the first phase of a rank profile that has none.
Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeRank
"""

from __future__ import annotations

from paperwasp.features import native_attribute_match, native_field_match, native_proximity
from paperwasp.features.base import MatchContext
from paperwasp.features.boost_table import uses_normalization
from paperwasp.features.family import Compute, Floats, RankSetup, constant, one, register

NAME = "nativeRank"


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    normalized = uses_normalization(setup)
    weights = (
        setup.number(100, f"{NAME}.fieldMatchWeight"),
        setup.number(25 if normalized else 100, f"{NAME}.proximityWeight"),
        setup.number(100, f"{NAME}.attributeMatchWeight"),
    )
    parts = (
        native_field_match.bind(setup, arguments, "score"),
        native_proximity.bind(setup, arguments, "score"),
        native_attribute_match.bind(setup, arguments, "score"),
    )
    divisor = sum(weights)
    if divisor <= 0:
        return constant(0.0)

    def compute(context: MatchContext) -> Floats:
        scores = one(0.0)
        for weight, part in zip(weights, parts, strict=True):
            if weight != 0:
                scores = scores + part(context) * weight
        return scores / divisor

    return compute
