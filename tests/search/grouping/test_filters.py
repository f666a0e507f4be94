"""Which rows the predicates of filter(…) accept, by hand."""

from __future__ import annotations

import pytest

from paperwasp.document.converters import GeoPosition
from paperwasp.document.types import BOOL, INT, POSITION, STRING, array_of
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.binding import bind_filter
from paperwasp.search.grouping.expressions import Scope
from paperwasp.search.grouping.request import Filter
from tests.search.grouping.documents import attribute, column, evaluated, of, rows_of, scope_of


@pytest.fixture(name="scope")
def _scope() -> Scope:
    return scope_of(
        {
            "s": column(STRING, ["foo", "food", "Foo", None]),
            "n": column(INT, [1, 2, 3, 12]),
            "t": column(BOOL, [True, False, None, True]),
            "a": column(array_of(STRING), [["x", "foo"], ["x"], [], ["food"]]),
        }
    )


_REGEX = Filter("regex", attribute("s"), ("fo+",))
_RANGE = Filter("range", attribute("n"), (1, 3, True, False))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (_REGEX, [True, False, False, False]),
        (Filter("regex", attribute("a"), ("fo.*",)), [True, False, False, True]),
        (Filter("regex", attribute("n"), ("1.*",)), [True, False, False, True]),
        (Filter("regex", attribute("t"), ("true",)), [True, False, False, True]),
        (Filter("regex", attribute("s"), ("",)), [False, False, False, True]),
        (_RANGE, [True, True, False, False]),
        (Filter("range", attribute("n"), (1, 3, False, True)), [False, True, True, False]),
        (Filter("in", attribute("s"), ("food", "Foo")), [False, True, True, False]),
        (Filter("in", attribute("n"), ("2", "12")), [False, True, False, True]),
        (Filter("in", attribute("a"), ("x",)), [True, True, False, False]),
        (Filter("istrue", attribute("t")), [True, False, False, True]),
        (Filter("not", parts=(_REGEX,)), [False, True, True, True]),
        (Filter("and", parts=(_REGEX, _RANGE)), [True, False, False, False]),
        (Filter("or", parts=(_REGEX, _RANGE)), [True, True, False, False]),
    ],
)
def test_filters(scope: Scope, predicate: Filter, expected: list[bool]) -> None:
    assert bind_filter(predicate, scope)(rows_of(4)).tolist() == expected


@pytest.mark.parametrize(
    "predicate",
    [
        Filter("regex", attribute("s"), ("(",)),
        Filter("istrue", attribute("n")),
        Filter("near", attribute("n")),
        Filter("regex"),
    ],
)
def test_filters_that_do_not_fit_are_errors(scope: Scope, predicate: Filter) -> None:
    with pytest.raises(InvalidQuery):
        bind_filter(predicate, scope)


def test_sizes_and_positions(scope: Scope) -> None:
    places = scope_of({"p": column(POSITION, [GeoPosition(-5, 7)])})
    assert evaluated(of("zcurve.x", attribute("p_zcurve")), places, rows_of(1)) == [-5]
    assert evaluated(of("zcurve.y", attribute("p_zcurve")), places, rows_of(1)) == [7]
    assert evaluated(of("size", attribute("a")), scope, rows_of(4)) == [2, 1, 0, 1]
    assert evaluated(of("size", attribute("s")), scope, rows_of(4)) == [1, 1, 1, 1]
