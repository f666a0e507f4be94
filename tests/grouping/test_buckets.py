"""Buckets of values, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from paperwasp.document.types import DOUBLE, LONG, STRING, array_of
from paperwasp.errors import InvalidQuery
from paperwasp.grouping.expression import Bucket, Expression, Infinite
from paperwasp.grouping.expressions import bind
from tests.grouping.documents import attribute, column, evaluated, of, rows_of, scope_of

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
