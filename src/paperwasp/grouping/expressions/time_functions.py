"""time.year, time.monthofyear, … : parts of a time in seconds since 1970, in the timezone of the query.

Days of the week count from Sunday, 0; days of the year from 0. time.date is year-month-day without leading zeros.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#time-expressions
Differs: the page says that Monday is 0; the content node counts from Sunday, and so is done here. Of times whose year
has no 32 bits all parts are 0; there they are undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.grouping.conversion import BUCKETS, as_longs, first_of
from paperwasp.grouping.expression import Expression
from paperwasp.grouping.node import Computed, Node, Scope, bind, bind_arguments, inner_expression, register
from paperwasp.grouping.tables import TextTable, distinct
from paperwasp.grouping.values import Kind, Values

Longs = NDArray[np.int64]
_DAY: Final = 86_400
_MOST_SECONDS: Final = 67_767_976_233_532_799
"""The last second of the last year that C's struct tm can say; the first is as far before 1970, but for a few years."""
_LEAST_SECONDS: Final = -67_768_040_609_740_800


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
    year, _, _ = _civil(days)
    before = year - 1
    first = 365 * before + before // 4 - before // 100 + before // 400 - 719_162
    return days - first


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
def _part(expression: Expression, scope: Scope) -> Node:
    argument = _local(expression, scope)
    part = _PARTS[expression.function]

    def compute(values: Sequence[Values]) -> Values:
        seconds = as_longs(values[0])
        valid = (seconds >= _LEAST_SECONDS) & (seconds <= _MOST_SECONDS)
        found = part(np.where(valid, seconds, 0))
        return Values(Kind.LONG, np.where(valid, found & 0xFFFF_FFFF, 0), None, values[0].offsets)

    return Computed(Kind.LONG, [argument], compute, is_multi=argument.is_multi)


@register("time.date")
def _date(expression: Expression, scope: Scope) -> Node:
    argument = _local(expression, scope)
    table = TextTable()

    def compute(values: Sequence[Values]) -> Values:
        seconds = as_longs(first_of(values[0]))
        valid = (seconds >= _LEAST_SECONDS) & (seconds <= _MOST_SECONDS)
        days, places = distinct(np.where(valid, seconds // _DAY, np.iinfo(np.int64).max))
        known = days < np.iinfo(np.int64).max
        parts = zip(*(each.tolist() for each in _civil(days[known])), strict=True)
        texts = [b"%d-%d-%d" % (year & 0xFFFF_FFFF, month, day) for year, month, day in parts]
        return Values(Kind.STRING, table.codes_of(texts + [b"0-0-0"] * int((~known).sum()))[places], table)

    return Computed(Kind.STRING, [argument], compute)


def _local(expression: Expression, scope: Scope) -> Node:
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
