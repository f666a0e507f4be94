"""`predicate`: the attributes that make a stored predicate true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item, PredicateItem
from paperwasp.operators.registry import condition
from paperwasp.parsing.tokens import Token
from paperwasp.patterns import compile_later
from paperwasp.query.scope import Scope

_ALL_SUBQUERIES: Final = 2**64 - 1
_BITS: Final = compile_later(r"\[\s*[0-9]{1,2}\s*(?:,\s*[0-9]{1,2}\s*)*\]")


@condition("predicate")
def predicate(parser: ArgumentReader, scope: Scope) -> Item:
    """`predicate(field, {"gender": "Female"}, {"age": 20L})`; 0 stands for no attributes.

    A key `"0x3"` or `"[0, 1]"` holds a map for those subqueries alone.
    """
    tokens = parser.tokens
    field = parser.field_or_quoted()
    tokens.expect(",")
    start = tokens.current
    attributes = tuple(_features(parser, start, parser.value(), str, _ALL_SUBQUERIES))
    tokens.expect(",")
    start = tokens.current
    ranges = tuple(_features(parser, start, parser.value(), int, _ALL_SUBQUERIES))
    return PredicateItem(field, attributes, ranges, annotations=scope.of_term())


def _features(
    parser: ArgumentReader, start: Token, given: Any, kind: type, subqueries: int
) -> Iterator[tuple[str, Any, int]]:
    """(name, value, subqueries) for each value in a map; anything else stands for an empty one."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _features(parser, start, value, kind, _subqueries(parser, start, name))
            continue
        for one in value if isinstance(value, list) else [value]:
            if type(one) is not kind or (isinstance(one, int) and not -(2**63) <= one < 2**63):
                wanted = "a string" if kind is str else "an integer of 64 bits"
                parser.tokens.fail(f"the value of '{name}' must be {wanted}, not {one!r}", start)
            yield name, one, subqueries


def _subqueries(parser: ArgumentReader, start: Token, key: str) -> int:
    """The bits that a key names: `0x` and at most 16 digits, or `[0, 1]`."""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", key):
        return int(key, 16)
    bits = [int(bit) for bit in key[1:-1].split(",")] if _BITS.fullmatch(key) else [64]
    if max(bits) > 63:
        parser.tokens.fail(f"'{key}' does not name subqueries: write '0x3' or '[0, 1]', of 64 at most", start)
    return sum(1 << bit for bit in set(bits))
