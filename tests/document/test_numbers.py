"""Numbers as texts: those that are sent for texts keep the form in which they were written.

Authority: TokenBuffer.java, SingleValueReader.java and MapReader.java of document/json in Vespa, where all single
values, and keys, are made of the text of their token; Double.toString and Float.toString of Java.
"""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.json_format import DocumentReader, read_body
from paperwasp.document.numbers import double_text, single_text
from paperwasp.document.sent_numbers import numbers_as_texts, quote_numbers
from paperwasp.document.types import (
    DOUBLE,
    INT,
    LONG,
    STRING,
    DataType,
    DocumentType,
    array_of,
    map_of,
    struct_of,
    weighted_set_of,
)
from paperwasp.document.updates import Add, Assign, Calculate, Match
from paperwasp.errors import InvalidInput

PERSON = struct_of("person", {"name": STRING, "born": LONG})
TYPES: dict[str, DataType] = {
    "title": STRING,
    "year": INT,
    "weight": DOUBLE,
    "tags": array_of(STRING),
    "words": weighted_set_of(STRING),
    "labels": map_of(STRING, STRING),
    "singer": PERSON,
    "band": array_of(PERSON),
}
READER = DocumentReader(DocumentType("music", TYPES))


def put(fields: str) -> dict[str, Any]:
    return READER.read_put(read_body(f'{{"fields":{fields}}}'.encode()).fields)


@pytest.mark.parametrize(
    "number",
    [
        *("1.10", "1e3", "1E+3", "-0", "-0.0", "0.0", "100.00", "12345678901234567890123", "1.2345678901234567890"),
        *("7", "1e400", "-2.5E+999", "9" * 400),
    ],
)
def test_a_text_is_the_number_as_it_was_written(number: str) -> None:
    assert put(f'{{"title":{number}}}') == {"title": number}
    assert put(f'{{"tags":["a \\" 1.10",{number}]}}') == {"tags": ['a " 1.10', number]}
    assert put(f'{{"labels":[{{"key":{number},"value":{number}}}]}}') == {"labels": {number: number}}
    assert put(f'{{"words":[{{"key":{number},"value":3}}]}}') == {"words": {number: 3}}
    assert put(f'{{"band":[{{"born":1957,"name":{number}}}]}}') == {"band": [{"born": 1957, "name": number}]}


def test_a_number_that_is_too_large_for_a_double_is_infinite() -> None:
    """Double.parseDouble of Java."""
    found = put('{"weight":-1e400,"title":"1e400 \\" 1e400","tags":[1e400,"a"]}')
    assert found == {"weight": -math.inf, "title": '1e400 " 1e400', "tags": ["1e400", "a"]}


@pytest.mark.parametrize(
    "body", ['{"fields":{"year":1e400}}', '{"fields":{"year":1957e}}', '{"fields":{"title":1e400e}}']
)
def test_a_number_that_is_too_large_is_no_whole_number_and_hides_no_mistake(body: str) -> None:
    with pytest.raises(InvalidInput):
        READER.read_put(read_body(body.encode()).fields)


def test_other_fields_keep_their_numbers() -> None:
    found = put('{"year":1957,"title":1.10,"weight":1e3,"singer":{"name":2.50,"born":9007199254740993}}')
    assert found == {
        "year": 1957,
        "title": "1.10",
        "weight": 1000.0,
        "singer": {"name": "2.50", "born": 9007199254740993},
    }


def test_a_number_that_is_none_of_its_type_is_named_as_it_was_written() -> None:
    with pytest.raises(InvalidInput, match=r'For input string: "1957\.00"'):
        put('{"year":1957.00}')


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        ('{"title":{"assign":1.10}}', Assign("1.10")),
        ('{"tags":{"add":[1e3]}}', Add(["1e3"])),
        ('{"tags[0]":{"assign":2.50}}', Assign("2.50")),
        ('{"labels{a}":{"assign":-0.0}}', Assign("-0.0")),
        ('{"singer.name":{"assign":12345678901234567890123}}', Assign("12345678901234567890123")),
        ('{"tags":{"match":{"element":0,"assign":1.10}}}', Assign("1.10")),
    ],
)
def test_updates_take_the_same_texts(fields: str, action: object) -> None:
    (update,) = READER.read_update(read_body(f'{{"fields":{fields}}}'.encode()).fields)
    assert update.action == action


def test_the_element_of_a_match_is_a_text_too() -> None:
    (update,) = READER.read_update(read_body(b'{"fields":{"words":{"match":{"element":1.10,"increment":2}}}}').fields)
    assert update.path == (Match("1.10"),)
    assert update.action == Calculate("increment", 2)


def test_a_large_body_is_read_the_same_way() -> None:
    """Its numbers are found in more than one piece."""
    count = limits.JSON_PIECE_BYTES // 4
    body = b'{"fields":{"tags":[' + b",".join([b"1.10"] * count) + b'],"title":2.50}}'
    assert len(body) > limits.JSON_PIECE_BYTES
    found = READER.read_put(read_body(body).fields)
    assert found == {"tags": ["1.10"] * count, "title": "2.50"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def texts_of(value: Any) -> Any:
    """The plain twin of `numbers_as_texts`."""
    if isinstance(value, dict):
        return {name: texts_of(item) for name, item in value.items()}
    if isinstance(value, list):
        return [texts_of(item) for item in value]
    return value if value is None or isinstance(value, bool | str) else orjson.dumps(value).decode()


@seed(1110)
@given(JSON)
def test_only_numbers_are_quoted(value: Any) -> None:
    assert numbers_as_texts(value) == texts_of(value)


def test_strings_are_passed_over_whatever_is_in_them() -> None:
    assert quote_numbers(rb'{"a1":"\"1\\","b":[1,"2",-3e-4]}') == rb'{"a1":"\"1\\","b":["1","2","-3e-4"]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.38, "-0.38"), (0.001, "0.001"), (0.00012, "1.2E-4"), (1e-5, "1.0E-5"), (1e7, "1.0E7"),
        (9999999.0, "9999999.0"), (-12345678.5, "-1.23456785E7"), (1e300, "1.0E300"), (float("nan"), "NaN"),
        (-float("inf"), "-Infinity"),
    ],
)  # fmt: skip
def test_doubles_are_written_as_in_java(value: float, text: str) -> None:
    assert double_text(value) == text


def test_singles_have_fewer_digits() -> None:
    assert [single_text(0.1), single_text(16777216.0), double_text(0.1)] == ["0.1", "1.6777216E7", "0.1"]
    assert double_text(float(single_text(0.3))) == "0.3"
