"""rawScore(field) and itemRawScore(label): what operators of the query score by themselves.

Vespa: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html#raw-scores-and-query-item-labeling
"""

from __future__ import annotations

import numpy as np

from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, register


@register("rawScore", "field")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The sum of all of them in a field. Positions are searched in their attribute: `rawScore(place_zcurve)`."""
    field = arguments[0]

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        for number, _ in terms_of(block, field):
            scores += block.raw_scores(number, field)
        return scores

    return compute


@register("itemRawScore", "name")
def bind_item(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """That of the first term with a label, in all its fields."""
    label = arguments[0]

    def compute(block: Block) -> Floats:
        scores = np.zeros(len(block.lids))
        number = next((number for number, term in enumerate(block.terms) if term.label == label), None)
        if number is not None:
            for field in block.terms[number].fields:
                scores += block.raw_scores(number, field)
        return scores

    return compute
