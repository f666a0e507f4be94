"""nativeProximity(field, …): how near the terms of the query are to each other in indexed fields.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeProximity
Elements are as far apart as the `element-gap` of the field says; without one no pair counts that is not in one element.
"""

from __future__ import annotations

import numpy as np

from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.features.native_field_parameters import searched_index_fields
from paperwasp.search.features.native_pairs import (
    NAME,
    FieldParameters,
    Pair,
    field_parameters,
    pairs_within,
    sliding_window,
)
from paperwasp.search.features.native_query import by_kernel


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return by_kernel(setup, arguments, (0.0, 1.0, 0.0), bind_general(setup, arguments))


def bind_general(setup: RankSetup, arguments: tuple[str, ...]) -> Compute:
    """The feature for every query, pair by pair, and with the scores of all hits."""
    parameters = {field: field_parameters(setup, field) for field in searched_index_fields(setup, arguments)}
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


def _field_scores(block: Block, field: str, settings: FieldParameters, pairs: list[Pair]) -> Floats:
    scores = np.zeros(len(block.lids))
    for pair in pairs:
        scores += settings.boosts(block, field, pair.first, pair.second) * pair.weight / settings.highest
    scores *= settings.weight
    divisor = sum(pair.weight for pair in pairs)
    return scores / divisor if divisor > 0 else scores
