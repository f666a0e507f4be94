"""Values of fields as XML. Expected by hand from Vespa's XmlRenderer.java in com.yahoo.prelude.hitfield."""

from __future__ import annotations

from typing import Any

import pytest

from paperwasp.container.search.xml import ShownTypes, content_of, escaped
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    INT,
    STRING,
    DataType,
    array_of,
    map_of,
    struct_of,
    tensor_field,
    weighted_set_of,
)
from paperwasp.schema import parse_schemas

PERSON = struct_of("person", {"name": STRING, "tags": array_of(STRING)})
ENTRY = struct_of("entry", {"key": STRING, "value": INT})
WEIGHED = struct_of("weighed", {"item": STRING, "weight": INT})
VALUES: list[tuple[DataType | None, Any, str]] = [
    (STRING, "a < b & c", "a &lt; b &amp; c"),
    (STRING, 'a "<hi>b</hi>"<sep />', 'a "<hi>b</hi>"<sep />'),
    (INT, 7, "7"),
    (None, True, "true"),
    (None, 1.5, "1.5"),
    (None, None, "(null)"),
    (array_of(STRING), ["a", "b"], "\n      <item>a</item>\n      <item>b</item>\n    "),
    (array_of(STRING), [], ""),
    (weighted_set_of(STRING), {"a": 5}, '\n      <item weight="5">a</item>\n    '),
    (map_of(STRING, INT), {"k": 1}, "\n      <item><key>k</key><value>1</value></item>\n    "),
    (
        PERSON,
        {"name": "A", "tags": ["x"]},
        '\n      <struct-field name="name">A</struct-field>'
        '\n      <struct-field name="tags">\n        <item>x</item>\n      </struct-field>\n    ',
    ),
    (
        array_of(PERSON),
        [{"name": "A"}],
        '\n      <item>\n        <struct-field name="name">A</struct-field>\n      </item>\n    ',
    ),
    (array_of(ENTRY), {"k": 1}, "\n      <item><key>k</key><value>1</value></item>\n    "),
    (array_of(WEIGHED), {"a": 5}, '\n      <item weight="5">a</item>\n    '),
    (tensor_field(TensorType.parse("tensor(x[2])")), {"values": [1, 2]}, "tensor(x[2]):[1.0, 2.0]"),
    (tensor_field(TensorType.parse("tensor(x{})")), {"a": 1}, "tensor(x{}):{{x:a}:1.0}"),
]


@pytest.mark.parametrize(("data_type", "value", "xml"), VALUES)
def test_values(data_type: DataType | None, value: Any, xml: str) -> None:
    assert content_of(value, data_type) == xml


def test_escapes() -> None:
    assert escaped('<"\x1f\x00\ufffe>', in_attribute=True) == "&lt;&quot;&gt;"
    assert escaped("tab\tline\n") == "tab\tline\n"


def test_types_of_what_summaries_show() -> None:
    source = """
    schema s { document s {
        struct pair { field tags type weightedset<string> {} }
        field p type pair { indexing: summary }
        field m type map<string, int> { indexing: summary } }
      document-summary other { summary renamed { source: m } } }
    """
    schemas = parse_schemas({"schemas/s.sd": source}).schemas
    shown = ShownTypes(schemas.values())
    type_of = shown.type_of
    assert str(type_of("s", "m")) == str(type_of("s", "renamed")) == "map<string,int>"
    assert type_of("s", "none") is None and type_of("t", "m") is None
    assert [name for name, _ in shown.in_order("s", dict.fromkeys(["x", "renamed", "m", "p"]))] == [
        "p",
        "m",
        "renamed",
        "x",
    ]
