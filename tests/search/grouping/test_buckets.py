"""Buckets of values, by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from paperwasp.document.types import DOUBLE, LONG, STRING, array_of
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expressions import bind
from paperwasp.search.grouping.request import Bucket, Expression, Infinite
from paperwasp.search.grouping.value_columns import ranks_of
from paperwasp.search.grouping.values import Kind, ListTable, Values
from tests.search.grouping.documents import attribute, column, evaluated, of, rows_of, scope_of

_LEAST, _MOST = -(2**63), 2**63 - 1
_SCOPE = scope_of(
    {
        "n": column(LONG, [7, -7, 0, _MOST, _LEAST]),
        "d": column(DOUBLE, [2.5, -0.5, 1.0, math.nan, 9.0]),
        "s": column(STRING, ["apple", "b", "c", "zoo", None]),
        "a": column(array_of(LONG), [[1, 11], [], [-1], [10], [9]]),
    }
)
N, D, S = (attribute(name) for name in ("n", "d", "s"))
_LOW, _HIGH = Infinite(True), Infinite(False)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (of("fixedwidth", N, 5), [(5, 10), (-10, -5), (0, 5), (_MOST - 2, _MOST), (_LEAST, _LEAST + 3)]),
        (of("fixedwidth", attribute("a"), 10), [[(0, 10), (10, 20)], [], [(-10, 0)], [(10, 20)], [(0, 10)]]),
        (of("predefined", N, Bucket(_LOW, 0), Bucket(0, 7, True, True)),
         [(0, 8), (_LEAST, 0), (0, 8), None, (_LEAST, 0)]),
        (of("predefined", D, Bucket(-0.5, 1.0, False), Bucket(1.0, _HIGH)),
         [(1.0, math.inf), None, (1.0, math.inf), (math.nextafter(-0.5, 0), 1.0), (1.0, math.inf)]),
        (of("predefined", S, Bucket("a", "b"), Bucket("c", "c", True, True), Bucket("d", _HIGH)),
         [("a", "b"), None, ("c", "c "), ("d", ""), None]),
        (of("predefined", S, Bucket(b"a", b"c")), [(b"a", b"c"), (b"a", b"c"), None, None, None]),
    ],
)  # fmt: skip
def test_buckets(expression: Expression, expected: list[Any]) -> None:
    assert evaluated(expression, _SCOPE, rows_of(5)) == expected


def test_buckets_of_a_width_of_doubles() -> None:
    found = evaluated(of("fixedwidth", D, 0.5), _SCOPE, rows_of(5))
    assert found[:3] == [(2.5, 3.0), (-0.5, 0.0), (1.0, 1.5)]
    assert all(map(math.isnan, found[3]))


def test_a_bucket_without_width_has_no_value() -> None:
    scope = scope_of({"d": column(DOUBLE, [1.5, math.inf, 1e300])})
    assert evaluated(of("fixedwidth", N, 0), _SCOPE, rows_of(5)) == [None] * 5
    assert evaluated(of("fixedwidth", D, -0.5), scope, rows_of(3)) == [None] * 3
    # From 2^53 on the next number is more than 1 away.
    assert evaluated(of("fixedwidth", D, 1.0), scope, rows_of(3)) == [(1.0, 2.0), None, None]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (Kind.LONG_BUCKET, [(5, 10), None, (0, 5), (-5, 0)], [(-5, 0), None, (0, 5), (5, 10)]),
        (Kind.DOUBLE_BUCKET, [None, (-0.5, 0.5), (0.0, 0.25)], [(-0.5, 0.5), None, (0.0, 0.25)]),
        (Kind.DOUBLE_BUCKET, [(-math.inf, 0.0), (math.nan, math.nan)], [(math.nan, math.nan), (-math.inf, 0.0)]),
        (Kind.STRING_BUCKET, [("b", "c"), ("", ""), None], [None, ("", ""), ("b", "c")]),
        (Kind.RAW_BUCKET, [(b"b", b"c"), None, (b"b", b"b")], [None, (b"b", b"b"), (b"b", b"c")]),
    ],
)  # fmt: skip
def test_a_value_in_no_bucket_stands_where_the_empty_bucket_does(
    kind: Kind, values: list[Any], expected: list[Any]
) -> None:
    """That from 0 to 0, or of two empty texts; ("", "") is the bucket of all texts, which has no end."""
    ranks = ranks_of(Values(kind, np.arange(len(values), dtype=np.uint32), ListTable(values))).tolist()
    ordered = [value for _, value in sorted(zip(ranks, values, strict=True), key=lambda pair: pair[0])]
    assert str(ordered) == str(expected)


@pytest.mark.parametrize(
    "expression",
    [
        of("fixedwidth", S, 5),
        of("predefined", N),
        of("predefined", N, Bucket(1, 2.0)),
        of("predefined", of("fixedwidth", N, 5), Bucket(1, 2)),
        of("add", of("fixedwidth", N, 5), 1),
    ],
)
def test_buckets_that_do_not_fit_are_errors(expression: Expression) -> None:
    with pytest.raises(InvalidQuery):
        bind(expression, _SCOPE)
