"""Values of every type: JSON in, typed, JSON out and in again; and what is no value of its type."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import orjson
import pytest
from hypothesis import given

from paperwasp import limits
from paperwasp.document.converters import GeoPosition, converter_of
from paperwasp.document.shown import render_of
from paperwasp.document.tensor import TensorType, parse_tensor
from paperwasp.document.types import (
    BYTE,
    FLOAT,
    FLOAT16,
    INT,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    TAG,
    URI,
    AnnotationReferenceType,
    DataType,
    array_of,
    check_of,
    describe,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    type_from_description,
    weighted_set_of,
)
from tests.document.typed_values import TYPES, values

PERSON = struct_of("person", {"name": STRING, "ages": array_of(INT), "at": POSITION})
VECTOR = tensor_field(TensorType.parse("tensor<float>(x[2])"))
LABELED = tensor_field(TensorType.parse("tensor(x{})"))
FOLDER = type_from_description(
    {
        "struct": "folder",
        "fields": [["name", "string"], ["sub", {"inner": "folder"}], ["at", {"array": {"inner": "folder"}}]],
    }
)
MARK = AnnotationReferenceType("annotationreference<mark>", "mark")

READ: list[tuple[DataType, Any, Any]] = [
    (RAW, "VW5rbm93bg==", b"Unknown"),
    (RAW, "VW5r\n bm93bg==", b"Unknown"),
    (RAW, "VW5rbm93bg", b"Unknown"),  # Base64.getMimeDecoder: padding may be missing, other characters are passed over
    (RAW, "VW5r-bm\x00é93bg==\r\n", b"Unknown"),
    (RAW, "VW4", b"Un"),
    (RAW, "%%%", b""),
    (URI, "https://example.com/", "https://example.com/"),
    (PREDICATE, "age in [20..30]", "age in [20..30]"),
    (POSITION, {"lat": 37.4181488, "lng": -122.0256157}, GeoPosition(-122025616, 37418149)),
    (POSITION, {"x": 5, "y": -7}, GeoPosition(5, -7)),
    (POSITION, "N37.4;W122.0", GeoPosition(-122000000, 37400000)),
    (POSITION, "S37.4;E122", GeoPosition(122000000, -37400000)),
    (POSITION, {"latitude": "1.5", "longitude": -2}, GeoPosition(-2000000, 1500000)),
    (POSITION, "37N24.983;122W01.481", GeoPosition(-122024683, 37416383)),
    (POSITION, "E10o25.982 N63o25.105", GeoPosition(10433033, 63418416)),
    (POSITION, "N37°24'36;W122°00'00", GeoPosition(-122000000, 37410000)),
    (POSITION, "-122024683;37416383", GeoPosition(-122024683, 37416383)),
    (FLOAT16, 0.1, 0.0999755859375),
    (FLOAT16, 1e6, math.inf),
    (weighted_set_of(STRING), {"a": 1, "b": -2}, {"a": 1, "b": -2}),
    (weighted_set_of(INT), {"123": 2}, {123: 2}),
    (TAG, {"x": 1}, {"x": 1}),
    (map_of(INT, STRING), {"1": "one"}, {1: "one"}),
    (map_of(STRING, INT), [{"key": "a", "value": 1}], {"a": 1}),
    (map_of(STRING, PERSON), {"p": {"name": "Ann"}}, {"p": {"name": "Ann"}}),
    (struct_of("found", {"by": MARK, "age": INT}), {"age": 1}, {"age": 1}),
    (FOLDER, {"sub": {"at": [{"name": "x"}, {}]}}, {"sub": {"at": [{"name": "x"}, {}]}}),
    (map_of(STRING, FOLDER), {"a": {"sub": {}}}, {"a": {"sub": {}}}),
    (PERSON, {"name": "Ann", "ages": [1, 2], "at": None}, {"name": "Ann", "ages": [1, 2]}),
    (array_of(PERSON), [{"name": "Ann"}, {}], [{"name": "Ann"}, {}]),
    (array_of(array_of(INT)), [[1], []], [[1], []]),
    (reference_to("artist"), "id:ns:artist::1", "id:ns:artist::1"),
    (reference_to("artist"), "", ""),
    (VECTOR, [1, 2.5], parse_tensor("tensor<float>(x[2]):[1,2.5]")),
    (VECTOR, {"values": [1, 2]}, parse_tensor("tensor<float>(x[2]):[1,2]")),
    (LABELED, {"a": 1}, parse_tensor("tensor(x{}):{a:1}")),
]


@pytest.mark.parametrize(("data_type", "given_json", "value"), READ, ids=lambda item: str(item)[:30])
def test_reads(data_type: DataType, given_json: Any, value: Any) -> None:
    found = converter_of(data_type)(given_json)
    assert found == value
    assert check_of(data_type)(found)
    assert type_from_description(describe(data_type)) == data_type


@pytest.mark.parametrize(
    ("data_type", "given_json", "message"),
    [
        (RAW, "VW5rb", "Last unit does not have enough valid bits"),
        (RAW, 5, "Last unit does not have enough valid bits"),
        (RAW, "VW5r=", "Input byte array has wrong 4-byte ending unit"),
        (RAW, "VW==VW5r", "Input byte array has incorrect ending byte at 5"),
        (RAW, {}, "Expected a single value, got an object"),
        (POSITION, {"lat": 9100, "lng": 0}, "9100.0 degrees are more than 32 bits of millionths"),
        (POSITION, {"lat": "NaN", "lng": 0}, "nan degrees are more than"),
        (POSITION, {"lat": 1}, "Missing 'lng' attribute in geo position field"),
        (POSITION, {"lng": 1}, "Missing 'lat' attribute in geo position field"),
        (POSITION, {"lat": 1, "lon": 1}, "Unexpected attribute 'lon' in geo position field"),
        (POSITION, {"lat": 1, "lng": 1, "": 1}, "Unexpected attribute '' in geo position field"),
        (POSITION, "here", "Could not parse 'here' as geo coordinates: each part is a direction"),
        (POSITION, "N1.2.3;E1", "Could not parse 'N1.2.3;E1' as geo coordinates"),
        (POSITION, "N1;S1", "it needs a latitude and a longitude"),
        (POSITION, "N1", "it needs a latitude and a longitude"),
        (POSITION, "N91;E1", "N is at most 90 degrees"),
        (POSITION, "N1.5o30;E1", "has whole numbers before them"),
        (POSITION, "9999999999;1", "degrees are more than"),
        (PREDICATE, "age in [", "line 1, column 9: expected more, found the end"),
        (PREDICATE, "age in [30..20]", "line 1, column 8: expected 'to' greater than or equal to 30, got 20"),
        (PREDICATE, "age", "line 1, column 4: expected 'in' or 'IN', found the end"),
        (PREDICATE, "age in [1]\n", "unexpected character '\\n'"),
        (weighted_set_of(STRING), {"a": "x"}, 'key "a": For input string: "x"'),
        (weighted_set_of(INT), {"a": 1}, 'key "a": For input string: "a"'),
        (map_of(STRING, INT), [1], "Expected an object, got an array"),
        (PERSON, {"nick": "A"}, "No field 'nick' in struct 'person', which has: name, ages, at"),
        (PERSON, {"ages": ["x"]}, "field 'ages': element 0: For input string"),
        (PERSON, {"": "A"}, "No field '' in struct 'person', which has: name, ages, at"),
        (PERSON, [], "Expected an object, got an array"),
        (FOLDER, {"sub": {"at": [{}, {"nam": "x"}]}}, "field 'sub': field 'at': element 1: No field 'nam'"),
        (reference_to("artist"), "id:ns:song::1", "is no document of type 'artist'"),
        (reference_to("artist"), "artist-1", "Unparseable id 'artist-1'"),
        (reference_to("artist"), f"id:ns:artist:n={'9' * 5000}:1", "Unparseable id 'id:ns:artist:n=9"),
        (VECTOR, [1, 2, 3], "expected 2 value(s), found 3"),
        (VECTOR, [], "expected 2 value(s), found 0"),
        (VECTOR, {"values": ""}, "expected 2 value(s), found 0"),
        (VECTOR, {"values": "3F8O0000"}, "values: a string of values has hexadecimal digits only"),
        (VECTOR, {"values": 1}, "values: expected an array, found a number"),
        (VECTOR, [[1], {"x": 2}], "[1]: expected a number, found an object"),
        (VECTOR, ["1", "zwei"], "[1]: expected a number, found a string"),
        (LABELED, {"a": "x"}, "a: expected a number, found a string"),
        (struct_of("found", {"by": MARK}), {"by": {}}, "field 'by': An annotation reference has no form in JSON"),
    ],
)
def test_refuses(data_type: DataType, given_json: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        converter_of(data_type)(given_json)


def test_values_of_a_struct_within_itself_have_a_depth() -> None:
    def nested(depth: int) -> Any:
        value: Any = {"name": "x"}
        for _ in range(depth):
            value = {"sub": value}
        return value

    deepest = nested(limits.VALUE_DEPTH - 1)
    value = converter_of(FOLDER)(deepest)
    assert check_of(FOLDER)(value)
    render = render_of(FOLDER)
    assert render is not None and orjson.loads(orjson.dumps(render(value))) == deepest
    for depth in (limits.VALUE_DEPTH, 1000):
        with pytest.raises(ValueError, match="nested deeper than"):
            converter_of(FOLDER)(nested(depth))


TYPED = TYPES.flatmap(values)


@given(TYPED)
def test_a_value_written_and_read_is_the_same(typed: tuple[DataType, Any]) -> None:
    data_type, value = typed
    assert check_of(data_type)(value)
    render = render_of(data_type)
    written = orjson.dumps(render(value) if render else value, option=orjson.OPT_SERIALIZE_NUMPY)
    assert converter_of(data_type)(orjson.loads(written)) == value


@given(TYPED)
def test_a_type_described_is_the_same(typed: tuple[DataType, Any]) -> None:
    data_type, _ = typed
    assert type_from_description(json.loads(json.dumps(describe(data_type)))) == data_type


@pytest.mark.parametrize(
    "data_type", [TAG, reference_to("a"), tensor_field(TensorType.parse("tensor<float>(y{},x[3])")), URI, PREDICATE]
)
def test_other_types_described(data_type: DataType) -> None:
    assert type_from_description(json.loads(json.dumps(describe(data_type)))) == data_type


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (INT, True), (INT, 2**31), (BYTE, 200), (FLOAT, 1e39), (STRING, b"x"), (RAW, "x"), (POSITION, (1, 2, 3)),
        (map_of(STRING, INT), {"a": "b"}), (PERSON, {"nick": "x"}), (array_of(INT), [1, "2"]), (FLOAT16, 1e5),
    ],
)  # fmt: skip
def test_what_is_no_value(data_type: DataType, value: Any) -> None:
    assert not check_of(data_type)(value)
