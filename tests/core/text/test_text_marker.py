"""The kernel that marks words in texts: how it is called. tests/search/show/test_marking.py compares what it marks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import orjson
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.text.linguistics.query import WORD_CHARACTERS, _word_characters

Teaser = tuple[int, int, int, bool, int, int, float, int, bool]
FormsOf = Callable[[list[str]], Sequence[tuple[str, ...]]]


def lowered(words: list[str]) -> list[tuple[str, ...]]:
    return [(word.lower(),) for word in words]


def marker(
    *terms: str,
    forms_of: FormsOf = lowered,
    most_words: int = 1000,
    ranges: Sequence[int] = (0xC0, 0x24F),
    tags: tuple[str, str, str] = ("[", "]", "_"),
    teaser: Teaser | None = None,
) -> _core.TextMarker:
    """Marks single words, and a phrase for each text of several."""
    characters = _core.WordCharacters(np.array(ranges, np.uint32))
    parts = _core.QueryParts([(1, [[([word], False) for word in term.split()]]) for term in terms], 100, 0, None)
    return _core.TextMarker(parts, _core.Vocabulary(forms_of, True, characters, most_words), tags, teaser)


def test_words_and_phrases() -> None:
    assert _core.mark("A cat, a CAT-dog; cats", marker("cat")) == "A [cat], a [CAT]-dog; cats"
    assert _core.mark("a cat dog, cat a", marker("cat dog", "a")) == "[a] [cat] [dog], cat [a]"
    assert _core.mark("é.ÉÉ,ħ", marker("é", "ħ")) == "[é].ÉÉ,[ħ]"
    assert _core.mark("", marker("cat")) == ""
    assert _core.mark("a\ud800", marker("a")) is None


@given(st.lists(st.sampled_from(["cat", "dog", "bird", "Cat", "é", "x" * 70]), max_size=40), st.integers(1, 4))
def test_a_small_vocabulary_forgets_and_asks_again(words: list[str], most_words: int) -> None:
    asked: list[str] = []

    def forms_of(unknown: list[str]) -> list[tuple[str, ...]]:
        assert len(set(unknown)) == len(unknown)
        asked.extend(unknown)
        return lowered(unknown)

    wanted = marker("cat", "x" * 70, forms_of=forms_of, most_words=most_words)
    for _ in range(2):
        expected = " ".join(f"[{word}]" if word.lower() in ("cat", "x" * 70) else word for word in words)
        assert _core.mark(" ".join(words), wanted) == expected
    assert {word.lower() for word in words} == set(asked)


def test_known_words_are_asked_for_once_whatever_their_case() -> None:
    asked: list[str] = []

    def forms_of(unknown: list[str]) -> list[tuple[str, ...]]:
        asked.extend(unknown)
        return lowered(unknown)

    wanted = marker("cat", forms_of=forms_of)
    _core.mark("cat Cat É é", wanted)
    _core.mark("CAT dog É", wanted)
    assert asked == ["cat", "É", "é", "dog"]


def test_what_the_vocabulary_may_not_answer() -> None:
    with pytest.raises(ValueError, match="as many forms as words"):
        _core.mark("cat", marker("cat", forms_of=lambda _: []))

    def fail(_: list[str]) -> list[tuple[str, ...]]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _core.mark("cat", marker("cat", forms_of=fail))


@pytest.mark.parametrize("ranges", [(1,), (2, 1), (0, 0x110000)])
def test_ranges_are_checked(ranges: Sequence[int]) -> None:
    with pytest.raises(ValueError, match="range"):
        marker("cat", ranges=ranges)


def test_a_way_has_words() -> None:
    with pytest.raises(ValueError, match="a way has words"):
        _core.QueryParts([(1, [[]])], 5, 3, None)


def test_all_characters_of_words_are_known() -> None:
    parts = _core.QueryParts([(1, [[(["x"], False)]])], 5, 3, None)
    everything = _core.Vocabulary(lambda words: [("x",)] * len(words), False, _word_characters(), 1000)
    marking = _core.TextMarker(parts, everything, ("[", "]", ""), None)
    for start in range(0, 0x110000, 0x800):
        text = "".join(chr(code) for code in range(start, start + 0x800) if not 0xD800 <= code < 0xE000)
        assert _core.mark(text, marking) == regex.sub(f"[{WORD_CHARACTERS}]+", r"[\g<0>]", text)


MEMBERS = {"a": "cat", "b": 'a cat\n"cat"\\cat\x1fcat', "c": ["cat", "dog cat"], "d": [], "e": "é cat"}


def test_members_are_marked_within_json() -> None:
    wanted = marker("cat")
    shown = {**MEMBERS, "b": "[.."} | {"b": 'a [cat]\n"[cat]"\\[cat]\x1f[cat]', "c": ["[cat]", "dog [cat]"]}
    keys = [b'"b":', b'"c":', b'"d":', b'"z":']
    found = _core.mark_members([orjson.dumps(MEMBERS), None, b"{}"], [(key, wanted, None) for key in keys])
    assert found == [orjson.dumps(shown), None, b"{}"]


def test_texts_that_may_be_in_another_language_are_left_out() -> None:
    foreign = _core.WordSet(["und", "oder"])
    wanted = marker("cat")
    texts = [
        "cat und x",
        "cat und oder",
        "cat und\noder",
        "é cat",
        "x " * 130 + "é und oder cat",
        "\n" * 300 + "und oder",
    ]
    found = _core.mark_members([orjson.dumps({"a": text}) for text in texts], [(b'"a":', wanted, foreign)])
    assert [text is not None for text in found] == [True, False, False, False, True, False]
    assert found[0] == b'{"a":"[cat] und x"}'


UNREADABLE = [b"", b"{", b"[]", b'{"a":', b'{"a":"cat}', b'{"a":1}', b'{"a":null}', b'{"a":{"b":"cat"}}']
UNREADABLE += [b'{"a":["cat",1]}', b'{"a":["cat"}', b'{"a":["cat"x]}', b'{"a":["cat",]}', b'{"a":"\\u00e9"}']
UNREADABLE += [b'{"a":"\\x"}', b'{"a":"\\u00"}', b'{"a":"\xc3"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\xc0\xaf"}']
UNREADABLE += [b'{"a":"cat\xff"}', b'{"a":"\xf4\x90\x80\x80"}']


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_the_kernel_cannot_read_is_left_to_others(text: bytes) -> None:
    assert _core.mark_members([text], [(b'"a":', marker("cat"), None)]) == [None]


@given(st.binary(max_size=60) | st.text('{}[]",:\\ua0é', max_size=40).map(str.encode))
def test_no_bytes_do_harm(text: bytes) -> None:
    wanted = [(b'"a":', marker("a"), None), (b'"0":', marker("0"), _core.WordSet(["a", "ua"]))]
    for each in (text, b'{"a":' + text + b"}", b'{"0":"' + text + b'"}'):
        (found,) = _core.mark_members([each], wanted)
        assert found is None or found.translate(None, b"[]") == each.translate(None, b"[]")


ODD = [-(2**63), -1, 0, 1, 7, 300, 2**63 - 1]
TEASERS = st.tuples(
    *[st.sampled_from(ODD)] * 3,
    st.booleans(),
    *[st.sampled_from(ODD)] * 2,
    st.floats(allow_nan=True),
    st.sampled_from(ODD),
    st.booleans(),
)
_PIECES = ["cat ", "dog", "\ufff9", "\ufffa", "\ufffb", "\x1f", "é", "x" * 70, ". ", '"\\\n']


@given(TEASERS, st.lists(st.sampled_from(_PIECES), max_size=200).map("".join))
def test_no_settings_do_harm(teaser: Teaser, text: str) -> None:
    assert isinstance(_core.mark(text, marker("cat", "cat dog", teaser=teaser)), str)


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_teasers_are_escaped_as_orjson_does(text: str) -> None:
    whole = (2**40, 1, 1, True, 1, 1, 1.0, 1, False)
    shown = _core.mark_members([orjson.dumps({"a": [text]})], [(b'"a":', marker("cat", teaser=whole), None)])
    assert shown == [orjson.dumps({"a": [text.replace("\x1f", "")]})]


def test_an_empty_text_has_no_teaser() -> None:
    wanted = marker("cat", teaser=(256, 3, 128, True, 128, 200, 10.0, 1000, True))
    texts = [b'{"a":""}', b'{"a":["x",""]}', b'{"a":[]}', b'{"a":["x"]}']
    assert _core.mark_members(texts, [(b'"a":', wanted, None)]) == [None, None, *texts[2:]]


def test_tags_in_json_are_as_they_are() -> None:
    with pytest.raises(ValueError, match="tags in JSON"):
        _core.mark_members([b"{}"], [(b'"a":', marker("cat", tags=('"', "]", "")), None)])


@contextmanager
def no_time() -> Iterator[None]:
    end_work_at(time.monotonic_ns())
    try:
        yield
    finally:
        end_work_at(0)


def test_a_long_text_ends_in_time() -> None:
    with no_time(), pytest.raises(OutOfTime):
        _core.mark("cat " * 1_000_000, marker("cat"))
    with no_time(), pytest.raises(OutOfTime):
        _core.mark("cat " * 10_000, marker("cat", teaser=(256, 3, 128, True, 128, 200, 10.0, 1000, True)))


def test_a_very_long_text_is_left_to_others() -> None:
    assert _core.mark("x" * (2**24 + 1), marker("cat")) is None
