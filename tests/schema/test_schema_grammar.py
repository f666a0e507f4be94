"""The grammar as a whole: a schema that uses every element, and text that is no schema.

It has every element that Vespa reads, and docs/reference/schema.md names them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import LanguageError, PaperwaspError, TooLarge
from paperwasp.schema import InvalidSchemas, parse_schemas
from paperwasp.schema.grammar import BLOCKS, PROFILE_FILE, SCHEMA_FILE, Block, Element
from paperwasp.schema.syntax import SchemaNode, dump, parse_profile_text, parse_schema_text

ALL_ELEMENTS = (Path(__file__).parent / "all_elements.sd").read_text()
# The same without parents, so that it comes as far as being resolved.
ORPHAN = ALL_ELEMENTS.replace(" inherits base, other", "").replace("everything inherits base", "everything")
PIECES = re.findall(r"[\w-]+|\s+|.", ORPHAN)


def uses(node: SchemaNode, block: str) -> Iterator[tuple[str, str]]:
    """(block, keyword as the tree has it) of a node and of all below it."""
    yield block, node.keyword
    element = next(e for keyword, e in BLOCKS[block].items() if node.keyword in (keyword, e.means))
    if isinstance(element.block, str):
        for child in node.children:
            yield from uses(child, element.block)


def test_one_schema_with_every_element_of_the_language() -> None:
    used = set(uses(parse_schema_text(ALL_ELEMENTS, "everything.sd"), SCHEMA_FILE))
    every = {(block, e.means or k) for block, elements in BLOCKS.items() for k, e in elements.items()}
    assert every - used == {(SCHEMA_FILE, "document"), (PROFILE_FILE, "rank-profile")}


def test_blocks_that_the_table_names_are_in_it() -> None:
    elements: list[Element] = [element for block in BLOCKS.values() for element in block.values()]
    assert {e.block for e in elements if isinstance(e.block, str)} <= BLOCKS.keys()
    assert all(e.block or e.value or e.bare for e in elements)
    assert {e.block for e in elements if isinstance(e.block, Block)} == set(Block)


def test_what_is_wrong_with_a_schema_of_every_element_is_told_with_its_place() -> None:
    with pytest.raises(InvalidSchemas) as raised:
        parse_schemas({"schemas/everything.sd": ORPHAN})
    findings = raised.value.findings
    assert len(findings) > 20
    assert all(each.level == "ERROR" and each.position and each.position.line for each in findings)
    assert raised.value.message == "\n".join(map(str, findings))
    assert "not supported yet" not in raised.value.message


def test_white_space_and_comments_change_nothing() -> None:
    tree = dump(parse_schema_text(ALL_ELEMENTS, ""))
    assert dump(parse_schema_text(ALL_ELEMENTS.replace("    ", "\t"), "")) == tree
    assert dump(parse_schema_text(ALL_ELEMENTS.replace("\n", "\r\n"), "")) == tree
    assert dump(parse_schema_text(ALL_ELEMENTS.replace("{\n", "{ # a } comment\n"), "")) == tree


def test_positions() -> None:
    text = "schema a {\n  document a {\n    field b type int {\n      indexing:   summary\n    }\n  }\n}\n"
    schema = parse_schema_text(text, "a.sd")
    field = schema.children[0].children[0]
    assert str(field.position) == "a.sd, line 3, column 5"
    assert str(field.children[0].value_position) == "a.sd, line 4, column 19"


def test_nesting_has_a_limit() -> None:
    depth = limits.EXPRESSION_DEPTH + 1
    with pytest.raises(LanguageError, match="nested deeper"):
        parse_profile_text("rank-profile p { " * depth + "}" * depth, "")
    with pytest.raises(LanguageError, match="nested deeper"):
        parse_schema_text(f"document a {{ field b type {'array<' * depth}int{'>' * depth} {{}} }}", "")


def test_inheritance_has_a_limit() -> None:
    profiles = "".join(f"rank-profile p{n} inherits p{n + 1} {{}}\n" for n in range(1000))
    with pytest.raises(InvalidSchemas, match="deeper than"):
        parse_schemas({"schemas/a.sd": f"schema a {{ document a {{}} {profiles} rank-profile p1000 {{}} }}"})
    documents = {f"schemas/a{n}.sd": f"document a{n} inherits a{n + 1} {{}}" for n in range(1000)}
    with pytest.raises(InvalidSchemas, match="deeper than"):
        parse_schemas({**documents, "schemas/a1000.sd": "document a1000 {}"})


def test_text_has_a_limit() -> None:
    with pytest.raises(TooLarge):
        parse_schema_text(" " * (limits.LANGUAGE_TEXT_BYTES + 1), "a.sd")


def test_all_files_are_told_of() -> None:
    with pytest.raises(InvalidSchemas) as raised:
        parse_schemas({"schemas/a.sd": "schema a {", "schemas/b.sd": "schema b { document { fild } }"})
    assert [str(finding).split(",")[0] for finding in raised.value.findings] == ["schemas/a.sd", "schemas/b.sd"]


def parse_anything(text: str) -> None:
    """Parses and resolves; only errors of ours may come out."""
    for path in ("schemas/everything.sd", "schemas/everything/p.profile"):
        try:
            parse_schemas({"schemas/base.sd": "document base {}", path: text})
        except PaperwaspError as error:
            assert error.message


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*PIECES, "{", "}", ":", "|", "(", ")", '"', "#", "\n"]), max_size=60))
def test_words_in_any_order(pieces: list[str]) -> None:
    parse_anything("schema everything { document everything { " + " ".join(pieces))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_schema(data: st.DataObject) -> None:
    pieces = list(PIECES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        until = at + data.draw(st.integers(0, 3))
        pieces[at:until] = data.draw(st.lists(st.sampled_from(PIECES), max_size=3))
    parse_anything("".join(pieces))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    parse_anything(text)
    parse_anything(f"schema everything {{ document everything {{ {text} }} }}")


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schema.md"
VESPA = Path(__file__).parent / "vespa_elements.txt"


def vespa_blocks() -> list[tuple[str, list[str]]]:
    lines = VESPA.read_text().splitlines()[2:]
    return [(block, keywords.split()) for block, _, keywords in (line.partition(": ") for line in lines)]


@pytest.mark.parametrize(("block", "keywords"), vespa_blocks())
def test_the_grammar_has_what_vespa_reads(block: str, keywords: list[str]) -> None:
    assert [keyword for keyword in keywords if keyword not in BLOCKS[block]] == []


@pytest.mark.parametrize("block", BLOCKS)
def test_the_page_says_what_is_made_of_every_element(block: str) -> None:
    named = {word for code in re.findall(r"`([^`\n]+)`", PAGE.read_text()) for word in re.findall(r"[\w-]+", code)}
    assert [keyword for keyword in BLOCKS[block] if keyword not in named] == []
