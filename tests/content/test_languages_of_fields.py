"""Which field of a document says the language of which texts: `set_language`, for itself and the fields after it."""

from __future__ import annotations

from paperwasp.content.layout import EMPTY, Layout
from paperwasp.schema import parse_schemas

SCHEMA = """
schema music {
    document music {
        field before type string { indexing: index }
        field tongue type string { indexing: set_language | index }
        field text type string { indexing: index }
        field second type string { indexing: summary | set_language }
        field last type array<string> { indexing: index }
        field number type int { indexing: attribute }
    }
    field made type string { indexing: input text | lowercase | index }
}
"""


def test_a_field_says_the_language_of_itself_and_those_after_it() -> None:
    found = parse_schemas({"schemas/music.sd": SCHEMA})
    assert not found.findings
    layout = EMPTY.changed(1, found.schemas.values(), {})
    kind = layout.types["music"]
    said = {name: field.language_from for name, field in kind.fields.items() if field.language_from}
    assert said == {"tongue": "tongue", "text": "tongue", "last": "second", "made": "second"}
    assert kind.languages_of([{"tongue": "fr", "second": "de"}, {"tongue": "nb"}]) == [
        {"tongue": "fr", "text": "fr", "last": "de", "made": "de"},
        {"tongue": "nb", "text": "nb", "last": "", "made": ""},
    ]
    assert Layout.from_bytes(layout.to_bytes()) == layout


def test_where_no_field_says_it_there_is_nothing_to_ask() -> None:
    plain = SCHEMA.replace("set_language | ", "").replace(" | set_language", "")
    layout = EMPTY.changed(1, parse_schemas({"schemas/music.sd": plain}).schemas.values(), {})
    assert layout.types["music"].languages_of([{}]) is None


def test_a_language_that_a_script_makes_is_told() -> None:
    made = SCHEMA.replace("input text | lowercase | index", "input text | set_language | index")
    (finding,) = parse_schemas({"schemas/music.sd": made}).findings
    assert "set_language of anything but a text field of the document" in finding.message
