"""nativeAttributeMatch(attribute, …): how well the terms of the query match attributes.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeAttributeMatch
Differs: a match in an array or weighted set counts once, however many of its elements match and whatever they weigh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from paperwasp.features.base import MatchContext
from paperwasp.features.boost_table import field_table, uses_normalization
from paperwasp.features.family import Compute, Floats, RankSetup, register

NAME = "nativeAttributeMatch"


@dataclass(frozen=True, slots=True)
class FieldParameters:
    """How a match in one attribute counts."""

    weight: int
    boost: float
    """What one match is worth, out of `highest`."""
    highest: float


def field_parameters(setup: RankSetup, field: str) -> FieldParameters:
    """The settings of an attribute: its rank properties over the defaults of Vespa. A filter matches without score."""
    table = field_table(setup, NAME, "weightTable", field, "linear(1,0)")
    highest = table.max if uses_normalization(setup) else 1.0
    boost = 0.0 if setup.is_filter(field) else float(table[np.array([1])][0])
    return FieldParameters(setup.weight(field), boost, highest or 1.0)


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    fields = [field for field in setup.attribute_fields if not arguments or field in arguments]
    parameters = {field: field_parameters(setup, field) for field in fields if setup.weight(field) != 0}

    def compute(context: MatchContext) -> Floats:
        scores = np.zeros(len(context.lids))
        divisor = 0
        for number, term in enumerate(context.terms):
            for field in term.fields:
                if field in parameters and term.weight != 0:
                    settings = parameters[field]
                    weight = settings.weight * term.weight
                    divisor += weight
                    if settings.boost != 0.0:
                        scores += context.matched(number, field) * (settings.boost * (weight / settings.highest))
        return scores / divisor if divisor > 0 else scores

    return compute
