"""nativeAttributeMatch(attribute, …): how well the terms of the query match attributes.

Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#nativeAttributeMatch
A match weighs what the keys of a weighted set do that match, or as much as elements of an array match.
"""

from __future__ import annotations

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.document.types import ArrayType, WeightedSetType
from paperwasp.search.features.block import Block
from paperwasp.search.features.boost_table import BoostTable, field_table, uses_normalization
from paperwasp.search.features.family import Compute, Floats, RankSetup, register

NAME = "nativeAttributeMatch"


@dataclass(frozen=True, slots=True)
class FieldParameters:
    """How a match in one attribute counts."""

    weight: int
    boosts: BoostTable | None
    """What a match is worth by its weight, out of `highest`; below 0 for weights below 0. None: it gives no score."""
    highest: float

    is_single: bool
    """Whether all matches weigh 1."""

    def worth(self, block: Block, term: int, field: str) -> Floats:
        """What the matches of a term are worth; 0 where it does not match."""
        assert self.boosts is not None
        matched = block.matched(term, field).astype(np.float64)
        if self.is_single:
            return matched * float(self.boosts[np.array([1])][0])
        weights = block.match_weights(term, field)
        boosts = self.boosts[np.abs(weights)]
        return matched * np.where(weights < 0, -boosts, boosts)


def field_parameters(setup: RankSetup, field: str) -> FieldParameters:
    """The settings of an attribute: its rank properties over the defaults of Vespa. A filter matches without score."""
    table = field_table(setup, NAME, "weightTable", field)
    highest = table.max if uses_normalization(setup) else 1.0
    type_ = setup.field(field).type
    is_single = not isinstance(type_, ArrayType | WeightedSetType)
    return FieldParameters(setup.weight(field), None if setup.is_filter(field) else table, highest or 1.0, is_single)


def counted_fields(setup: RankSetup, arguments: tuple[str, ...]) -> list[str]:
    """The attributes among the arguments, or all; without those that have no weight."""
    fields = [field for field in setup.attribute_fields if not arguments or field in arguments]
    return [field for field in fields if setup.weight(field) != 0]


@register(NAME, "field", outputs=("score",), repeated=True, listed=lambda setup: (NAME,))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    parameters = {field: field_parameters(setup, field) for field in counted_fields(setup, arguments)}

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
