"""Ranges of numbers that strings and parameters of YQL hold: `<7`, `>7`, `[1;7]`, `<1;7>`, `[;7;-9]`.

Vespa: setNumber of container-search's IntItem.java; which bound belongs to a range is the content node's
reading of the text (numeric_range_spec.cpp).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from paperwasp.base.patterns import compile_later
from paperwasp.search.language.lexicon import Number, parse_number

_HIT_LIMIT: Final = compile_later(r"[+-]?\d{1,9}")


class NumberRange(NamedTuple):
    """A range of numbers; None is open. `hit_limit` is that of a RangeItem."""

    low: Number | None
    high: Number | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0


def parse_range(text: str) -> NumberRange | None:
    """The range of numbers that a text holds, or None."""
    text = text.strip()
    if text[:1] in ("<", ">") and ";" not in text:
        number = parse_number(text[1:])
        if number is None:
            return None
        is_above = text[0] == ">"
        return NumberRange(number if is_above else None, None if is_above else number, not is_above, is_above)
    if text[:1] not in ("[", "<") or text[-1:] not in ("]", ">"):
        return None
    low, high, limit = (*text[1:-1].split(";"), "", "")[:3]
    if text.count(";") not in (1, 2) or not (_is_bound(low) and _is_bound(high)):
        return None
    if limit and not _HIT_LIMIT.fullmatch(limit):
        return None
    return NumberRange(parse_number(low), parse_number(high), text[0] == "[", text[-1] == "]", int(limit or 0))


def _is_bound(text: str) -> bool:
    return not text or parse_number(text) is not None
