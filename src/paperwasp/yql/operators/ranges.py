"""`range`: numbers between two bounds."""

from __future__ import annotations

from math import inf
from typing import Final

from paperwasp.query.items import Item, RangeItem
from paperwasp.yql.annotations import Scope
from paperwasp.yql.arguments import ArgumentReader
from paperwasp.yql.lexicon import NUMBERS, number_value
from paperwasp.yql.operators.registry import condition

_BOUNDS: Final = {
    None: (True, True),
    "closed": (True, True),
    "open": (False, False),
    "leftOpen": (False, True),
    "rightOpen": (True, False),
}


@condition("range")
def range_(parser: ArgumentReader, scope: Scope) -> Item:
    """`range(field, low, high)`; `bounds` says which of the two do not belong to it."""
    start = parser.tokens.current
    field = parser.field_or_quoted()
    parser.tokens.expect(",")
    low = _read_bound(parser)
    parser.tokens.expect(",")
    high = _read_bound(parser)
    bounds = scope.get("bounds", str)
    if bounds not in _BOUNDS:
        parser.tokens.fail(f"annotation 'bounds' must be open, leftOpen or rightOpen, not '{bounds}'", start)
    low_inclusive, high_inclusive = _BOUNDS[bounds]
    return RangeItem(
        field,
        None if low == -inf else low,
        None if high == inf else high,
        low_inclusive,
        high_inclusive,
        scope.hit_limit(),
        annotations=scope.of_term(),
    )


def _read_bound(parser: ArgumentReader) -> int | float:
    tokens = parser.tokens
    sign = -1 if tokens.accept("-") else 1
    if tokens.at("Infinity"):
        tokens.next()
        return sign * inf
    token = tokens.accept_kind(*NUMBERS)
    if token is None:
        tokens.fail(f"range takes a number or Infinity, found {tokens.found()}")
    return sign * number_value(tokens, token)
