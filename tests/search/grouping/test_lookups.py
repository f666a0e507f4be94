"""Functions that look something up, and those of lists, positions, ids and texts in an order, by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import pytest

from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.converters import GeoPosition
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    STRING,
    array_of,
    weighted_set_of,
)
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expression_node import Lids
from paperwasp.search.grouping.expressions import Scope, bind
from paperwasp.search.grouping.request import Bucket, Expression
from paperwasp.text.linguistics.collation import Collation
from tests.search.grouping.documents import attribute, column, evaluated, of, rows_of, scope_of

_LEAST = -(2**63)


@pytest.fixture(name="scope")
def _scope() -> Scope:
    """Three documents, the last without anything."""
    return scope_of(
        {
            "n": column(INT, [1, -5, None]),
            "s": column(STRING, ["b", "zz", None]),
            "ai": column(array_of(INT), [[3, 1, 2], [7], []]),
            "ad": column(array_of(DOUBLE), [[0.5, math.nan, -1.0], [2.0], []]),
            "as": column(array_of(STRING), [["b", "a\u00e9", "B"], [""], []]),
            "ab": column(array_of(BOOL), [[True, False], [True], []]),
            "ws": column(weighted_set_of(STRING), [{"x": 1, "a": 2}, {"y": 3}, None]),
            "graph": column(array_of(DOUBLE), [[0.0, 1.0, 2.0, 4.0, 8.0], [5.0], []]),
            "steps": column(array_of(INT), [[1, 2, 3], [10, 20], []]),
            "m.key": column(array_of(STRING), [["a", "b"], ["B", "zz", "zz"], []]),
            "m.value": column(array_of(BYTE), [[1, 2], [3, 4, 5], []]),
            "t.key": column(array_of(LONG), [[16, 1], [-5], []]),
            "t.value.name": column(array_of(STRING), [["hex", "one"], ["minus"], []]),
            "t.value.weight": column(array_of(DOUBLE), [[0.5], [1.5], []]),
            "t.value.flag": column(array_of(BOOL), [[True, False], [True], []]),
            "f.key": column(array_of(FLOAT), [[0.5, 1.5], [0.5], []]),
            "f.value": column(array_of(INT), [[10, 20], [30], []]),
            "place": column(POSITION, [GeoPosition(0, 0), GeoPosition(90_000_000, 0), None]),
        }
    )


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (of("sort", attribute("ai")), [[1, 2, 3], [7], []]),
        (of("reverse", attribute("ai")), [[2, 1, 3], [7], []]),
        (of("reverse", of("sort", attribute("ai"))), [[3, 2, 1], [7], []]),
        (of("sort", attribute("as")), [["B", "a\u00e9", "b"], [""], []]),
        (of("sort", attribute("ab")), [[False, True], [True], []]),
        (of("sort", attribute("ws")), [["a", "x"], ["y"], []]),
        (of("sort", of("fixedwidth", attribute("ai"), 2)), [[(0, 2), (2, 4), (2, 4)], [(6, 8)], []]),
        (of("sort", attribute("n")), [1, -5, -(2**31)]),
        (of("reverse", attribute("s")), ["b", "zz", ""]),
        (of("size", of("sort", attribute("ai"))), [3, 1, 0]),
        (of("cat", of("sort", attribute("ab"))), [b"\0\1", b"\1", b""]),
        (of("array.at", "ai", 0), [3, 7, 0]),
        (of("array.at", "ai", attribute("n")), [1, 7, 0]),
        (of("array.at", attribute("ai"), 2**40), [2, 7, 0]),
        (of("array.at", "ai", 1.5), [2, 7, 0]),
        (of("array.at", "as", 1), ["a\u00e9", "", ""]),
        (of("array.at", "ab", 1), [False, True, False]),
        (of("array.at", "ad", 2), [-1.0, 2.0, 0.0]),
        (of("array.at", "ws", 0), ["x", "y", ""]),
        (of("interpolatedlookup", "graph", 5), [3.25, 0.0, 0.0]),
        (of("interpolatedlookup", "graph", 4.2), [3.05, 0.0, 0.0]),
        (of("interpolatedlookup", "graph", 9), [4.0, 0.0, 0.0]),
        (of("interpolatedlookup", "graph", -1), [0.0, 0.0, 0.0]),
        (of("interpolatedlookup", "graph", 1), [1.0, 0.0, 0.0]),
        (of("interpolatedlookup", "steps", attribute("ai")), [2.0, 0.0, 0.0]),
        (of("interpolatedlookup", "steps", 15), [2.0, 0.5, 0.0]),
        (of("interpolatedlookup", "n", 5), [0.0, 0.0, 0.0]),
        (of("map", "m", "b", ""), [2, -128, -128]),
        (of("map", "m", "zz", ""), [-128, 4, -128]),
        (of("map", "m", "nowhere", ""), [-128, -128, -128]),
        (of("map_source", "m", "s", ""), [2, 4, -128]),
        (of("map", "t", " 0x10", ".name"), ["hex", "", ""]),
        (of("map", "t", "-5", "name"), ["", "minus", ""]),
        (of("map", "t", "five", ".name"), ["", "", ""]),
        (of("map", "t", "99999999999999999999", ".name"), ["", "", ""]),
        (of("map_source", "t", "n", ".name"), ["one", "minus", ""]),
        (of("map", "t", "16", ".flag"), [1, 0, 0]),
        (of("map_source", "t", "s", ".name"), ["", "", ""]),
        (of("map", "f", "1.5", ""), [20, -(2**31), -(2**31)]),
        (of("docidnsspecific"), ["", "", ""]),
        (of("zcurve.x", attribute("place_zcurve")), [0, 90_000_000, 0]),
        (of("zcurve.y", attribute("place_zcurve")), [0, 0, -(2**31)]),
        (of("debugwait", attribute("ai"), 0.0, True), [[3, 1, 2], [7], []]),
        (of("debugwait", attribute("n"), 0.0001, False), [1, -5, -(2**31)]),
    ],
)
def test_lookups(scope: Scope, expression: Expression, expected: list[Any]) -> None:
    found = evaluated(expression, scope, rows_of(3))
    assert found == pytest.approx(expected) if isinstance(expected[0], float) else found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


def test_doubles_that_are_unset_or_no_numbers(scope: Scope) -> None:
    assert str(evaluated(of("sort", attribute("ad")), scope, rows_of(3))) == "[[nan, -1.0, 0.5], [2.0], []]"
    assert str(evaluated(of("map", "t", "16", "weight"), scope, rows_of(3))) == "[0.5, nan, nan]"
    # The map has a key without a part of its own.
    assert str(evaluated(of("map", "t", "1", "weight"), scope, rows_of(3))) == "[nan, nan, nan]"


def test_distances_from_a_place(scope: Scope) -> None:
    """A quarter of a great circle of a radius of 6371.0088 km, and 1.609344 km a mile."""
    quarter = 6371.0088 * math.pi / 2
    place = attribute("place_zcurve")
    assert evaluated(of("geo_distance.km", place, 0, 0), scope, rows_of(2)) == pytest.approx([0.0, quarter])
    assert evaluated(of("geo_distance.km", place, 90.0, 12), scope, rows_of(2)) == pytest.approx([quarter, quarter])
    miles = evaluated(of("geo_distance.miles", place, 0, "90"), scope, rows_of(2))
    assert miles == pytest.approx([quarter / 1.609344, 0.0])


def test_texts_in_the_order_of_a_language() -> None:
    """In Swedish o with two dots comes after z, in German beside o; the primary strength does not see it there."""
    words = ["zebra", "\u00f6l", "Olle", "olle"]
    scope = scope_of({"s": column(STRING, words), "a": column(array_of(STRING), [words, [], ["x"], []])})
    for locale, strength, expected in (
        ("sv", "PRIMARY", ["Olle", "olle", "zebra", "\u00f6l"]),
        ("de", "TERTIARY", ["\u00f6l", "olle", "Olle", "zebra"]),
    ):
        keys = evaluated(of("uca", attribute("s"), locale, strength), scope, rows_of(4))
        assert [word for _, word in sorted(zip(keys, words, strict=True), key=lambda pair: pair[0])] == expected
        assert keys == [Collation("uca", locale, strength.lower()).key_of(word) for word in words]
    assert evaluated(of("uca", "cafe", "fr"), scope, rows_of(1)) == evaluated(
        of("uca", "CAF\u00c9", "fr"), scope, rows_of(1)
    )
    several = evaluated(of("uca", attribute("a"), "sv"), scope, rows_of(4))
    assert [len(each) for each in several] == [4, 0, 1, 0]
    assert evaluated(of("uca", "a\0b", "sv"), scope, rows_of(1)) == evaluated(of("uca", "a", "sv"), scope, rows_of(1))


def test_ids_of_documents_where_they_are_known() -> None:
    def document_ids(lids: Lids) -> Sequence[str]:
        return [f"id:ns:type:g=some:doc-{lid}" for lid in lids.tolist()]

    scope = scope_of({}, document_ids=document_ids)
    assert evaluated(of("docidnsspecific"), scope, rows_of(2)) == ["doc-0", "doc-1"]


def test_a_long_expression_ends_with_the_time_of_the_query(scope: Scope) -> None:
    node = bind(of("add", of("neg", attribute("n")), 1), scope)
    end_work_at(1)
    try:
        with pytest.raises(OutOfTime):
            node.values(rows_of(3))
    finally:
        end_work_at(0)


@pytest.mark.parametrize("is_busy", [True, False])
def test_a_wait_ends_with_the_time_of_the_query(is_busy: bool) -> None:
    scope = scope_of({"n": column(INT, [1, 2])})
    node = bind(of("debugwait", attribute("n"), 1e9, is_busy), scope)
    end_work_at(time.monotonic_ns() + 1_000_000)
    try:
        with pytest.raises(OutOfTime):
            node.values(rows_of(2))
    finally:
        end_work_at(0)


@pytest.mark.parametrize(
    "expression",
    [
        of("array.at", "n", 0),
        of("array.at", "ai"),
        of("array.at", 5, 0),
        of("array.at", "ai", of("fixedwidth", attribute("n"), 5)),
        of("interpolatedlookup", "as", 1),
        of("interpolatedlookup", "nowhere", 1),
        of("map", "nowhere", "a", ""),
        of("map", "m", "a", ".part"),
        of("map", "m", 5, ""),
        of("map_source", "m", "as", ""),
        of("uca", attribute("s")),
        of("uca", attribute("s"), "not a locale!"),
        of("uca", attribute("s"), "sv", "SOME"),
        of("debugwait", attribute("n"), "long", True),
        of("debugwait", attribute("n"), 1.0),
        of("geo_distance.km", attribute("place_zcurve"), 1),
        of("geo_distance.km", attribute("place_zcurve"), 1, of("fixedwidth", 1, 1)),
        of("docidnsspecific", 1),
        of("sort"),
        of("sort", Bucket(1, 2)),
    ],
)
def test_arguments_that_do_not_fit_are_errors(scope: Scope, expression: Expression) -> None:
    with pytest.raises(InvalidQuery):
        bind(expression, scope)
