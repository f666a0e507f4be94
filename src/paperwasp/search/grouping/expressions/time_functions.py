"""time.year, time.monthofyear, … : parts of a time in seconds since 1970, in the timezone of the query.

Days of the week count from Sunday, 0; days of the year from 0. time.date is year-month-day without leading zeros, of
the first of several values; of none it is "--". Of a year the lowest 32 bits are shown, without a sign.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#time-expressions; toGmtDateAndTime
Differs: the page says that Monday is 0; the content node counts from Sunday, and so is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import BUCKETS, as_longs, first_longs
from paperwasp.search.grouping.expression_node import (
    Computed,
    ExpressionNode,
    Scope,
    bind,
    bind_arguments,
    inner_expression,
    register,
)
from paperwasp.search.grouping.request import Expression
from paperwasp.search.grouping.tables import TextTable, distinct, mapped
from paperwasp.search.grouping.values import Kind, Values

Longs = NDArray[np.int64]
_DAY: Final = 86_400
_SHOWN: Final = 0xFFFF_FFFF
_BEFORE_MONTH: Final = np.array((0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334))
"""By month: the days of a common year before it."""


def _civil(days: Longs) -> tuple[Longs, Longs, Longs]:
    """Year, month (1-12) and day (1-31) of days since 1970: years begin in March, so that leap days are last."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = np.where(month < 10, month + 3, month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def _day_of_year(days: Longs) -> Longs:
    year, month, day = _civil(days)
    shown = year.astype(np.int32)  # a year that these bits do not hold is a leap year if what they hold is one
    is_leap = (shown % 4 == 0) & ((shown % 100 != 0) | (shown % 400 == 0))
    return np.asarray(_BEFORE_MONTH[month] + day - 1 + ((month > 2) & is_leap), np.int64)


_PARTS: Final[dict[str, Callable[[Longs], Longs]]] = {
    "time.year": lambda seconds: _civil(seconds // _DAY)[0],
    "time.monthofyear": lambda seconds: _civil(seconds // _DAY)[1],
    "time.dayofmonth": lambda seconds: _civil(seconds // _DAY)[2],
    "time.dayofyear": lambda seconds: _day_of_year(seconds // _DAY),
    "time.dayofweek": lambda seconds: (seconds // _DAY + 4) % 7,
    "time.hourofday": lambda seconds: seconds % _DAY // 3_600,
    "time.minuteofhour": lambda seconds: seconds % 3_600 // 60,
    "time.secondofminute": lambda seconds: seconds % 60,
}


@register(*_PARTS)
def _part(expression: Expression, scope: Scope) -> ExpressionNode:
    argument = _local(expression, scope)
    part = _PARTS[expression.function]

    def compute(values: Sequence[Values]) -> Values:
        return Values(Kind.LONG, part(as_longs(values[0])) & _SHOWN, None, values[0].offsets)

    return Computed(Kind.LONG, [argument], compute, is_multi=argument.is_multi)


@register("time.date")
def _date(expression: Expression, scope: Scope) -> ExpressionNode:
    argument = _local(expression, scope)
    table = TextTable()

    def compute(values: Sequence[Values]) -> Values:
        days, places = distinct(first_longs(values[0]) // _DAY)
        parts = zip(*(each.tolist() for each in _civil(days)), strict=True)
        codes = mapped(lambda date: b"%d-%d-%d" % (date[0] & _SHOWN, *date[1:]), list(parts), table)[places]
        offsets = values[0].offsets
        if offsets is not None:
            codes[offsets[1:] == offsets[:-1]] = table.codes_of((b"--",))[0]
        return Values(Kind.STRING, codes, table)

    return Computed(Kind.STRING, [argument], compute)


def _local(expression: Expression, scope: Scope) -> ExpressionNode:
    """The argument in seconds of the query's timezone."""
    inner = inner_expression(expression, 0)
    if scope.time_offset_seconds:
        inner = Expression("add", (inner, scope.time_offset_seconds))
        if len(expression.arguments) != 1:
            raise InvalidQuery(f"Function '{expression.function}' takes one argument")
        argument = bind(inner, scope)
    else:
        (argument,) = bind_arguments(expression, scope, 1, 1)
    if argument.kind in BUCKETS:
        raise InvalidQuery(f"Function '{expression.function}' does not take buckets")
    return argument
