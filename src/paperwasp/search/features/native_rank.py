"""nativeRank(field, …): a text ranking of all fields out of nativeFieldMatch, nativeProximity and nativeAttributeMatch.

It is the first phase of a rank profile that has none.
Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeRank
"""

from __future__ import annotations

from typing import Final

from paperwasp.search.features import native_attribute_match, native_field_match, native_proximity
from paperwasp.search.features.block import Block
from paperwasp.search.features.boost_table import uses_normalization
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.search.features.native_query import NativeFeature, NativeSetup
from paperwasp.search.features.parts import Part, PartsOf, explains, parts_of

NAME = "nativeRank"


_PARTS: Final = {
    "nativeFieldMatch": native_field_match.bind,
    "nativeProximity": native_proximity.bind,
    "nativeAttributeMatch": native_attribute_match.bind,
}


def _weights(setup: RankSetup) -> tuple[float, float, float]:
    """Of the parts."""
    return (
        setup.number(100, f"{NAME}.fieldMatchWeight"),
        setup.number(25 if uses_normalization(setup) else 100, f"{NAME}.proximityWeight"),
        setup.number(100, f"{NAME}.attributeMatchWeight"),
    )


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    weights = _weights(setup)
    proximity = native_proximity.bind_general(setup, arguments)
    attributes = native_attribute_match.bind(setup, arguments, "score")
    parts = native_field_match.bind_general(setup, arguments), proximity, attributes
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
    fields = frozenset(native_attribute_match.counted_fields(setup, arguments))
    return NativeFeature(native, general, proximity, attributes, fields)


@explains(NAME)
def bind_parts(setup: RankSetup, arguments: tuple[str, ...], output: str) -> PartsOf:
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
