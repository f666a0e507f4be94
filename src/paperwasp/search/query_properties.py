"""Inputs and the time, as the rank properties of a query set them.

A property sets query(name) under the names `query(name)`, `name` and `$name`, in this order, as a number, or as the
hash of a text. What `input.query(name)` gives goes before it; inputs of tensor type cannot be set so.

Vespa: query_value.cpp (`request_lookup`, `as_feature`), nowfeature.cpp. `docs/reference/rank-properties.md` lists all
names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.ranking.names import input_name
from paperwasp.ranking.text_hash import text_number

NOW: Final = "vespa.now"
_WHOLE: Final = compile_later(r"\s*[+-]?[0-9]{1,18}")


def inputs_by_property(properties: Mapping[str, str]) -> dict[str, float]:
    """query(name) → number, for all names that the properties may be."""
    named = {name: text for name, text in properties.items() if not input_name(name)}
    old = {name[1:]: text for name, text in named.items() if name.startswith("$")}
    new = {name: text for key, text in properties.items() if (name := input_name(key))}
    return {name: text_number(text) for name, text in {**old, **named, **new}.items()}


def now_by_property(properties: Mapping[str, str], default: float) -> float:
    """Seconds since 1970: the whole number that the property begins with, 0 if it begins with none."""
    text = properties.get(NOW)
    if text is None:
        return default
    found = _WHOLE.match(text)
    return float(found[0]) if found else 0.0
