"""Which statement of a schema sets the language of which texts of a document.

The order is that of Vespa's config-model/src/main/java/com/yahoo/schema/derived/IndexingScript.java, the shapes those
of docs.vespa.ai/en/linguistics/linguistics.html.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paperwasp.content.layouts.layout import EMPTY, Layout
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


def languages_of(schema: str, *documents: dict[str, object]) -> list[Mapping[str, str]] | None:
    """What documents say of the languages of their fields; the layout must survive being written."""
    found = parse_schemas({"schemas/music.sd": schema})
    assert not found.findings
    layout = EMPTY.changed(1, found.schemas.values(), {})
    assert Layout.from_bytes(layout.to_bytes()) == layout
    return layout.types["music"].languages_of(documents)


def test_a_field_sets_the_language_of_itself_and_of_those_after_it() -> None:
    assert languages_of(SCHEMA, {"tongue": "fr", "second": "de"}, {"tongue": "nb"}) == [
        {"tongue": "fr", "text": "fr", "last": "de", "made": "de"},
        {"tongue": "nb", "text": "nb", "last": "nb", "made": "nb"},
    ]


def test_the_only_field_that_sets_the_language_sets_it_for_all() -> None:
    alone = SCHEMA.replace("summary | set_language", "summary")
    assert languages_of(alone, {"tongue": "fr"}, {}) == [
        dict.fromkeys(("before", "tongue", "text", "last", "made"), "fr"),
        dict.fromkeys(("before", "tongue", "text", "last", "made"), ""),
    ]


def test_an_index_before_set_language_is_in_the_language_before() -> None:
    later = SCHEMA.replace("set_language | index", "index | set_language")
    assert languages_of(later, {"tongue": "fr", "second": "de"}) == [{"text": "fr", "last": "de", "made": "de"}]


def test_where_no_field_sets_it_there_is_nothing_to_ask() -> None:
    plain = SCHEMA.replace("set_language | ", "").replace(" | set_language", "")
    assert languages_of(plain, {}) is None


CONSTANTS = """
schema music {
    field fixed type string { indexing: "nb" | set_language }
    document music {
        field plain type string { indexing: index }
        field english type string { indexing { "en" | set_language; index; } }
        field german type string { indexing { "de" | set_language; index; } }
    }
    field made type string { indexing: input plain | index }
}
"""


def test_constants_set_the_language() -> None:
    """Fields outside the document come after those of it."""
    said = {"english": "en", "german": "de", "made": "nb"}
    assert languages_of(CONSTANTS, {"plain": "x"}, {}) == [said, said]
    alone = CONSTANTS.replace('"en" | set_language;', "").replace('"de" | set_language;', "")
    assert languages_of(alone, {}) == [dict.fromkeys(("plain", "english", "german", "made"), "nb")]


@pytest.mark.parametrize(
    ("statement", "document", "language"),
    [
        ("input tongue | lowercase | set_language", {"tongue": "DE"}, "de"),
        ("input tongue | trim | lowercase | set_language", {"tongue": " De "}, "de"),
        ('(input tongue || "fr") | set_language', {}, "fr"),
        ('input tongue || "fr" | set_language', {"tongue": "sv"}, "sv"),
        ('input tongue | switch { case "german": "de" | set_language; default: "en" | set_language; }',
         {"tongue": "german"}, "de"),
        ('input tongue | switch { case "german": "de" | set_language; default: "en" | set_language; }',
         {"tongue": "dutch"}, "en"),
        ('if (input tongue == "g") { "de" | set_language } else { "da" | set_language }', {"tongue": "x"}, "da"),
        ("input tongues | join \" \" | substring 0 2 | set_language", {"tongues": ["it", "fr"]}, "it"),
        ("select_input { tongue: set_language; other: set_language; }", {"other": "es"}, "es"),
        ("input names | get_value first | set_language", {"names": {"first": "pt"}}, "pt"),
        ("input number | to_string | set_language", {"number": 7}, "7"),
    ],
)  # fmt: skip
def test_what_scripts_make_sets_the_language(statement: str, document: dict[str, object], language: str) -> None:
    schema = f"""
    schema music {{
        document music {{
            field tongue type string {{ indexing: summary }}
            field other type string {{ indexing: summary }}
            field tongues type array<string> {{ indexing: summary }}
            field names type map<string, string> {{ indexing: summary }}
            field number type int {{ indexing: summary }}
            field title type string {{ indexing: index }}
        }}
        field language type string {{ indexing {{ {statement}; }} }}
    }}
    """
    assert languages_of(schema, document) == [{"title": language}]


def test_a_value_that_a_statement_cannot_take_sets_nothing() -> None:
    schema = """
    schema music {
        document music {
            field tongue type string { indexing: summary }
            field title type string { indexing: index }
        }
        field language type string { indexing { input tongue | to_int | to_string | set_language; } }
    }
    """
    assert languages_of(schema, {"tongue": "de"}) == [{"title": ""}]


def test_a_language_that_depends_on_more_than_the_document_is_a_warning() -> None:
    made = SCHEMA.replace("input text | lowercase | index", "documentid group | set_language | index")
    (finding,) = parse_schemas({"schemas/music.sd": made}).findings
    assert "field made: set_language of what is not only made of fields of texts and numbers" in finding.message
