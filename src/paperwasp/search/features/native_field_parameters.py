"""How often, and how early, a term occurs in a field, as nativeFieldMatch counts it."""

from __future__ import annotations

import numpy as np

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.search.features.block import Block
from paperwasp.search.features.boost_table import BoostTable, field_table, importance_of, uses_normalization
from paperwasp.search.features.family import Floats, RankSetup
from paperwasp.search.features.field_term_match import end_positions

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
