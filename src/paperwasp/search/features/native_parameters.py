"""Parameters of the native rank features: boost tables, occurrences of a term in a field, and pairs of terms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Floats, RankSetup, is_multiple
from paperwasp.search.features.setting import RankTerm
from paperwasp.search.features.term_distance import Distances, element_distances, term_distances
from paperwasp.search.features.terms import end_positions

# Boost tables: functions of a small whole number, computed beforehand. The native rank features look them up.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/nativerank.html#boost-tables


DEFAULT_SIZE: Final = 256
_ARGUMENTS: Final = {"expdecay": 2, "loggrowth": 3, "linear": 2}


class BoostTable:
    """The values of one table."""

    def __init__(self, values: Floats) -> None:
        self.values = values
        self.max = max(0.0, float(values.max(initial=0.0)))
        self.last = len(values) - 1
        """The index of the last value, which also stands for everything beyond it."""

    def __getitem__(self, places: NDArray[Any]) -> Floats:
        found: Floats = self.values[np.minimum(places, self.last)]
        return found


@lru_cache(maxsize=256)
def boost_table(text: str) -> BoostTable:
    """The table that `text` describes, such as `expdecay(8000,12.50)` or `linear(1.5,0,512)`."""
    match = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if match is None or match[1] not in _ARGUMENTS:
        raise LanguageError(f"no boost table {text!r}: expected expdecay(w,t), loggrowth(w,t,s) or linear(w,t)")
    count = _ARGUMENTS[match[1]]
    try:
        numbers = [float(argument) for argument in match[2].split(",")]
    except ValueError:
        raise LanguageError(f"boost table {text!r} takes numbers") from None
    if len(numbers) not in (count, count + 1):
        raise LanguageError(f"boost table {text!r}: {match[1]} takes {count} numbers and, if wanted, a size")
    size = numbers[count] if len(numbers) > count else DEFAULT_SIZE
    if not 1 <= size <= limits.BOOST_TABLE_VALUES:
        raise LanguageError(f"boost table {text!r}: the size must be 1 to {limits.BOOST_TABLE_VALUES}")
    return BoostTable(_values(match[1], numbers, np.arange(int(size), dtype=np.float64)))


def _values(kind: str, numbers: list[float], x: Floats) -> Floats:
    with np.errstate(all="ignore"):
        values: Floats
        if kind == "expdecay":
            values = numbers[0] * np.exp(-(x / numbers[1]))
        elif kind == "loggrowth":
            values = numbers[0] * np.log(1.0 + x / numbers[2]) + numbers[1]
        else:
            values = numbers[0] * x + numbers[1]
    return values


_NOTHING: Final = "linear(0,0)"
_ABOUT: Final[Mapping[str, str]] = {
    "firstOccurrenceTable": "expdecay(8000,12.50)",
    "occurrenceCountTable": "loggrowth(1500,4000,19)",
    "proximityTable": "expdecay(500,3)",
    "reverseProximityTable": "expdecay(400,3)",
    "weightTable": "linear(1,0)",
}
_OF_ATTRIBUTES: Final = ("weightTable",)
_RANK_TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "about": _ABOUT,
    "identity": {
        **_ABOUT,
        "firstOccurrenceTable": "expdecay(100,12.50)",
        "proximityTable": "expdecay(5000,3)",
        "reverseProximityTable": "expdecay(3000,3)",
    },
    "tags": {**_ABOUT, "weightTable": "loggrowth(38,50,1)"},
    "empty": dict.fromkeys(_ABOUT, _NOTHING),
}
"""The tables of rank types. https://docs.vespa.ai/en/reference/ranking/nativerank.html#rank-types"""


def field_table(setup: RankSetup, feature: str, table: str, field: str) -> BoostTable:
    """The table of a field: its own rank property, that of its rank type, the feature's, or that of `about`.

    The rank type of an attribute says something of attributes alone, and that of any other field only of its index.
    """
    text = setup.text(f"{feature}.{table}.{field}", f"{feature}({field}).{table}")
    if text is None and (setup.field(field).attribute is not None) == (table in _OF_ATTRIBUTES):
        text = _RANK_TYPES.get(setup.rank_type(field), {}).get(table)
    text = text or setup.text(f"{feature}.{table}")
    return boost_table(_ABOUT[table] if text is None else text)


