"""Words that a numeric attribute reads as numbers and ranges: `7`, `<7`, `>7`, `[1;7]`, `<1;7>`, `[1;]`, `[1;7;-9]`.

Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html; a word of YQL may be one too
"""

from __future__ import annotations

from typing import Final, NamedTuple

from paperwasp.base.patterns import compile_later
from paperwasp.storage.attributes.bounds import Number, number_of

_PARTS: Final = 3
_HIT_LIMIT: Final = compile_later(r"[+-]?[0-9]{1,10}")


class NumberTerm(NamedTuple):
    """A range; None is open. `hit_limit` above 0: the lowest values that this number of documents have; below 0: the
    highest."""

    low: Number | None
    high: Number | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0


def number_term(word: str) -> NumberTerm | None:
    """Parses a word that is a number or a range of numbers; None for other words."""
    if len(word) >= 3 and word[0] in "[<" and word[-1] in "]>":
        return _full(word)
    if len(word) >= 2 and word[0] in "<>":
        number = number_of(word[1:])
        if number is None:
            return None
        if word[0] == "<":
            return NumberTerm(None, number, high_inclusive=False)
        return NumberTerm(number, None, low_inclusive=False)
    number = number_of(word)
    return None if number is None else NumberTerm(number, number)


def _full(word: str) -> NumberTerm | None:
    parts = word[1:-1].split(";")
    if not 2 <= len(parts) <= _PARTS:
        return None
    low, high = (number_of(part) for part in parts[:2])
    if (low is None and parts[0]) or (high is None and parts[1]):
        return None
    limit = parts[2].strip() if len(parts) == _PARTS else "0"
    if not _HIT_LIMIT.fullmatch(limit or "0"):
        return None
    return NumberTerm(low, high, word[0] == "[", word[-1] == "]", int(limit or 0))
