"""How near two terms are to each other in a field, and which pairs of terms count, as nativeProximity has it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block
from paperwasp.search.features.boost_table import BoostTable, field_table, importance_of, uses_normalization
from paperwasp.search.features.family import Floats, RankSetup, is_multiple
from paperwasp.search.features.query_terms import RankTerm
from paperwasp.search.features.term_distance import Distances, element_distances, term_distances

NAME = "nativeProximity"
DEFAULT_CONNECTIVITY = 0.1


@dataclass(frozen=True, slots=True)
class FieldParameters:
    """How nearness in one field counts."""

    weight: int
    forward_table: BoostTable
    reverse_table: BoostTable
    forward_importance: float
    highest: float
    has_elements: bool
    gap: float | None
    """Between elements, for this feature alone; None: as the rank profile or the query says for all."""

    def boosts(self, block: Block, field: str, first: int, second: int) -> Floats:
        """What the nearness of two terms is worth, hit by hit."""
        forward, _ = self._distances(block, field, first, second)
        reverse, _ = self._distances(block, field, second, first)
        forward_boost = self.forward_table[_before(forward)] * self.forward_importance
        reverse_boost = self.reverse_table[_before(reverse)] * (1.0 - self.forward_importance)
        return forward_boost + reverse_boost

    def _distances(self, block: Block, field: str, first: int, second: int) -> Distances:
        if not self.has_elements:
            return term_distances(block, field, first, second)
        gap = block.setting.space.element_gaps.get(field, math.inf) if self.gap is None else self.gap
        return element_distances(block, field, first, second, gap)


def _before(distances: NDArray[np.uint32]) -> NDArray[np.int64]:
    return np.maximum(distances.astype(np.int64) - 1, 0)


def sliding_window(setup: RankSetup) -> int:
    """How many terms in a row are compared."""
    return setup.whole(4, limits.FIELD_LENGTH, f"{NAME}.slidingWindowSize")


def field_parameters(setup: RankSetup, field: str) -> FieldParameters:
    """The settings of a field: its rank properties over the defaults of Vespa."""
    forward = field_table(setup, NAME, "proximityTable", field)
    reverse = field_table(setup, NAME, "reverseProximityTable", field)
    importance = importance_of(setup, NAME, "proximityImportance", field)
    highest = forward.max * importance + reverse.max * (1.0 - importance) if uses_normalization(setup) else 1.0
    has_elements = is_multiple(setup.field(field))
    return FieldParameters(
        setup.weight(field), forward, reverse, importance, highest or 1.0, has_elements, _gap(setup, field)
    )


def _gap(setup: RankSetup, field: str) -> float | None:
    key = f"{NAME}.elementGap.{field}"
    if setup.text(key) in (None, "infinity"):
        return None if setup.text(key) is None else math.inf
    gap = setup.whole(0, limits.FIELD_LENGTH, key)
    if gap < 0:
        raise LanguageError(f"rank property {key} is {gap}: at least 0")
    return float(gap)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two terms of a field, by their numbers, and the weight of the pair."""

    first: int
    second: int
    weight: float


def pairs_within(terms: list[tuple[int, RankTerm]], window: int) -> Iterator[Pair]:
    """The pairs within a window of terms. The further apart, the less connected."""
    for i, (first, a) in enumerate(terms):
        for j in range(i + 1, min(i + window, len(terms))):
            second, b = terms[j]
            if a.weight != 0 or b.weight != 0:
                connectedness = min([1.0, *(_connectivity(terms, k) for k in range(i + 1, j + 1))]) / (j - i)
                yield Pair(first, second, connectedness * (a.significance * a.weight + b.significance * b.weight))


def _connectivity(terms: list[tuple[int, RankTerm]], at: int) -> float:
    """Of a term with the one before it in the field; what the query says holds only for neighbours in the query."""
    number, term = terms[at]
    return term.connectivity if terms[at - 1][0] == number - 1 else DEFAULT_CONNECTIVITY
