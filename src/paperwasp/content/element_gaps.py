"""How far apart the elements of a field are for `near` and `onear`: what the query says, over its rank profile.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#element-gap
"""

from __future__ import annotations

import math

from paperwasp.content.messages import ELEMENT_GAP, SearchRequest
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Schema

_DIGITS = 9


def element_gaps(schema: Schema, request: SearchRequest) -> dict[str, float]:
    """Field → gap, of those that anything is said of. Errors: InvalidQuery."""
    declared = schema.rank_profiles.get(request.rank_profile)
    ranks = declared.field_ranks.items() if declared is not None else ()
    gaps = {name: rank.element_gap for name, rank in ranks if rank.element_gap is not None}
    for name, value in request.rank_properties.items():
        if name.startswith(ELEMENT_GAP):
            gaps[name.removeprefix(ELEMENT_GAP)] = _gap(value)
    return gaps


def _gap(value: str) -> float:
    if value == "infinity":
        return math.inf
    if not value.isdecimal() or len(value) > _DIGITS:
        raise InvalidQuery(f"The gap between elements is 'infinity' or a number of positions, not '{value[:20]}'")
    return float(value)
