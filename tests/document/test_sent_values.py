"""What is refused in documents that are sent, and read where it was stored. Authority: com.yahoo.net.Url."""

from __future__ import annotations

from typing import Any

import pytest

from paperwasp.document.converters import converter_of
from paperwasp.document.json_format import DocumentReader, check_uri
from paperwasp.document.types import INT, STRING, URI, DocumentType, array_of, map_of, struct_of, weighted_set_of
from paperwasp.errors import InvalidInput

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
