"""fieldMatch(field): how well a field matches the query, by the segments of the field that have the query's words.

Vespa: https://docs.vespa.ai/en/reference/ranking/string-segment-match.html
Where the page and the running system differ (1,000 alternative segmentations, the table of proximities, a score in
which occurrence counts too) this follows the running system.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery, LanguageError
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.setting import RankTerm
from paperwasp.search.features.term_places import flat_positions, is_flat

NAME: Final = "fieldMatch"
METRICS: Final = (
    "score", "proximity", "completeness", "queryCompleteness", "fieldCompleteness", "orderness", "relatedness",
    "earliness", "longestSequenceRatio", "segmentProximity", "unweightedProximity", "absoluteProximity", "occurrence",
    "absoluteOccurrence", "weightedOccurrence", "weightedAbsoluteOccurrence", "significantOccurrence", "weight",
    "significance", "importance", "segments", "matches", "outOfOrder", "gaps", "gapLength", "longestSequence", "head",
    "tail", "segmentDistance", "degradedMatches",
)  # fmt: skip
"""In the order of the kernel's results."""
_FILTER_METRICS: Final = ("completeness", "queryCompleteness", "weight", "matches", "degradedMatches")
_SPLIT_SIGNIFICANCE: Final = 1.0
"""The significance of words of a phrase, whose frequencies are not counted."""
_UNSET_CONNECTEDNESS: Final = 0.1
DEFAULT_CONNECTEDNESS: Final = float(np.float32(0.1))
"""In single precision, as in Vespa: words next to each other then tie exactly with words that have no pair."""
_BACKWARD: Final = (0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.17, 0.24, 0.33)
_FORWARD: Final = (1.0, 0.71, 0.50, 0.35, 0.25, 0.18, 0.13, 0.09, 0.06, 0.04, 0.03)
_IMPORTANCES: Final = {
    "proximity_completeness": ("proximityCompletenessImportance", 0.9),
    "relatedness": ("relatednessImportance", 0.9),
    "earliness": ("earlinessImportance", 0.05),
    "segment_proximity": ("segmentProximityImportance", 0.05),
    "occurrence": ("occurrenceImportance", 0.05),
    "field_completeness": ("fieldCompletenessImportance", 0.05),
}


class Settings(Struct, frozen=True):
    """The settings in a rank profile. `table` has 2 * limit + 1 values: for distances from -limit to limit."""

    table: Sequence[float]
    proximity_completeness: float
    relatedness: float
    earliness: float
    segment_proximity: float
    occurrence: float
    field_completeness: float
    max_alternatives: int
    max_occurrences: int

    @property
    def limit(self) -> int:
        return len(self.table) // 2

    def importances(self) -> list[float]:
        """In the order in which the kernel takes them."""
        names = ("proximity_completeness", "relatedness", "earliness", "segment_proximity", "occurrence")
        return [*(getattr(self, name) for name in names), self.field_completeness]


def single(value: float) -> float:
    """A default of Vespa, which has it in single precision."""
    return float(np.float32(value))


def settings_of(setup: RankSetup, name: str) -> Settings:
    """The rank properties `fieldMatch(name).…` over the defaults of Vespa."""
    prefix = f"{NAME}({name})"
    limit = setup.whole(len(_BACKWARD), limits.FIELD_MATCH_PROXIMITY, f"{prefix}.proximityLimit")
    alternatives = setup.whole(1000, limits.FIELD_MATCH_SEGMENTATIONS, f"{prefix}.maxAlternativeSegmentations")
    occurrences = setup.whole(100, limits.FIELD_MATCH_OCCURRENCES, f"{prefix}.maxOccurrences")
    if limit < 0 or alternatives < 0 or occurrences < 1:
        raise LanguageError(f"rank properties of {prefix} that are too small: there is at least one of maxOccurrences")
    return Settings(
        table=_table(setup, f"{prefix}.proximityTable", limit),
        max_alternatives=alternatives,
        max_occurrences=occurrences,
        **{key: setup.number(single(default), f"{prefix}.{name}") for key, (name, default) in _IMPORTANCES.items()},
    )


def _table(setup: RankSetup, key: str, limit: int) -> tuple[float, ...]:
    """The worth of each distance from -limit to limit."""
    texts = setup.profile.rank_properties.get(key)
    try:
        values = [float(text.strip().strip("\"'")) for text in texts or ()]
    except ValueError:
        raise LanguageError(f"rank property {key} has something else than numbers") from None
    table = tuple(values if texts is not None else map(single, _BACKWARD + _FORWARD))
    if len(table) != 2 * limit + 1:
        raise LanguageError(
            f"rank property {key} has {len(table)} values: with a proximityLimit of {limit} there are {2 * limit + 1}"
        )
    return table


