"""The values of request parameters that stand for a whole list: `in (@values)`, `wand(field, @tokens)`.

Quotes around a value are not part of it, and needed only where it has a comma or a colon in it.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#parameter-substitution
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time

_VALUE: Final = compile_later(r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,]*))(?:,|\Z)""")
_ELEMENT: Final = compile_later(r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,\]\s][^,\]]*|))(?:,|(?=\]))""")
_ENTRY: Final = compile_later(
    r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^:'"{}\s][^:'"{}]*|)):\s*(-?[0-9]{1,10})\s*(?:,|(?=\}))"""
)
_PAIR: Final = compile_later(
    r"""\s*\[\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,'"\[\]\s][^,'"\[\]]*|)),\s*(-?[0-9]{1,10})\s*\]\s*(?:,|(?=\]))"""
)
_INTEGER: Final = compile_later(r"[+-]?[0-9]{1,19}")

Tokens = tuple[tuple[str | int, int], ...]


def string_values(text: str) -> tuple[str, ...]:
    """`a, 'b, c', d`, or the same in brackets, as a list in a JSON body is; what is empty is left out.

    Errors: ValueError, OutOfTime.
    """
    text = text.strip()
    entry, close = (_ELEMENT, "]") if text.startswith("[") else (_VALUE, "")
    values: list[str] = []
    at = len(close)
    while text[at : at + 1] != close and (match := entry.match(text, at)):
        check_time()
        values.append(_unquote(*match.groups()))
        at = match.end()
    if close and text[at:] != close:
        raise ValueError(f"expected a value, or '{close}' at the end, at '{text[at : at + 50]}'")
    return tuple(value for value in values if value)


def _unquote(single: str | None, double: str | None, plain: str | None) -> str:
    return single if single is not None else double if double is not None else (plain or "").strip()


def weighted_tokens(text: str) -> Tokens:
    """`{a: 1, 'b': 2}`, or `[[11, 1], [37, 2]]`, whose keys are integers if all of them look so.

    Errors: ValueError, OutOfTime.
    """
    text = text.strip()
    if not text.startswith(("{", "[")):
        raise ValueError(f"expected a map that begins with '{{' or a list that begins with '[', not '{text[:50]}'")
    entry, close = (_ENTRY, "}") if text[0] == "{" else (_PAIR, "]")
    found: list[tuple[str, int]] = []
    at = 1
    while match := entry.match(text, at):
        check_time()
        *key, weight = match.groups()
        found.append((_unquote(*key), int(weight)))
        at = match.end()
    if text[at:].strip() != close:
        raise ValueError(f"expected a key with an integer as its weight, or '{close}', at '{text[at : at + 50]}'")
    if close == "]" and all(_INTEGER.fullmatch(key) for key, _ in found):
        return highest((int(key), weight) for key, weight in found)
    return highest(found)


def highest(tokens: Iterable[tuple[str | int, int]]) -> Tokens:
    """Each key once, with the highest of its weights. Errors: ValueError for a weight beyond 32 bits."""
    weights: dict[str | int, int] = {}
    for key, weight in tokens:
        if not -(2**31) <= weight < 2**31:
            raise ValueError(f"the weight {weight} of '{key}' does not fit in 32 bits")
        weights[key] = max(weight, weights.get(key, weight))
    return tuple(weights.items())
