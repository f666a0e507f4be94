"""`sameElement`: conditions on one element of a field of many values."""

from __future__ import annotations

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item, SameElementItem
from paperwasp.operators.registry import leaf
from paperwasp.parsing.tokens import TokenStream
from paperwasp.query.scope import Scope, Value


@leaf("sameElement")
def same_element(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`sameElement(name contains "x", year < 1940)`, or of texts `sameElement("a" and !"b")`.

    `elementFilter` says in which elements alone, by their numbers.
    """
    given = scope.values.get("elementFilter", [])
    numbers = tuple(element_number(value, parser.tokens) for value in (given if isinstance(given, list) else [given]))
    with parser.inside(field):
        children = parser.arguments(outer)
    return SameElementItem(field, children, numbers)


def element_number(value: Value, tokens: TokenStream) -> int:
    """The number of an element. Errors: LanguageError if it is none."""
    if type(value) is not int or not 0 <= value < 2**31:
        tokens.fail(f"the number of an element must be an integer from 0 to {2**31 - 1}, not {value!r}")
    return value
