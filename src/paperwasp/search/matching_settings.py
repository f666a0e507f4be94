"""Settings for matching words and vectors: rank properties of the query, else those of its rank profile.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#element-gap, #filter-threshold, #weakand,
#approximate-threshold
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import RankProfile
from paperwasp.search.operators.operator import NO_TUNING, NeighborTuning, Tuning

ELEMENT_GAP: Final = "vespa.matching.element_gap."
"""The rank property for the gap between elements of a field, with the field's name behind it."""
FILTER_THRESHOLD: Final = "vespa.matching.filter_threshold"
STOPWORD_LIMIT: Final = "vespa.matching.weakand.stop_word_drop_limit"
ADJUST_TARGET: Final = "vespa.matching.weakand.stop_word_adjust_limit"
ALLOW_DROP_ALL: Final = "vespa.matching.weakand.allow_drop_all"
"""Rank properties for words that are in many documents: see `operators.operator`."""
APPROXIMATE_THRESHOLD: Final = "vespa.matching.global_filter.lower_limit"
POST_FILTER_THRESHOLD: Final = "vespa.matching.global_filter.upper_limit"
FILTER_FIRST_THRESHOLD: Final = "vespa.matching.nns.filter_first_upper_limit"
FILTER_FIRST_EXPLORATION: Final = "vespa.matching.nns.filter_first_exploration"
EXPLORATION_SLACK: Final = "vespa.matching.nns.exploration_slack"
TARGET_FACTOR: Final = "vespa.matching.nns.target_hits_max_adjustment_factor"
TIME_BUDGET: Final = "vespa.matching.anntimebudget"
"""Rank properties for nearest neighbours; the last in milliseconds."""
THREADS_OF_SEARCH: Final = "vespa.matching.numthreadspersearch"
HITS_OF_THREAD: Final = "vespa.matching.minhitsperthread"
SEARCH_PARTITIONS: Final = "vespa.matching.numsearchpartitions"
"""The rank property for the threads that rank a query: see `search.phases.scored_blocks`."""


_DIGITS: Final = 9
_SHARE: Final = compile_later(r"(?:[0-9]{1,15}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_SHARES: Final = {
    FILTER_THRESHOLD: "filter-threshold",
    STOPWORD_LIMIT: "weakand stopword-limit",
    ADJUST_TARGET: "weakand adjust-target",
}
"""The property of a query → what a rank profile calls it."""
_NEIGHBORS: Final = {
    APPROXIMATE_THRESHOLD: "approximate-threshold",
    POST_FILTER_THRESHOLD: "post-filter-threshold",
    FILTER_FIRST_THRESHOLD: "filter-first-threshold",
    FILTER_FIRST_EXPLORATION: "filter-first-exploration",
    EXPLORATION_SLACK: "exploration-slack",
    TARGET_FACTOR: "target-hits-max-adjustment-factor",
}
"""The same of nearest neighbours."""
_NAMES: Final = frozenset((*_SHARES, ALLOW_DROP_ALL, *_NEIGHBORS, TIME_BUDGET))


def declared_gaps(declared: RankProfile) -> dict[str, float]:
    """How far apart the elements of fields are, of those that a rank profile says anything of."""
    ranks = declared.field_ranks.items()
    return {name: rank.element_gap for name, rank in ranks if rank.element_gap is not None}


def element_gaps(declared: Mapping[str, float], properties: Mapping[str, str]) -> Mapping[str, float]:
    """The gaps of a rank profile with what the properties of a query say instead. Errors: InvalidQuery."""
    names = [name for name in properties if name.startswith(ELEMENT_GAP)]
    said = {name.removeprefix(ELEMENT_GAP): _gap(properties[name]) for name in names}
    return {**declared, **said} if said else declared


def _gap(value: str) -> float:
    if value == "infinity":
        return math.inf
    if not value.isdecimal() or len(value) > _DIGITS:
        raise InvalidQuery(f"The gap between elements is 'infinity' or a number of positions, not '{value[:20]}'")
    return float(value)


def filter_tuning(declared: RankProfile) -> Tuning:
    """The tuning in streaming search, where frequencies are not known: only fields that filter count."""
    return Tuning(filter_fields=declared.filter_fields) if declared.filter_fields else NO_TUNING


def declared_tuning(declared: RankProfile) -> Tuning:
    """Return the tuning of a rank profile for words that are in many documents."""
    return _tuning(declared, {})


def tuning(declared: RankProfile, known: Tuning, properties: Mapping[str, str]) -> Tuning:
    """The tuning of a rank profile with what the properties of a query say instead. Errors: InvalidQuery."""
    return _tuning(declared, properties) if properties and not _NAMES.isdisjoint(properties) else known


def _tuning(declared: RankProfile, properties: Mapping[str, str]) -> Tuning:
    said = declared.tuning
    ranks = declared.field_ranks.items()
    of_fields = {name: rank.filter_threshold for name, rank in ranks if rank.filter_threshold is not None}
    filters = declared.filter_fields
    neighbors = _neighbors(said, properties)
    if not (of_fields or filters or any(name in said or key in properties for key, name in _SHARES.items())):
        return NO_TUNING if neighbors is NO_TUNING.neighbors else Tuning(neighbors=neighbors)
    shares = {name: _share(key, properties, said.get(name, 1.0)) for key, name in _SHARES.items()}
    allowed = properties.get(ALLOW_DROP_ALL)
    return Tuning(
        shares["filter-threshold"],
        of_fields,
        filters,
        shares["weakand stopword-limit"],
        shares["weakand adjust-target"],
        bool(said.get("weakand allow-drop-all", 0.0)) if allowed is None else allowed == "true",
        neighbors,
    )


def _neighbors(said: Mapping[str, float], properties: Mapping[str, str]) -> NeighborTuning:
    """The settings for nearest neighbours: those of the query, else of the rank profile, else Vespa's defaults."""
    found = {
        name.replace("-", "_"): _setting(key, properties, said.get(name, 0.0))
        for key, name in _NEIGHBORS.items()
        if key in properties or name in said
    }
    tuning = replace(NO_TUNING.neighbors, **found) if found else NO_TUNING.neighbors
    text = properties.get(TIME_BUDGET)
    if text is None:
        return tuning
    if not (text.isascii() and text.isdecimal()) or len(text) > _DIGITS + 1:
        raise InvalidQuery(f"The rank property '{TIME_BUDGET}' is a number of milliseconds, not '{text[:20]}'")
    return replace(tuning, time_budget_ms=float(text))


def _setting(key: str, properties: Mapping[str, str], declared: float) -> float:
    text = properties.get(key)
    if key != TARGET_FACTOR:
        return _share(key, properties, declared)
    if text is not None and (not _SHARE.fullmatch(text) or float(text) < 1):
        raise InvalidQuery(f"The rank property '{key}' is a number from 1 on, not '{text[:20]}'")
    return declared if text is None else float(text)


def _share(key: str, properties: Mapping[str, str], default: float) -> float:
    text = properties.get(key)
    if text is None:
        return default
    if not _SHARE.fullmatch(text) or float(text) > 1:
        raise InvalidQuery(f"The rank property '{key}' is a number from 0 to 1, not '{text[:20]}'")
    return float(text)
