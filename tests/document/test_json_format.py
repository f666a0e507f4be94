"""Typed values from document JSON: against a plain oracle, and the words of every refusal.

What is refused in documents that are sent is read where it was stored. Authority of URIs: com.yahoo.net.Url.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document import converters
from paperwasp.document.converters import check_text, converter_of
from paperwasp.document.json_format import DocumentReader, check_uri, read_body, read_fields, read_update
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    URI,
    DataType,
    DocumentType,
    array_of,
    map_of,
    struct_of,
    weighted_set_of,
)
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import InvalidInput

TYPES: dict[str, DataType] = {
    "title": STRING,
    "year": INT,
    "views": LONG,
    "rating": FLOAT,
    "weight": DOUBLE,
    "stock": BYTE,
    "live": BOOL,
    "tags": array_of(STRING),
    "scores": array_of(INT),
}
MUSIC = DocumentType("music", TYPES)


def put(**fields: Any) -> dict[str, Any]:
    return DocumentReader(MUSIC).read_put(fields, "id:ns:music::1")


def refusal(**fields: Any) -> str:
    with pytest.raises(InvalidInput) as raised:
        put(**fields)
    return raised.value.message


def test_a_put_has_typed_values_and_leaves_null_unset() -> None:
    fields = {"title": "a", "year": 1999, "rating": 0.1, "live": True, "tags": ["x"], "views": None}
    assert put(**fields) == {
        "title": "a",
        "year": 1999,
        "rating": struct.unpack("f", struct.pack("f", 0.1))[0],
        "live": True,
        "tags": ["x"],
    }


@pytest.mark.parametrize(
    ("name", "low", "high"), [("stock", -128, 127), ("year", -(2**31), 2**31 - 1), ("views", -(2**63), 2**63 - 1)]
)
def test_integers_have_exact_ranges(name: str, low: int, high: int) -> None:
    assert put(**{name: low}) == {name: low}
    assert put(**{name: str(high)}) == {name: high}
    for outside in (low - 1, high + 1):
        assert f'For input string: "{outside}"' in refusal(**{name: outside})


@pytest.mark.parametrize("value", [1.5, 1.0, "x", "", " 1", "0x10", "1_0", True])
def test_what_is_no_integer_is_refused_by_its_text(value: object) -> None:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    expected = f"In document 'id:ns:music::1': Could not parse field 'year' of type 'int': For input string: \"{text}\""
    assert refusal(year=value) == expected


def test_numbers_may_be_written_as_strings() -> None:
    assert put(weight=" 1e3f ", rating=".5", year="+7") == {"weight": 1000.0, "rating": 0.5, "year": 7}
    assert math.isnan(put(weight="NaN")["weight"])
    assert put(weight="-Infinity")["weight"] == -math.inf
    assert refusal(weight="").endswith("empty String")
    assert refusal(weight="nan").endswith('For input string: "nan"')


@given(st.floats(allow_nan=False))
def test_a_float_is_rounded_to_32_bits(value: float) -> None:
    expected = _float32(value)
    assert put(rating=value)["rating"] == expected
    assert put(weight=value)["weight"] == value


def _float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def test_a_string_takes_the_text_of_any_single_value() -> None:
    assert [put(title=value)["title"] for value in (12, True, 1.5)] == ["12", "true", "1.5"]
    assert "Expected a single value, got an array" in refusal(title=["a"])


def test_a_bool_is_false_unless_it_is_true() -> None:
    """BoolFieldValue.java: Boolean.parseBoolean."""
    assert [put(live=value)["live"] for value in (True, "True", "TRUE")] == [True] * 3
    assert [put(live=value)["live"] for value in (False, "FALSE", 1, 0, "1", "yes", "", 1.5)] == [False] * 8
    assert "Expected a single value, got an array" in refusal(live=[True])


def test_arrays_name_the_element_that_is_wrong() -> None:
    assert put(scores=[1, "2"]) == {"scores": [1, 2]}
    assert "of type 'array<int>': element 1: For input string: \"x\"" in refusal(scores=[1, "x"])
    assert "element 0: Expected a single value, got null" in refusal(tags=[None])
    assert "Expected an array, got a number" in refusal(scores=1)


def is_text(character: str) -> bool:
    """Vespa's rule, written out: com.yahoo.text.Text.isTextCharacter."""
    code = ord(character)
    if code < 0x20:
        return character in "\t\n\r"
    if 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDDF:
        return False
    return code < 0x10000 or code & 0xFFFE != 0xFFFE


