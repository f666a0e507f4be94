"""nativeFieldMatch(field, …): how often, and how early, the terms of the query occur in indexed fields.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeFieldMatch
Where the page and the running system differ (the index into a table is a share of its last index, not of its size, and
a first occurrence of the length less one) this follows the running system.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.native_field_parameters import (
    NAME,
    FieldParameters,
    field_parameters,
    searched_index_fields,
)
from paperwasp.search.features.native_query import by_kernel
from paperwasp.search.features.parts import Part, PartsOf, explains
from paperwasp.search.features.query_terms import RankTerm


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return by_kernel(setup, arguments, (1.0, 0.0, 0.0), bind_general(setup, arguments))


def bind_general(setup: RankSetup, arguments: tuple[str, ...]) -> Compute:
    """The feature for every query, term by term, and with the scores of all hits."""
    parameters = {field: field_parameters(setup, field) for field in searched_index_fields(setup, arguments)}

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
    block: Block, number: int, term: RankTerm, fields: list[str], parameters: Mapping[str, FieldParameters]
) -> Floats:
    scores = np.zeros(len(block.lids))
    for field in fields:
        scores += parameters[field].boosts(block, number, field)
    weighted: Floats = scores * (term.significance * term.weight)
    return weighted


@explains(NAME)
def bind_parts(setup: RankSetup, arguments: tuple[str, ...], output: str) -> PartsOf:
    """What each term is worth in each field, of what, and the weight that this has."""
    parameters = {field: field_parameters(setup, field) for field in searched_index_fields(setup, arguments)}

    def parts(block: Block) -> list[Part]:
        return [
            _part(block, number, term, field, parameters[field])
            for number, term in enumerate(block.terms)
            for field in term.fields
            if field in parameters and term.weight != 0
        ]

    return parts


def _part(block: Block, number: int, term: RankTerm, field: str, parameters: FieldParameters) -> Part:
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
