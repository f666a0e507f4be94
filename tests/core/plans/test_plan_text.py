"""What plans take from a text is what the simple query language reads in it: the same words, alone or in quotes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.query_languages.yql.simple import parse_simple
from paperwasp.search.operators.boolean import OrItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.word import TOKEN, WordItem

_INDEX = _core.invert(np.array([0], np.uint32), np.array([0], np.uint32), np.array([0, 1], np.uint64), 1.0)
_SNAPSHOT = _core.Snapshot(
    _core.Reader([(0, 1, [_INDEX], None)], 1),
    np.ones(1, np.uint64),
    False,
    1,
    np.zeros(1, np.uint8),
    np.zeros(12, np.uint8),
    0,
    1,
)
_ROWS = _core.RowFiles([])
_FORM = _core.PageForm([], True, 0, 0, [], b"", b"", b"")
_FIELDS = [("field", 1.2, 0.75, 1.0)]
Terms = list[tuple[str, bool]]
"""Words, and whether each stands next to others."""


def taken(text: str, composite: str = "or") -> Terms | None:
    """The words that a plan asks the snapshot for, which knows none; None: it leaves the text to the general way."""
    words = _core.PlanWords(["words"], "words in phrases", composite, 1, 100, 1000)
    plan = _core.Plan(words, None, _core.PlanRanking(fields=_FIELDS), _core.PlanShown(_FORM, [], [], 0))
    found = plan.run_of(_SNAPSHOT, _ROWS, text, 1, 0, 0, 0, None, 0.0, b"", None)
    assert not isinstance(found, _core.PlanRun)
    return None if found is None else [(word, in_phrase) for _, in_phrase, word in found]


def read(text: str, kind: str = "any") -> Terms | None:
    """The same of the tree of the text; None: there is more in it, or nothing."""
    item = parse_simple(text, kind, "field")
    terms = item.children if isinstance(item, OrItem) else () if item is None else (item,)
    return None if not all(map(is_plain, terms)) else [found for term in terms for found in words_of(term)]


def is_plain(term: Item) -> bool:
    return type(term) is WordItem or (type(term) is PhraseItem and all(isinstance(word, str) for word in term.words))


def words_of(term: Item) -> Iterator[tuple[str, bool]]:
    if isinstance(term, PhraseItem):
        yield from ((str(word), True) for word in term.words)
    elif isinstance(term, WordItem):
        yield term.word, False


_ASCII = st.sampled_from([*"ab1-_.,'*+!:()[];<>{}%@#", "ab", " ", " ", "  ", '"', '"', "\t"])
_LETTERS = st.sampled_from([*"éüжйωאع電の가ạ", "\u0301", "\u0640"])
_OTHERS = st.sampled_from(["\u00a0", "\u00d7", "\u037e", "\u3000", "\u201c", "\u30fb", "\U0001f600"])


@given(st.lists(_ASCII | _LETTERS | _OTHERS, max_size=14).map("".join))
def test_words_and_quotes_are_read_alike(text: str) -> None:
    found = taken(text)
    if found is not None:
        assert found == read(text)
    as_phrase = taken(text, "phrase")
    if as_phrase is not None:
        assert [word for word, _ in as_phrase] == TOKEN.findall(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('blue "kind of" train', [("blue", False), ("kind", True), ("of", True), ("train", False)]),
        ('" rock-n-roll  band "', [("rock-n-roll", True), ("band", True)]),
        ("Поезд τρένο קטר", [("Поезд", False), ("τρένο", False), ("קטר", False)]),
        ("青い電車 기차가 tàu", [("青い電車", False), ("기차가", False), ("tàu", False)]),
        ('"blue', None),
        ('"blue"', None),
        ('a"kind of"', None),
        ('"kind of"a', None),
        ('"kind of"!200', None),
        ('""', None),
        ("\u00d7", None),
        ("नदी", None),
    ],
)
def test_texts_by_hand(text: str, words: Terms | None) -> None:
    assert taken(text) == words


def test_letters_are_letters_of_words() -> None:
    """All of the first 0x3400, and some of the thousands of Chinese and Korean."""
    letters = 0
    for code in (*range(0x80, 0x3400), *range(0x3400, 0xD800, 61)):
        for text in (chr(code), f"a{chr(code)}a"):
            found = taken(text)
            if found is not None:
                letters += 1
                assert found == read(text), hex(code)
                assert TOKEN.fullmatch(text), hex(code)
    assert letters > 2000