@given(
    st.text(alphabet=st.characters(exclude_categories=[]) | st.sampled_from("\x00\x0b\ufdd0\ufddf\ufde0\U0001ffff\t")),
    st.sampled_from([3, converters._CHECKED_AT_ONCE]),
)
def test_strings_hold_text_characters_only(text: str, at_once: int) -> None:
    illegal = [character for character in text if not is_text(character)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(converters, "_CHECKED_AT_ONCE", at_once)
        if not illegal:
            check_text(text)
            return
        with pytest.raises(ValueError, match="illegal code point") as raised:
            check_text(text)
    assert int(str(raised.value).rpartition("0x")[2], 16) in map(ord, illegal)


def test_unknown_fields_are_refused() -> None:
    message = refusal(artist="x")
    assert "Field 'artist' is not defined in document type 'music', which has the fields: title, year" in message


def test_an_update_assigns_and_clears() -> None:
    updates = read_update(MUSIC, {"title": {"assign": "a"}, "year": {"assign": None}, "tags": {}})
    assert updates == (FieldUpdate("title", Assign("a")), FieldUpdate("year", Assign(None)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"artist": {"assign": 1}}, "Error in 'artist': No field named 'artist' in document type 'music'"),
        ({"year": {"square": 1}}, "Error in 'year': Operation 'square' not implemented."),
        ({"year": 1}, "Error in 'year': Expected an object of update operations, got a number"),
        ({"year": {"assign": "x"}}, "Could not parse field 'year' of type 'int': For input string: \"x\""),
    ],
)
def test_updates_that_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_update(MUSIC, fields)
    assert raised.value.message == message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "expected start of root object, got null"),
        (b" \n", "expected start of root object, got null"),
        (b"[]", "expected start of root object, got an array"),
        (b"{}", 'document is missing the required "fields" field'),
        (b'{"fields":[]}', 'document is missing the required "fields" field'),
        (b'{"fields":{}} {}', "expected end of input, got more content at line 1, column 15"),
        (b'{"fields":{},"create":1}', "expected boolean value for create, got a number"),
        (b'{"fields":{},"condition":1}', "expected string value for condition, got a number"),
    ],
)
def test_bodies_that_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_body(body)
    assert raised.value.message == message


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,fields019\\u d', max_size=40).map(str.encode))
def test_no_body_fails_otherwise_than_as_invalid_input(body: bytes) -> None:
    try:
        read_fields(MUSIC, read_body(body).fields)
    except InvalidInput as error:
        assert error.message


LINK = struct_of("link", {"to": URI, "text": STRING})
FIELDS = {
    "one": URI,
    "many": array_of(URI),
    "weighted": weighted_set_of(URI),
    "keys": map_of(URI, INT),
    "items": map_of(STRING, URI),
    "both": map_of(URI, URI),
    "link": LINK,
    "links": array_of(LINK),
    "number": INT,
}
READER = DocumentReader(DocumentType("page", FIELDS))
BAD = "http://host:port/"


@pytest.mark.parametrize(
    "text",
    ["", "a", "http://example.com/?q=1#f", "mailto:a@b", "//", "http://u:p@[::1]:80/", "x y", "http://h:+8", "a:b:c"],
)
def test_urls(text: str) -> None:
    check_uri(text)
    assert READER.read_put({"one": text}) == {"one": text}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BAD, 'For input string: "port"'),
        ("//host:80x", 'For input string: "80x"'),
        ("http://h:4294967296/", 'For input string: "4294967296"'),
        ("http://[::1/", 'For input string: ":1"'),
        ("a#b\nc", "Malformed URL."),
    ],
)
def test_what_is_no_url(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace('"', '"')):
        check_uri(text)
    assert converter_of(URI)(text) == text  # as stored


PLACES: list[tuple[str, Any]] = [
    ("one", BAD),
    ("many", ["a", BAD]),
    ("weighted", {BAD: 1}),
    ("keys", {BAD: 1}),
    ("items", {"a": BAD}),
    ("both", {"a": BAD}),
    ("both", {BAD: "a"}),
    ("link", {"to": BAD}),
    ("links", [{"text": "x"}, {"to": BAD}]),
]


@pytest.mark.parametrize(("name", "value"), PLACES)
def test_wherever_a_uri_is(name: str, value: object) -> None:
    expected = f"Could not parse field '{name}' of type '{FIELDS[name]}': For input string: \"port\""
    for read in (lambda: READER.read_put({name: value}), lambda: READER.read_update({name: {"assign": value}})):
        with pytest.raises(InvalidInput) as raised:
            read()
        assert raised.value.message == expected


@pytest.mark.parametrize("path", ["links[0].to", "items{a}", "link.to", "many[3]"])
def test_at_the_end_of_a_path(path: str) -> None:
    assert READER.read_update({path: {"assign": "http://host:1/"}})
    with pytest.raises(InvalidInput, match="For input string"):
        READER.read_update({path: {"assign": BAD}})


def test_nothing_is_divided_by_zero_but_at_a_path() -> None:
    for operations in ({"divide": 0}, {"assign": 1, "divide": -0.0}):
        with pytest.raises(InvalidInput, match="Error in 'number': Division by zero"):
            READER.read_update({"number": operations})
    assert READER.read_update({"keys{a}": {"divide": 0}})
