"""The scripts of `indexing_scripts`, and that they say something of every expression."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paperwasp.errors import LanguageError
from paperwasp.schema.indexing_language import KEYWORDS, parse_script
from paperwasp.schema.indexing_tree import Expression
from tests.indexing.indexing_scripts import SCRIPTS, cases, run

FILES = sorted(SCRIPTS.glob("*.txt"))
ELSEWHERE = {"generate"}
"""What needs a component that an application configures: `test_components`."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_script(path: Path) -> None:
    run(path)


def test_every_expression_is_in_a_script() -> None:
    used = {each.keyword for path in FILES for _, text, _ in cases(path) for each in _walk(text)}
    assert {*KEYWORDS} - used == ELSEWHERE


def test_the_keywords_of_a_script_are_those_of_all_within_it() -> None:
    count = 0
    for text in [text for path in FILES for _, text, _ in cases(path)]:
        with suppress(LanguageError):
            tree = parse_script(text)
            for each in tree.walk():
                assert each.keywords == {inner.keyword for inner in each.walk()}
                count += 1
    assert count > 500


def test_scripts_alike_share_the_set_of_their_keywords() -> None:
    """An application may have 20,000 of them."""
    first, second = (parse_script(f"input {name} | attribute {name} | summary") for name in "ab")
    assert first.keywords is second.keywords
    assert [each.keyword for each in parse_script("input a . (input b | trim) | index").walk()][:3] == [
        "script",
        "statement",
        "concat",
    ]


VESPA = Path(__file__).parent / "vespa_expressions.txt"


@pytest.mark.parametrize("line", VESPA.read_text().splitlines()[2:])
def test_the_language_has_what_vespa_reads(line: str) -> None:
    """A line without a colon names an expression, one with a colon the options of one."""
    name, _, options = line.partition(": ")
    assert name in KEYWORDS
    for option in options.split():
        (found,) = (each for each in parse_script(f"input a | {name} {option}").walk() if each.keyword == name)
        assert found.arguments == (option,)


def _walk(text: str) -> Iterator[Expression]:
    with suppress(LanguageError):  # a case of what does not parse
        yield from parse_script(text).walk()