class Words(Struct):
    """The words of a query in a field, phrases split: parallel lists. `terms` are places in `numbers`."""

    numbers: list[int] = field(default_factory=list)
    """The terms of the query that search the field."""
    terms: list[int] = field(default_factory=list)
    shifts: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    significances: list[float] = field(default_factory=list)
    connectedness: list[float] = field(default_factory=list)
    total_weight: float = 0.0
    """The weight of all terms of the query."""
    total_significance: float = 0.0

    @classmethod
    def of(cls, block: Block, name: str) -> Words:
        words = cls()
        for number, term in enumerate(block.terms):
            if name in term.fields:
                words.numbers.append(number)
                words.add(term)
            else:
                words.total_weight += term.weight
                words.total_significance += term.significance
        words.total_weight = _total(block, name, "totalTermWeight", words.total_weight)
        words.total_significance = _total(block, name, "totalTermSignificance", round(words.total_significance, 6))
        return words

    def add(self, term: RankTerm) -> None:
        """Adds the words of a term, each of which has its weight."""
        length = max(1, term.phrase_length)
        split = length > 1 and not term.explicit_significance
        significance = _SPLIT_SIGNIFICANCE if split else term.significance
        first = DEFAULT_CONNECTEDNESS if term.connectivity == _UNSET_CONNECTEDNESS else term.connectivity
        self.terms += [len(self.numbers) - 1] * length
        self.shifts += range(length)
        self.weights += [term.weight] * length
        self.significances += [significance] * length
        self.connectedness += [first, *[DEFAULT_CONNECTEDNESS] * (length - 1)]
        self.total_weight += term.weight * length
        self.total_significance += significance * length


def _total(block: Block, name: str, key: str, found: float) -> float:
    """Raises InvalidQuery for a rank property that is no number."""
    text = block.setting.properties.get(f"{NAME}({name}).{key}")
    try:
        return found if text is None else float(text)
    except ValueError:
        raise InvalidQuery(f"Rank property '{NAME}({name}).{key}' is no number: '{text}'") from None


def field_metrics(block: Block, name: str, settings: Settings, *, flat: bool = False) -> Floats:
    """(hits, METRICS). `flat`: of a field that is taken for a text of one value (`flat_places`)."""
    words = Words.of(block, name)
    if flat:
        found, lengths = flat_positions(block, words.numbers, name)
    else:
        found, lengths = [block.positions(number, name) for number in words.numbers], block.field_length(name)
    matched = np.zeros(0, np.uint8)
    if any(len(positions) == 0 for _, positions in found):
        matched = np.concatenate([block.matched(number, name) for number in words.numbers]).astype(np.uint8)
    results = np.zeros(len(block.lids) * len(METRICS))
    _core.field_match(
        [offsets for offsets, _ in found],
        [positions for _, positions in found],
        matched,
        lengths,
        np.array(words.terms, np.uint32),
        np.array(words.shifts, np.uint32),
        np.array(words.weights, np.float64),
        np.array(words.significances, np.float64),
        np.array(words.connectedness, np.float64),
        words.total_weight,
        words.total_significance,
        np.array(settings.table, np.float64),
        np.array(settings.importances(), np.float64),
        settings.max_alternatives,
        settings.max_occurrences,
        results,
    )
    return results.reshape(-1, len(METRICS))


def _listed(setup: RankSetup) -> Iterable[str]:
    for name in filter(setup.is_single, setup.listed_index_fields):
        yield f"{NAME}({name})"
        for metric in _FILTER_METRICS if setup.is_filter(name) else METRICS[1:]:
            yield f"{NAME}({name}).{metric}"


@register(NAME, "single-index", outputs=(METRICS[0], "match", *METRICS[1:]), listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = arguments[0]
    settings = settings_of(setup, name)
    column = 0 if output == "match" else METRICS.index(output)
    flat = is_flat(setup, name)

    def compute(block: Block) -> Floats:
        if not any(terms_of(block, name)):
            return one(0.0)
        metrics = block.once((NAME, name), lambda: field_metrics(block, name, settings, flat=flat))
        return metrics[:, column]

    return compute
