"""Statements that differ in their literals alone have one outline, and its template gives the tree of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.errors import LanguageError
from paperwasp.query_languages.yql.lifting import outline_of, value_of
from paperwasp.query_languages.yql.statement import (
    StatementTemplate,
    _StatementParser,
    parse_template,
    parse_yql,
    slot_values,
)
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import Slot

WHERE = "select * from music where "


def filled(template: StatementTemplate, statement: str, parameters: dict[str, str]) -> Item:
    """The tree of the template with the literals of a statement and the values of parameters."""
    if template.fill is None:
        return template.statement.tree
    return template.fill(slot_values(template, statement, parameters))


def read(statement: str, parameters: Mapping[str, str] = MappingProxyType({})) -> Item:
    """The tree of a statement that is read without slots."""
    return _StatementParser(statement, parameters, {}).statement().tree


@pytest.mark.parametrize(
    ("statement", "text", "literals"),
    [
        ("a contains 'x'", "a contains \0", ["'x'"]),
        ('a contains "it\'s" and b = -5', "a contains \0 and b = \0", ['"it\'s"', "-5"]),
        ("a>=1.5 and b<2", "a>=\0 and b<\0", ["1.5", "2"]),
        ("a contains 'x = 5'", "a contains \0", ["'x = 5'"]),
        ("year = 5L", "year = 5L", []),
        ("year = 1e5", "year = 1e5", []),
        ("year = 5.", "year = 5.", []),
        ("5 < year limit 3", "5 < year limit 3", []),
        ("a contains 'http://x'", "a contains \0", ["'http://x'"]),
    ],
)
def test_outlines(statement: str, text: str, literals: list[str]) -> None:
    outline, found = outline_of(statement)
    assert (outline.text, list(found), len(outline.kinds)) == (text, literals, len(literals))


@pytest.mark.parametrize(
    ("statement", "text", "values"),
    [
        (r"a contains 'x\'y'", "a contains \0", ["x'y"]),
        (r'a contains "\u00e9\n" and b = 5', "a contains \0 and b = \0", ["é\n", 5]),
        (r"a contains 'x\q' and b = 5", r"a contains 'x\q' and b = " + "\0", [5]),
        ("a contains 'x' // it's\nand b = 1.5", "a contains \0 // it's\nand b = \0", ["x", 1.5]),
        ("a /* ' */ contains 'x'", "a /* ' */ contains \0", ["x"]),
        ("a contains '/*' and b contains '*/'", "a contains \0 and b contains \0", ["/*", "*/"]),
        ("a contains '|' and b contains 'x|y'", "a contains \0 and b contains \0", ["|", "x|y"]),
        ("a contains 'x' | all(group('y') max(3))", "a contains \0 | all(group('y') max(3))", ["x"]),
        ("a contains 'x' | all(group(\"it's\")) // 'z'", "a contains \0 | all(group(\"it's\")) // 'z'", ["x"]),
        ("a contains 'x' /* \0 */", "a contains 'x' /* \0 */", []),
        ("a contains 'x' // \"\nand b contains \"y", 'a contains \0 // "\nand b contains "y', ["x"]),
    ],
)
def test_outlines_token_by_token(statement: str, text: str, values: list[object]) -> None:
    outline, found = outline_of(statement)
    assert (outline.text, [value_of(each) for each in found]) == (text, values)
    assert len(outline.kinds) == len(values)


def test_kinds_of_literals_are_of_the_outline() -> None:
    assert len({outline_of(f"a = {literal}")[0] for literal in ("1", "'1'", "1.0")}) == 3
    assert len({outline_of(f"a = {literal}")[0] for literal in ("1", "-200", "7")}) == 1


CASES = [
    ("a contains %s", (0,)),
    ("a contains ({weight: 3}%s)", (0,)),
    ("a contains phrase(%s, %s)", (0, 1)),
    ("a contains phrase(%s)", (0,)),
    ("a contains phrase(%s, {weight: 2}%s, phrase(%s, %s))", (0, 1, 2, 3)),
    ("a contains near(%s, !%s)", (0, 1)),
    ("a contains equiv(%s, phrase(%s, %s)) and !(b contains %s)", (0, 1, 2, 3)),
    ("a contains ({prefix: true}%s) or a contains ({suffix: true}%s) or ({substring: true}(a contains %s))", (0, 1, 2)),
    ("a contains fuzzy(%s) and a contains uri(%s) and a matches %s", (0, 1, 2)),
    ("rank(a contains %s, weakAnd(b contains %s, c contains %s))", (0, 1, 2)),
    ("userInput(%s) and a contains text(%s)", (0, 1)),
    ("a contains sameElement(b contains %s, c contains %s)", (0, 1)),
    ("nonEmpty(a contains %s)", (0,)),
    ("labeled(a contains %s, %s, 2)", (0,)),
    ("{label: %s}(a contains %s)", (1,)),
    ("{nfkc: true}(a contains %s)", ()),
    ("a in (%s, %s)", ()),
    ("weightedSet(a, {%s: 1}) and b contains %s", (1,)),
    ("a{%s} contains %s", (1,)),
    ("%s contains 'x'", (1,)),
]
"""A condition, and the numbers of the literals that do not decide how it reads."""


@pytest.mark.parametrize(("condition", "lifted"), CASES)
def test_a_template_gives_the_tree_of_other_literals(condition: str, lifted: tuple[int, ...]) -> None:
    count = condition.count("%s")
    first = WHERE + condition % tuple(f'"w{number}"' for number in range(count))
    template = parse_template(first, {})
    free = set(range(count + condition.count("'x'"))) - set(template.fixed_literals)
    assert free == set(lifted)
    other = tuple(f"'other {n}'" if n in lifted else f'"w{n}"' for n in range(count))
    second = WHERE + condition % other
    assert filled(template, second, {}) == read(second)
    assert filled(template, first, {}) == read(first)
    assert outline_of(first)[0] == outline_of(second)[0]


NUMBERS = st.one_of(st.integers(-(10**15) + 1, 10**15 - 1).map(str), st.from_regex(r"\A-?[0-9]{1,9}\.[0-9]{1,9}\Z"))
WORDS = st.text(st.characters(exclude_characters="\"'\\", codec="utf-8"), max_size=8)


@given(WORDS, WORDS, NUMBERS, NUMBERS, WORDS)
def test_any_literal(word: str, other: str, low: str, high: str, phrase: str) -> None:
    def statement(word: str, low: str, high: str, phrase: str) -> str:
        condition = f"a contains '{word}' and (b >= {low} or b={high}) and c contains phrase(\"{phrase}\", 'x')"
        return f"{WHERE}{condition} order by b desc limit 5"

    first, second = statement(word, low, high, phrase), statement(other, low, high, word)
    assert outline_of(first)[0] == outline_of(second)[0]
    template = parse_template(first, {})
    assert not template.fixed_literals
    for each in (first, second):
        found = filled(template, each, {})
        assert found == read(each)
        assert not any(isinstance(value, Slot) for value in _values(found))


_ANY_WORDS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(_ANY_WORDS, _ANY_WORDS, NUMBERS, NUMBERS, st.sampled_from("\"'"))
def test_any_literal_beside_comments_and_a_grouping(word: str, other: str, low: str, high: str, quote: str) -> None:
    def statement(word: str, number: str) -> str:
        written = word.replace("\\", "\\\\").replace("\n", "\\n").replace(quote, "\\" + quote)
        condition = f"a contains {quote}{written}{quote} and b < {number} // it's\n and c = {number} /* \" */"
        return f"{WHERE}{condition} | all(group(a) filter(regex('|x', a)) each(output(count()))) // don't"

    first, second = statement(word, low), statement(other, high)
    template = parse_template(first, {})
    assert not template.fixed_literals
    if outline_of(first)[0] != outline_of(second)[0]:
        assert ("." in low) != ("." in high) or "\0" in word + other
    else:
        assert filled(template, second, {}) == read(second)
    assert filled(template, first, {}) == read(first)


def _values(item: Item) -> Iterable[object]:
    for part in item.walk():
        yield from (getattr(part, name) for name in ("word", "low", "high", "words") if hasattr(part, name))


def test_no_slot_is_left_in_a_tree() -> None:
    statement = f"{WHERE}a contains 'x' and b > 5 and c contains phrase('y', @word)"
    tree = filled(parse_template(statement, {"word": "z"}), statement, {"word": "z"})
    for value in _values(tree):
        for each in value if isinstance(value, tuple) else (value,):
            assert type(each) in (str, int, type(None))


@pytest.mark.parametrize(
    ("condition", "fixed"),
    [
        ("a contains @word", ()),
        ("a contains phrase('x', @word) and b contains @word", ()),
        ("a contains @word and b in (@word)", ("word",)),
        ("a contains @word and ({nfkc: true}b contains @word)", ("word",)),
        ("{label: @word}(a contains 'x')", ("word",)),
        ("userInput(@word)", ()),
        ("a = @word", ("word",)),
    ],
)
def test_parameters_fill_slots(condition: str, fixed: tuple[str, ...]) -> None:
    statement = WHERE + condition
    first, second = {"word": "17"}, {"word": "42"}
    template = parse_template(statement, first)
    assert template.fixed_names == fixed
    for parameters in (first,) if fixed else (first, second):
        assert filled(template, statement, parameters) == read(statement, parameters)


def test_a_name_with_dots_is_no_slot() -> None:
    template = parse_template(f"{WHERE}a contains @my.word", {"my": "x", "my.word": "y"})
    assert template.statement.tree == WordItem("a", "y")
    assert template.fixed_names == ("my.word",)


@pytest.mark.parametrize("condition", ["a contains @x", "a contains 'x' and", "userInput(5)", "a contains 5"])
def test_errors_are_those_of_the_statement(condition: str) -> None:
    with pytest.raises(LanguageError) as expected:
        parse_yql(WHERE + condition)
    with pytest.raises(LanguageError) as found:
        parse_template(WHERE + condition, {})
    assert str(found.value) == str(expected.value)