def importance_of(setup: RankSetup, feature: str, key: str, field: str) -> float:
    """The share of the first of the two tables of a field, by its own rank property or the feature's."""
    return setup.number(0.5, f"{feature}.{key}.{field}", f"{feature}({field}).{key}", f"{feature}.{key}")


def uses_normalization(setup: RankSetup) -> bool:
    """Whether boosts are divided by the highest value that their tables allow."""
    return setup.text("nativeRank.useTableNormalization") != "false"


# How often, and how early, a term occurs in a field, as nativeFieldMatch counts it.


FIELD_MATCH = "nativeFieldMatch"


class MatchParameters(Struct, frozen=True):
    """How matches in one field count."""

    weight: int
    first_table: BoostTable
    count_table: BoostTable
    first_importance: float
    highest: float
    """The divisor of the boosts."""
    fixed_length: int | None
    least_length: int

    def boosts(self, block: Block, term: int, field: str) -> Floats:
        """The boost of a term's occurrences in the field for each hit; 0 without any, or if it only filters."""
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


def match_parameters(setup: RankSetup, field: str) -> MatchParameters:
    """The settings of a field: its rank properties over the defaults of Vespa."""
    first = field_table(setup, FIELD_MATCH, "firstOccurrenceTable", field)
    count = field_table(setup, FIELD_MATCH, "occurrenceCountTable", field)
    importance = importance_of(setup, FIELD_MATCH, "firstOccurrenceImportance", field)
    highest = first.max * importance + count.max * (1.0 - importance) if uses_normalization(setup) else 1.0
    keys = (f"{FIELD_MATCH}({field}).averageFieldLength", f"{FIELD_MATCH}.averageFieldLength.{field}")
    length = setup.whole(-1, limits.FIELD_LENGTH, *keys)
    return MatchParameters(
        weight=setup.weight(field),
        first_table=first,
        count_table=count,
        first_importance=importance,
        highest=highest or 1.0,
        fixed_length=length if length >= 0 else None,
        least_length=setup.whole(6, limits.FIELD_LENGTH, f"{FIELD_MATCH}.minFieldLength"),
    )


def searched_index_fields(setup: RankSetup, arguments: tuple[str, ...]) -> list[str]:
    """The index fields among the arguments, or all; without those that have no weight or are filters."""
    fields = [field for field in setup.index_fields if not arguments or field in arguments]
    return [field for field in fields if setup.weight(field) != 0 and not setup.is_filter(field)]


# How near two terms are to each other in a field, and which pairs of terms count, as nativeProximity has it.


PROXIMITY = "nativeProximity"
DEFAULT_CONNECTIVITY = 0.1


class NearParameters(Struct, frozen=True):
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
        """The boost of the nearness of two terms for each hit."""
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
    """Return the number of terms in a row that are compared."""
    return setup.whole(4, limits.FIELD_LENGTH, f"{PROXIMITY}.slidingWindowSize")


def near_parameters(setup: RankSetup, field: str) -> NearParameters:
    """The settings of a field: its rank properties over the defaults of Vespa."""
    forward = field_table(setup, PROXIMITY, "proximityTable", field)
    reverse = field_table(setup, PROXIMITY, "reverseProximityTable", field)
    importance = importance_of(setup, PROXIMITY, "proximityImportance", field)
    highest = forward.max * importance + reverse.max * (1.0 - importance) if uses_normalization(setup) else 1.0
    has_elements = is_multiple(setup.field(field))
    return NearParameters(
        setup.weight(field), forward, reverse, importance, highest or 1.0, has_elements, _gap(setup, field)
    )


def _gap(setup: RankSetup, field: str) -> float | None:
    key = f"{PROXIMITY}.elementGap.{field}"
    if setup.text(key) in (None, "infinity"):
        return None if setup.text(key) is None else math.inf
    gap = setup.whole(0, limits.FIELD_LENGTH, key)
    if gap < 0:
        raise LanguageError(f"rank property {key} is {gap}: at least 0")
    return float(gap)


class Pair(Struct, frozen=True):
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
    """The connectivity of a term with the one before it in the field; the query's holds for neighbours in the query."""
    number, term = terms[at]
    return term.connectivity if terms[at - 1][0] == number - 1 else DEFAULT_CONNECTIVITY
