"""nativeFieldMatch(field, …): how often, and how early, the terms of the query occur in indexed fields.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeFieldMatch
Where the page and the running system differ (the index into a table is a share of its last index, not of its size, and
a first occurrence of the length less one) this follows the running system.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from paperwasp import limits
from paperwasp.features.block import Block
from paperwasp.features.boost_table import BoostTable, field_table, importance_of, uses_normalization
from paperwasp.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.features.field_term_match import end_positions
from paperwasp.features.parts import Part, PartsOf, explains
from paperwasp.features.query_terms import RankTerm

NAME = "nativeFieldMatch"


@dataclass(frozen=True, slots=True)
class FieldParameters:
    """How matches in one field count."""

    weight: int
    first_table: BoostTable
    count_table: BoostTable
    first_importance: float
    highest: float
    """What the boosts are divided by."""
    fixed_length: int | None
    least_length: int

    def boosts(self, block: Block, term: int, field: str) -> Floats:
        """What the occurrences of a term in the field are worth, hit by hit; 0 without any, or if it only filters."""
        if block.only_filters(term, field):
            return np.zeros(len(block.lids))
        occurrences = block.occurrences(term, field).astype(np.int64)
        first = end_positions(*block.positions(term, field)).astype(np.int64)
        lengths = np.maximum(self.lengths(block, field), self.least_length)
        early = self.first_table[first * self.first_table.last // np.maximum(lengths - 1, 1)]
        often = self.count_table[occurrences * self.count_table.last // np.maximum(lengths, 1)]
        worth = early * self.first_importance + often * (1.0 - self.first_importance)
        boosts: Floats = np.where(occurrences > 0, worth * self.weight / self.highest, 0.0)
        return boosts

    def lengths(self, block: Block, field: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        if self.fixed_length is not None:
            return np.full(len(block.lids), self.fixed_length, np.int64)
        return block.field_length(field).astype(np.int64)


def field_parameters(setup: RankSetup, field: str) -> FieldParameters:
    """The settings of a field: its rank properties over the defaults of Vespa."""
    first = field_table(setup, NAME, "firstOccurrenceTable", field)
    count = field_table(setup, NAME, "occurrenceCountTable", field)
    importance = importance_of(setup, NAME, "firstOccurrenceImportance", field)
    highest = first.max * importance + count.max * (1.0 - importance) if uses_normalization(setup) else 1.0
    keys = (f"{NAME}({field}).averageFieldLength", f"{NAME}.averageFieldLength.{field}")
    length = setup.whole(-1, limits.FIELD_LENGTH, *keys)
    return FieldParameters(
        weight=setup.weight(field),
        first_table=first,
        count_table=count,
        first_importance=importance,
        highest=highest or 1.0,
        fixed_length=length if length >= 0 else None,
        least_length=setup.whole(6, limits.FIELD_LENGTH, f"{NAME}.minFieldLength"),
    )


def searched_index_fields(setup: RankSetup, arguments: tuple[str, ...]) -> list[str]:
    """The index fields among the arguments, or all; without those that have no weight or are filters."""
    fields = [field for field in setup.index_fields if not arguments or field in arguments]
    return [field for field in fields if setup.weight(field) != 0 and not setup.is_filter(field)]


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
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
