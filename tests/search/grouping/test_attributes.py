"""Attributes of every type as values of expressions. Unset values are those of Vespa's attribute vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from paperwasp.document.converters import GeoPosition
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    DataType,
    array_of,
    weighted_set_of,
)
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.expressions import bind
from paperwasp.search.grouping.values import Kind
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.string import StringView
from paperwasp.storage.documents.gid_map import NO_LID
from tests.search.grouping.documents import attribute, column, constant, evaluated, of, plain, rows_of, scope_of


@pytest.mark.parametrize(
    ("data_type", "values", "kind", "size", "expected"),
    [
        (BYTE, [1, None, -7], Kind.LONG, 1, [1, -128, -7]),
        (INT, [1, None, -7], Kind.LONG, 4, [1, -(2**31), -7]),
        (LONG, [2**62, None], Kind.LONG, 8, [2**62, -(2**63)]),
        (FLOAT, [0.5, -2.25], Kind.DOUBLE, 8, [0.5, -2.25]),
        (DOUBLE, [0.1, 3.0], Kind.DOUBLE, 8, [0.1, 3.0]),
        (BOOL, [True, False, None], Kind.BOOL, 1, [True, False, False]),
        (STRING, ["b", None, "B", "b"], Kind.STRING, 8, ["b", "", "B", "b"]),
        (RAW, [b"x\0", None, b"yz", b"x\0", b"z"], Kind.RAW, 8, [b"x\0", b"", b"yz", b"x\0", b"z"]),
        (POSITION, [GeoPosition(3, 0), None, GeoPosition(0, 1)], Kind.LONG, 8, [5, -(2**63), 2]),
    ],
)
def test_single_values(data_type: DataType, values: list[Any], kind: Kind, size: int, expected: list[Any]) -> None:
    scope = scope_of({"a": column(data_type, values)})
    node = bind(attribute("a"), scope)
    assert (node.kind, node.size_bytes, node.is_multi, node.array) == (kind, size, False, None)
    assert evaluated(attribute("a"), scope, rows_of(len(values))) == expected


def test_unset_numbers_with_a_fraction() -> None:
    scope = scope_of({"a": column(DOUBLE, [None])})
    (found,) = evaluated(attribute("a"), scope, rows_of(1))
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("data_type", "values", "kind", "expected"),
    [
        (array_of(INT), [[3, 1, 3], None, []], Kind.LONG, [[3, 1, 3], [], []]),
        (array_of(FLOAT), [[0.5], [1.5, -1.0]], Kind.DOUBLE, [[0.5], [1.5, -1.0]]),
        (array_of(BOOL), [[True, False], None], Kind.BOOL, [[True, False], []]),
        (array_of(STRING), [["b", "a"], ["b"]], Kind.STRING, [["b", "a"], ["b"]]),
        (weighted_set_of(STRING), [{"x": 10, "y": -2}, None], Kind.STRING, [["x", "y"], []]),
        (weighted_set_of(LONG), [{7: 1}], Kind.LONG, [[7]]),
        (array_of(POSITION), [[GeoPosition(1, 1), GeoPosition(2, 0)]], Kind.LONG, [[3, 4]]),
    ],
)
def test_several_values(data_type: DataType, values: list[Any], kind: Kind, expected: list[Any]) -> None:
    scope = scope_of({"a": column(data_type, values)})
    node = bind(attribute("a"), scope)
    assert (node.kind, node.is_multi, node.array) == (kind, True, "a")
    assert evaluated(attribute("a"), scope, rows_of(len(values))) == expected


def test_strings_that_differ_in_case_are_different_values() -> None:
    scope = scope_of({"a": column(STRING, ["Foo", "foo", "Foo"], cased=False)})
    codes = bind(attribute("a"), scope).values(rows_of(3)).data.tolist()
    assert codes[0] == codes[2] != codes[1]


def test_a_position_has_the_name_of_its_z_curve() -> None:
    scope = scope_of({"place": column(POSITION, [GeoPosition(1, 0)])})
    assert evaluated(attribute("place_zcurve"), scope, rows_of(1)) == [1]


def _imported(parent: Any) -> ImportedView:
    """Three children: of parent 1, of none that is there, of parent 0."""
    reference = column(STRING, ["p1", "gone", "p0"])
    assert isinstance(reference, StringView)
    targets = np.full(4, NO_LID, np.uint32)
    targets[reference.values] = [1, NO_LID, 0]
    return ImportedView(reference, targets, parent)


def test_imported_values() -> None:
    scope = scope_of(
        {
            "number": _imported(column(INT, [10, 11])),
            "text": _imported(column(STRING, ["zero", "one"])),
            "flag": _imported(column(BOOL, [True, True])),
            "list": _imported(column(array_of(INT), [[1, 2], [3]])),
            "place": _imported(column(POSITION, [GeoPosition(1, 0), GeoPosition(0, 1)])),
            "bytes": _imported(column(RAW, [b"a", b"b"])),
        }
    )
    rows = rows_of(3)
    assert evaluated(attribute("number"), scope, rows) == [11, -(2**31), 10]
    assert evaluated(attribute("text"), scope, rows) == ["one", "", "zero"]
    assert evaluated(attribute("flag"), scope, rows) == [True, False, True]
    assert evaluated(attribute("list"), scope, rows) == [[3], [], [1, 2]]
    assert evaluated(attribute("place"), scope, rows) == [2, -(2**63), 1]
    assert evaluated(attribute("bytes"), scope, rows) == [b"b", b"", b"a"]


def test_parts_of_an_array_of_structs_are_read_of_the_element_that_a_row_is_about() -> None:
    scope = scope_of(
        {
            "persons.name": column(array_of(STRING), [["Ann", "Bob"], []]),
            "persons.age": column(array_of(INT), [[30, 40], [50]]),
            "persons.size": column(array_of(FLOAT), [[1.5], []]),
        }
    )
    names = bind(attribute("persons.name"), scope)
    assert names.array == "persons"
    inner = scope.within(names.array)
    rows = rows_of(2, persons=[1, 0])
    assert evaluated(attribute("persons.age"), inner, rows) == [40, 50]
    assert evaluated(attribute("persons.name"), inner, rows) == ["Bob", ""], "of no elements: what is empty"
    assert evaluated(attribute("persons.size"), inner, rows) == [1.5, 0.0], "beyond the last: the last"
    assert bind(attribute("persons.age"), inner).array is None


@pytest.mark.parametrize("value", [5, -(2**63), 0.5, True, "text", "", b"\1\2"])
def test_constants(value: Any) -> None:
    found = evaluated(constant(value), scope_of({}), rows_of(3))
    assert found == [value] * 3
    assert [type(each) for each in found] == [type(value)] * 3


def test_relevance() -> None:
    assert evaluated(of("relevance"), scope_of({}), rows_of(2, [0.25, 7.0])) == [0.25, 7.0]


def test_now() -> None:
    assert evaluated(of("now"), scope_of({}, now_seconds=1234), rows_of(1)) == [1234]


def test_expressions_that_are_given_are_not_bound_again() -> None:
    given = bind(constant(3), scope_of({}))
    scope = scope_of({}, given={of("count"): given})
    assert bind(of("count"), scope) is given


def test_what_cannot_be_read_is_an_error() -> None:
    scope = scope_of({"t": column(PREDICATE, [None])})
    with pytest.raises(InvalidQuery, match="attribute vector 't'"):
        bind(attribute("t"), scope)
    with pytest.raises(InvalidQuery, match="Failed locating attribute vector 'nothing'"):
        bind(attribute("nothing"), scope)
    with pytest.raises(InvalidQuery, match="Unknown function in grouping: 'frobnicate'"):
        bind(of("frobnicate"), scope)
    with pytest.raises(InvalidQuery, match="no number of 64 bits"):
        bind(constant(2**63), scope)
    with pytest.raises(InvalidQuery, match="must be an attribute"):
        bind(of("attribute", 5), scope)


def test_no_rows() -> None:
    scope = scope_of({"a": column(INT, [1]), "s": column(array_of(STRING), [["x"]])})
    for name in ("a", "s"):
        assert plain(bind(attribute(name), scope).values(rows_of(0))) == []
