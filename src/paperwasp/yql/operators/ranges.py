"""`range`: numbers, or strings, between two bounds."""

from __future__ import annotations

from math import inf
from typing import Final

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item, RangeItem, TextRangeItem
from paperwasp.operators.registry import condition
from paperwasp.query.lexicon import NUMBERS, number_value
from paperwasp.query.scope import Scope

_BOUNDS: Final = {
    None: (True, True),
    "closed": (True, True),
    "open": (False, False),
    "leftOpen": (False, True),
    "rightOpen": (True, False),
}


def text_range(
    field: str, bounds: tuple[str | None, str | None], inclusive: tuple[bool, bool], scope: Scope
) -> TextRangeItem:
    """A range of strings between two bounds, either of which may be open."""
    if scope.hit_limit():
        scope.fail("a range of strings has no hitLimit")
    return TextRangeItem(field, *bounds, *inclusive, annotations=scope.of_term())


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
    if isinstance(low, str) or isinstance(high, str):
        if not (isinstance(low, str) or low == -inf) or not (isinstance(high, str) or high == inf):
            parser.tokens.fail("the bounds of a range are two numbers or two strings", start)
        return text_range(
            field,
            (low if isinstance(low, str) else None, high if isinstance(high, str) else None),
            (low_inclusive, high_inclusive),
            scope,
        )
    return RangeItem(
        field,
        None if low == -inf else low,
        None if high == inf else high,
        low_inclusive,
        high_inclusive,
        scope.hit_limit(),
        annotations=scope.of_term(),
    )


def _read_bound(parser: ArgumentReader) -> int | float | str:
    tokens = parser.tokens
    if tokens.at_kind("string"):
        return parser.text("a bound")
    sign = -1 if tokens.accept("-") else 1
    if tokens.at("Infinity"):
        tokens.next()
        return sign * inf
    token = tokens.accept_kind(*NUMBERS)
    if token is None:
        tokens.fail(f"range takes a number, a string or Infinity, found {tokens.found()}")
    return sign * number_value(tokens, token)
