"""rawScore(field) and itemRawScore(label): what operators of the query score by themselves.

Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html#raw-scores-and-query-item-labeling
"""

from __future__ import annotations

import numpy as np

from paperwasp.features.base import MatchContext, terms_of
from paperwasp.features.family import Compute, Floats, RankSetup, register


@register("rawScore", "field")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The sum of all of them in a field."""
    field = arguments[0]

    def compute(context: MatchContext) -> Floats:
        scores = np.zeros(len(context.lids))
        for number, _ in terms_of(context, field):
            scores += context.raw_scores(number, field)
        return scores

    return compute


@register("itemRawScore", "name")
def bind_item(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """That of the first term with a label, in all its fields."""
    label = arguments[0]

    def compute(context: MatchContext) -> Floats:
        scores = np.zeros(len(context.lids))
        number = next((number for number, term in enumerate(context.terms) if term.label == label), None)
        if number is not None:
            for field in context.terms[number].fields:
                scores += context.raw_scores(number, field)
        return scores

    return compute
