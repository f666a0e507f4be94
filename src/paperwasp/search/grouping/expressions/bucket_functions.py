"""fixedwidth and predefined: the bucket that a value is in, low <= value < high.

A value in none of the predefined buckets has the value None, and so has one whose bucket of a fixed width is empty:
where the width is not above 0, or too small for doubles so large. Values are converted to the type of the limits. The
limits of the first and last longs do not go beyond 64 bits. NaN is in the first predefined bucket, as in Vespa.
Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#bucket-expressions
Differs: values with empty buckets are one group; there they are groups of their own, shown as one that has the
aggregates of the second. A long in a bucket of texts is its decimal text; there it is the empty one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.conversion import (
    BUCKETS,
    LEAST,
    MOST,
    WHOLE,
    as_doubles,
    as_longs,
    as_texts,
    constant_bytes,
    rounded,
)
from paperwasp.search.grouping.expression_node import (
    Computed,
    ExpressionNode,
    Scope,
    bind,
    inner_constant,
    inner_expression,
    register,
)
from paperwasp.search.grouping.request import Bucket, Expression, Infinite, Limit
from paperwasp.search.grouping.tables import InternedTable, TextTable, distinct, mapped
from paperwasp.search.grouping.values import Kind, ListTable, Values

_NO_BUCKET: Final = ListTable([None])


@register("fixedwidth")
def _fixed_width(expression: Expression, scope: Scope) -> ExpressionNode:
    argument = bind(inner_expression(expression, 0), scope)
    width = inner_constant(expression, 1)
    if not isinstance(width, int | float) or argument.kind not in (*WHOLE, Kind.DOUBLE):
        raise InvalidQuery(f"fixedwidth takes numbers, not {argument.kind.value} values")
    if argument.kind == Kind.DOUBLE:
        return _of_width(argument, Kind.DOUBLE_BUCKET, as_doubles, float(width), _around)
    whole = width if isinstance(width, int) else int(rounded(np.array([width]))[0])
    return _of_width(argument, Kind.LONG_BUCKET, as_longs, min(whole, MOST), _around_long)


def _of_width(
    argument: ExpressionNode,
    kind: Kind,
    read: Callable[[Values], Any],
    width: Any,
    bucket_of: Callable[[Any, Any], Any],
) -> ExpressionNode:
    """Buckets of a width, each of which is made once: `bucket_of` its number and the width."""
    table = InternedTable()

    def compute(values: Sequence[Values]) -> Values:
        numbers = read(values[0])
        with np.errstate(all="ignore"):
            found, places = distinct(numbers // width if numbers.dtype == np.int64 else np.floor(numbers / width))
        codes = mapped(lambda number: bucket_of(number, width), found.tolist(), table)
        return Values(kind, codes[places], table, values[0].offsets)

    def compute_none(values: Sequence[Values]) -> Values:
        return Values(kind, np.zeros(len(values[0].data), np.uint32), _NO_BUCKET, values[0].offsets)

    return Computed(kind, [argument], compute if width > 0 else compute_none, is_multi=argument.is_multi)


def _around(number: float, width: float) -> tuple[float, float] | None:
    if number != number:
        return math.nan, math.nan
    low, high = number * width + 0.0, (number + 1) * width  # 0.0: both zeros are one
    return None if low == high else (low, high)


def _around_long(number: int, width: int) -> tuple[int, int]:
    low, high = number * width, (number + 1) * width
    if number >= 0:
        return low, MOST if low >= MOST - width else high
    return LEAST if high <= LEAST + width else low, high


@register("predefined")
def _predefined(expression: Expression, scope: Scope) -> ExpressionNode:
    argument = bind(inner_expression(expression, 0), scope)
    buckets = [each for each in expression.arguments[1:] if isinstance(each, Bucket)]
    if not buckets or len(buckets) != len(expression.arguments) - 1 or argument.kind in BUCKETS:
        raise InvalidQuery("predefined takes an expression that is no bucket, and buckets")
    kind, limits = _limits_of(buckets)
    if kind in (Kind.LONG_BUCKET, Kind.DOUBLE_BUCKET):
        return _of_numbers(argument, kind, limits)
    return _of_texts(argument, kind, limits)


def _of_numbers(argument: ExpressionNode, kind: Kind, limits: Sequence[tuple[Any, Any]]) -> ExpressionNode:
    table = ListTable([None, *limits])
    read, dtype = (as_longs, np.int64) if kind == Kind.LONG_BUCKET else (as_doubles, np.float64)
    lows, highs = (np.array(each, dtype) for each in zip(*limits, strict=True))

    def compute(values: Sequence[Values]) -> Values:
        numbers = read(values[0])
        places = np.searchsorted(lows, numbers, side="right") - 1
        codes = np.where((places >= 0) & (numbers < highs[places]), places + 1, 0)
        if kind == Kind.DOUBLE_BUCKET:
            codes[np.isnan(numbers)] = 1
        return Values(kind, codes.astype(np.uint32), table, values[0].offsets)

    return Computed(kind, [argument], compute, is_multi=argument.is_multi)


def _limits_of(buckets: Sequence[Bucket]) -> tuple[Kind, list[tuple[Any, Any]]]:
    """The kind of buckets, and their limits; an infinite high text is None."""
    given = [limit for each in buckets for limit in (each.low, each.high) if not isinstance(limit, Infinite)]
    kinds = {type(limit) for limit in given}
    known = {int: (Kind.LONG_BUCKET, LEAST, MOST), float: (Kind.DOUBLE_BUCKET, -math.inf, math.inf),
             str: (Kind.STRING_BUCKET, "", None), bytes: (Kind.RAW_BUCKET, b"", None)}  # fmt: skip
    if len(kinds) != 1 or (of_type := known.get(next(iter(kinds)))) is None:
        raise InvalidQuery("The limits of predefined buckets are all of one type: long, double, string or raw")
    kind, least, most = of_type
    if any(isinstance(limit, int) and not LEAST <= limit <= MOST for limit in given):
        raise InvalidQuery("A limit of a bucket is no number of 64 bits")
    return kind, [
        (
            least if isinstance(each.low, Infinite) else each.low if each.includes_low else _next(each.low),
            most if isinstance(each.high, Infinite) else _next(each.high) if each.includes_high else each.high,
        )
        for each in buckets
    ]


def _next(limit: Limit) -> Any:
    """The next larger value, as the language defines it."""
    match limit:
        case int():
            return min(limit + 1, MOST)
        case float():
            return math.nextafter(limit, math.inf)
        case str():
            return limit + " "
        case bytes():
            return limit + b"\0"
    return limit


def _found(value: bytes, limits: Sequence[tuple[bytes, bytes | None]], shown: Sequence[Any]) -> Any:
    """Return the bucket with the value, as it is shown; None: there is none."""
    place = bisect_right(limits, value, key=lambda each: each[0]) - 1
    if place < 0:
        return None
    high = limits[place][1]
    return shown[place] if high is None or value < high else None


def _of_texts(argument: ExpressionNode, kind: Kind, limits: Sequence[tuple[Any, Any]]) -> ExpressionNode:
    table = InternedTable()
    found = [(constant_bytes(low), None if high is None else constant_bytes(high)) for low, high in limits]
    shown = [(low, type(low)() if high is None else high) for low, high in limits]

    def compute(values: Sequence[Values]) -> Values:
        texts = TextTable()
        codes, places = distinct(as_texts(values[0], texts))
        made = mapped(lambda text: _found(text, found, shown), texts.bytes_of(codes), table)
        return Values(kind, np.asarray(made[places], np.uint32), table, values[0].offsets)

    return Computed(kind, [argument], compute, is_multi=argument.is_multi)
