"""How words are matched: what the query says by rank properties, over its rank profile.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#element-gap, #filter-threshold, #weakand
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from paperwasp.errors import InvalidQuery
from paperwasp.operators.tuning import NO_TUNING, Tuning
from paperwasp.schema.model import Schema
from paperwasp.search.query import (
    ADJUST_TARGET,
    ALLOW_DROP_ALL,
    ELEMENT_GAP,
    FILTER_THRESHOLD,
    STOPWORD_LIMIT,
    Query,
)

_DIGITS: Final = 9
_SHARE: Final = re.compile(r"(?:[0-9]{1,15}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_SHARES: Final = {
    FILTER_THRESHOLD: "filter-threshold",
    STOPWORD_LIMIT: "weakand stopword-limit",
    ADJUST_TARGET: "weakand adjust-target",
}
"""The property of a query → what a rank profile calls it."""


def element_gaps(schema: Schema, query: Query) -> dict[str, float]:
    """How far apart the elements of fields are, of those that anything is said of. Errors: InvalidQuery."""
    declared = schema.rank_profiles.get(query.rank.profile)
    ranks = declared.field_ranks.items() if declared is not None else ()
    gaps = {name: rank.element_gap for name, rank in ranks if rank.element_gap is not None}
    for name, value in query.rank.properties.items():
        if name.startswith(ELEMENT_GAP):
            gaps[name.removeprefix(ELEMENT_GAP)] = _gap(value)
    return gaps


def _gap(value: str) -> float:
    if value == "infinity":
        return math.inf
    if not value.isdecimal() or len(value) > _DIGITS:
        raise InvalidQuery(f"The gap between elements is 'infinity' or a number of positions, not '{value[:20]}'")
    return float(value)


def streamed_tuning(schema: Schema, query: Query) -> Tuning:
    """The tuning in streaming search, where frequencies are not known: only fields that filter count."""
    declared = schema.rank_profiles.get(query.rank.profile)
    fields = frozenset[str]() if declared is None else declared.filter_fields
    return Tuning(filter_fields=fields) if fields else NO_TUNING


def tuning(schema: Schema, query: Query) -> Tuning:
    """What is done with words that are in many documents. Errors: InvalidQuery."""
    declared = schema.rank_profiles.get(query.rank.profile)
    said = {} if declared is None else declared.tuning
    ranks = {} if declared is None else declared.field_ranks
    of_fields = {name: rank.filter_threshold for name, rank in ranks.items() if rank.filter_threshold is not None}
    properties = query.rank.properties
    filters = frozenset[str]() if declared is None else declared.filter_fields
    if not (of_fields or filters or any(name in said or key in properties for key, name in _SHARES.items())):
        return NO_TUNING
    shares = {name: _share(key, properties, said.get(name, 1.0)) for key, name in _SHARES.items()}
    allowed = properties.get(ALLOW_DROP_ALL)
    return Tuning(
        shares["filter-threshold"],
        of_fields,
        filters,
        shares["weakand stopword-limit"],
        shares["weakand adjust-target"],
        bool(said.get("weakand allow-drop-all", 0.0)) if allowed is None else allowed == "true",
    )


def _share(key: str, properties: Mapping[str, str], default: float) -> float:
    text = properties.get(key)
    if text is None:
        return default
    if not _SHARE.fullmatch(text) or float(text) > 1:
        raise InvalidQuery(f"The rank property '{key}' is a number from 0 to 1, not '{text[:20]}'")
    return float(text)
