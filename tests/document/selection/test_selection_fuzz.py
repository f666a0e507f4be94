"""Whatever the text: a selection or an error with its place, soon; and a verdict on every document."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.selection import (
    PlainSubject,
    check_selection,
    conjunction,
    location_of,
    matcher_of,
    negate,
    parse_selection,
    types_of,
)
from paperwasp.errors import LanguageError, TooLarge
from tests.document.selection.test_selection_scripts import MUSIC, NOW_US, SUBJECTS, TYPES, tracks

PIECES = [
    *["music", "album", "id", "id.user", "id.bucket", "now()", "null", "true", "not ", " and ", " or ", "$x", "$"],
    *[".year", ".title", ".tracks", ".nested", ".key", "{", "}", "[", "]", "{$x}", "[$y]", "{foo}", "[1]", "(", ")"],
    *["==", "!=", "<", "<=", ">", ">=", "=", "=~", "+", "-", "*", "/", "%", ".", ",", " ", "\n", "0x", "1e", "9" * 30],
    *[
        "1",
        "2.5",
        '"a"',
        "'b*'",
        '"(a+)+$"',
        '"\\x4',
        '"\\',
        "'",
        '"',
        "é",
        "\ud800",
        "\x00",
        ".hash()",
        ".abs()",
        "()",
    ],
]
TEXTS = 3000
DEEP = limits.SELECTION_DEPTH


def texts(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        yield "".join(chance.choices(PIECES, k=chance.randint(1, 15)))


def works(text: str) -> bool:
    """Whether it is a selection; then all that can be done with one is done."""
    try:
        selection = parse_selection(text)
    except (LanguageError, TooLarge) as error:
        assert isinstance(error, TooLarge) or error.position is not None
        return False
    assert parse_selection(str(selection)) == selection
    location_of(selection), types_of(selection)
    matcher_of(negate(conjunction(selection, selection)))
    matcher = matcher_of(selection)
    assert {matcher(subject, NOW_US) for subject in SUBJECTS.values()} <= {True, False, None}
    try:
        check_selection(selection, TYPES)
    except LanguageError as error:
        assert error.position is not None
    return True


@pytest.mark.parametrize("seed", range(2))
def test_any_text(seed: int) -> None:
    found = [works(text) for text in texts(seed, TEXTS)]
    assert any(found), f"seed {seed}: not one of {TEXTS} texts was a selection"


@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEP * 10 + "true",
        "(" * (DEEP + 1) + "true" + ")" * (DEEP + 1),
        "not " * DEEP * 10 + "true",
        "1" + "+1" * DEEP * 10 + " == 1",
        "1" + "%1" * DEEP * 10 + " == 1",
        "music.title" + ".lowercase()" * DEEP * 10 + " == ''",
        "true and (true or " * DEEP * 10 + "true",
        "((" * DEEP + "1",
    ],
    ids=range(8),
)
def test_what_is_nested_deep_is_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="nested deeper than"):
        parse_selection(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * (DEEP - 2) + "true" + ")" * (DEEP - 2),
        "(true and (false or " * (DEEP // 2 - 5) + "true" + "))" * (DEEP // 2 - 5),
        "1" + "+1" * (DEEP - 5) + " == 1",
        "true and music.year == 1 or " * 5_000 + "true",
        "music" + ".foo" * 10_000 + " == 1",
    ],
    ids=range(5),
)
def test_what_is_long_is_no_trouble(text: str) -> None:
    assert works(text)


def test_a_selection_has_a_largest_size() -> None:
    longest = "music.title == '" + "i" * (limits.SELECTION_CHARACTERS - 17) + "'"
    assert works(longest)
    with pytest.raises(TooLarge, match="characters"):
        parse_selection(longest + " ")


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "(a*)*b", "(.*)*$", "(x|xx)*y", ".*.*.*=.*"])
def test_no_regular_expression_runs_away(pattern: str) -> None:
    document = PlainSubject(DocumentId.parse("id:foo:music::bar"), {"title": "x" * 50_000}, MUSIC)
    began = time.perf_counter()
    matcher_of(parse_selection(f"music.title =~ '{pattern}'"))(document, NOW_US)
    matcher_of(parse_selection("music.title = '*x*x*x*x*x*x*x*x*x*x*y'"))(document, NOW_US)
    assert time.perf_counter() - began < 5


def test_regular_expressions_are_counted() -> None:
    one = "music.title =~ 'a' or "
    assert works(one * (limits.SELECTION_PATTERNS - 1) + "true")
    with pytest.raises(LanguageError, match="regular expressions"):
        parse_selection(one * (limits.SELECTION_PATTERNS + 1) + "true")


def test_strings_are_put_together_to_a_limit() -> None:
    """A selection of 100 KB could ask for any memory, as often as the log is replayed."""

    def sum_of(operands: int) -> str:
        half = operands // 2
        return "music.title" if operands == 1 else f"({sum_of(half)} + {sum_of(operands - half)})"

    document = PlainSubject(DocumentId.parse("id:foo:music::bar"), {"title": "x" * 1024}, MUSIC)
    most = limits.SELECTION_TEXT_CHARACTERS // 1024
    for operands, verdict in ((most, False), (most + 1, None), (16 * most, None)):
        assert matcher_of(parse_selection(f"{sum_of(operands)} == 'x'"))(document, NOW_US) is verdict


def test_variables_that_agree_are_found_and_too_many_ways_are_invalid() -> None:
    many = limits.SELECTION_BINDINGS // 100
    document = PlainSubject(DocumentId.parse("id:foo:music::bar"), {"tracks": tracks(*range(many))}, MUSIC)
    same = f"music.tracks[$x].key == {many - 1} and music.tracks[$x].value == 'structval{many - 15}'"
    assert matcher_of(parse_selection(same))(document, NOW_US) is True
    others = same.replace("[$x].value", "[$y].value")
    assert matcher_of(parse_selection(others))(document, NOW_US) is None
