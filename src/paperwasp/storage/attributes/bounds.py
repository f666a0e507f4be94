"""The closed range of a column's own type, of the numbers, ranges and words of a query.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range and numeric terms
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

import numpy as np

from paperwasp.base.patterns import compile_later
from paperwasp.document.types import BOOL, NumericType

Number = int | float


class Bounds(NamedTuple):
    """low <= value <= high, both values of the column's type."""

    low: Number
    high: Number


def number_of(text: str) -> Number | None:
    """Return the number that a query term stands for, or None."""
    if _WHOLE.fullmatch(text):
        return int(text) if len(text) <= _MOST_DIGITS else float(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return float.fromhex(text) if _HEXADECIMAL.fullmatch(text) else None


_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1
_MOST_DIGITS: Final = 308
"""The most digits of an integer: every one with no more is a double, too."""
_WHOLE: Final = compile_later(r"[+-]?[0-9]+")
_DECIMAL: Final = compile_later(
    r"\s*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,9})?|inf|infinity)", re.ASCII | re.IGNORECASE
)
_HEXADECIMAL: Final = compile_later(r"\s*[+-]?0x[0-9a-f]{1,200}", re.ASCII | re.IGNORECASE)


def bounds_of(
    data_type: NumericType,
    low: Number | None,
    high: Number | None,
    low_inclusive: bool = True,
    high_inclusive: bool = True,
    *,
    skip_unset: bool = True,
) -> Bounds | None:
    """Return the closed range, or None when no value can be in it. Open ends are None.

    `skip_unset` leaves out the integer that stands for "no value", as Vespa does for single values. A single number is
    rounded, half away from zero, in a column of integers; the ends of a range are not.
    """
    if (low is not None and math.isnan(low)) or (high is not None and math.isnan(high)):
        return None
    if data_type.low is None or data_type.high is None:
        bounds = _float_bounds(data_type.dtype, low, high, low_inclusive, high_inclusive)
    else:
        low, high = _within_64_bits(low), _within_64_bits(high)
        if low is not None and low == high and low_inclusive and high_inclusive and math.isfinite(low):
            low = high = low if isinstance(low, int) else int(math.copysign(math.floor(abs(low) + 0.5), low))
        least = data_type.low + (skip_unset and data_type != BOOL)
        bounds = Bounds(
            max(least, _integer_low(low, low_inclusive)), min(data_type.high, _integer_high(high, high_inclusive))
        )
    return bounds if bounds.low <= bounds.high else None


def _within_64_bits(number: Number | None) -> Number | None:
    """An integer of more bits is the one of 64 that is nearest to it, as where Vespa reads one (strtoll)."""
    return max(_LEAST, min(number, _MOST)) if isinstance(number, int) else number


def _integer_low(low: Number | None, inclusive: bool) -> Number:
    if low is None or math.isinf(low):
        return -math.inf if low is None or low < 0 else math.inf
    least = math.ceil(low)
    return least if inclusive or least != low else least + 1


def _integer_high(high: Number | None, inclusive: bool) -> Number:
    if high is None or math.isinf(high):
        return math.inf if high is None or high > 0 else -math.inf
    most = math.floor(high)
    return most if inclusive or most != high else most - 1


def _float_bounds(
    dtype: str, low: Number | None, high: Number | None, low_inclusive: bool, high_inclusive: bool
) -> Bounds:
    """Rounded to the column's precision first, as the values in it are; then the next number for an open bound."""
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        least = kind(-math.inf if low is None else _to_float(low))
        most = kind(math.inf if high is None else _to_float(high))
        if not low_inclusive and low is not None:
            least = np.nextafter(least, kind(math.inf)) if least != math.inf else kind(math.nan)
        if not high_inclusive and high is not None:
            most = np.nextafter(most, kind(-math.inf)) if most != -math.inf else kind(math.nan)
    return Bounds(float(least), float(most))


def _to_float(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


# Words that are numbers or ranges

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
    """Read a word that is a number or a range: `7`, `<7`, `>7`, `[1;7]`, `<1;7>`, `[1;]`, `[1;7;-9]`; None: it is none.

    Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html; a word of YQL may be one too
    """
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
