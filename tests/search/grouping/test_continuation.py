"""Continuations: texts by hand, texts of Vespa's guide, and a plain reader of the definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.errors import InvalidQuery
from paperwasp.search.grouping.continuation import UNSTABLE, PagePosition, Pages, decode, encode

INTEGERS = st.integers(-(2**31), 2**31 - 1)
POSITIONS = st.builds(PagePosition, st.lists(INTEGERS, max_size=9).map(tuple), INTEGERS, INTEGERS, INTEGERS)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("BGAAABEBEBC", PagePosition((0, 0, 0), 2, 2, UNSTABLE)),
        ("BGAAABEBCA", PagePosition((0, 0, 0), 2, 1)),
        ("BGAAABEABC", PagePosition((0, 0, 0), 2, 0, UNSTABLE)),
        ("BKAAABCABGBEBB", PagePosition((0, 0, 0, 1, 0), 3, 2, -1)),
        ("AACBAA", PagePosition((), 0, 8)),
        ("AAIPPPPPPPOA", PagePosition((), 0, 2**31 - 1)),
        ("AAIPPPPPPPPA", PagePosition((), 0, -(2**31))),
    ],
)
def test_texts_by_hand(text: str, position: PagePosition) -> None:
    """The first three are those of the pages next to each other in Vespa's guide."""
    assert encode([position]) == text
    assert decode(text) == (position,)


def plain_integers(text: str) -> list[int]:
    """All integers of a text."""
    integers, rest = [], text
    while rest:
        length = "ABCDEFGHIJKLMNOP".index(rest[0])
        digits, rest = rest[1 : 1 + length], rest[1 + length :]
        value = int("".join("0123456789abcdef"["ABCDEFGHIJKLMNOP".index(letter)] for letter in digits) or "0", 16)
        integers.append(value // 2 if value % 2 == 0 else -(value + 1) // 2)
    return integers


@given(st.lists(POSITIONS, max_size=5))
def test_positions_survive(positions: list[PagePosition]) -> None:
    text = encode(positions)
    rows = [[len(p.path), *p.path, p.tag, p.offset, p.flags] for p in positions]
    assert plain_integers(text) == [integer for row in rows for integer in row]
    assert decode(text) == tuple(positions)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x", "expected a letter from A to P but found 'x' (character 1)"),
        ("BGAAaBEBCA", "expected a letter from A to P but found 'a' (character 5)"),
        ("BGAAABEBC", "it ends within a number (character 10)"),
        ("BGA", "it ends within a number (character 4)"),
        ("AJBAAAAAAAAAA", "a number is larger than 32 bits (character 12)"),
        ("BB", "no path is that long (character 1)"),
        ("IPPPPPPPO", "no path is that long (character 1)"),
    ],
)
def test_bad_texts(text: str, problem: str) -> None:
    with pytest.raises(InvalidQuery) as error:
        decode(text)
    assert error.value.message == f"'{text}' is not a continuation: {problem}"


@given(st.text(st.sampled_from("ABCDEFGHIJKLMNOPQ "), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        positions = decode(text)
    except InvalidQuery:
        return
    assert decode(encode(positions)) == positions


def test_later_positions_replace_earlier_ones() -> None:
    first, second = (0, 0, 0), (0, 0, 0, 3, 0)
    positions = [
        PagePosition(first, 2, 5, UNSTABLE),
        PagePosition(second, 3, 4, UNSTABLE),
        PagePosition(first, 2, 3),
        PagePosition((1, 0, 0), 2, 50),
        PagePosition((), 2, 50),
        PagePosition((0, 0, 0, 4, 0), 3, -2),
    ]
    pages = Pages.of(0, positions)
    assert pages.by_path == {first: 3, second: 4, (0, 0, 0, 4, 0): 0}
    assert pages.by_tag == {2: 5, 3: 4}
    assert pages.unstable == {second}
