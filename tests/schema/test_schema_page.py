"""docs/reference/schema.md names every element of the language, and the grammar has every element that Vespa reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paperwasp.schema.grammar import BLOCKS

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
