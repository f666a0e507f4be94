"""The strings of a column as plans read them: those of the list, however it grows."""

from __future__ import annotations

import random

import pytest

from paperwasp.core import _core

CHARACTERS = 'a"\\\x00\x7f\x80\u07ff\u0800\uffff\U00010000\U0010ffff'


def test_strings_are_those_of_the_list() -> None:
    choice = random.Random(5)
    strings = [""]
    noted = _core.ColumnStrings(strings)
    for _ in range(12):
        known = len(strings)
        some = ("".join(choice.choices(CHARACTERS, k=choice.randrange(4))) for _ in range(choice.randrange(900)))
        strings += [f"{len(strings)}{text}" for text in some]
        assert noted.text(known) is None
        assert [noted.text(code) for code in range(known)] == [text.encode() for text in strings[:known]]
        noted.extend()
    assert [noted.text(code) for code in range(len(strings))] == [text.encode() for text in strings]
    assert noted.text(2**32) is None and noted.text(2**64 - 2) is None


def test_strings_stay_when_their_list_is_gone() -> None:
    noted = _core.ColumnStrings([f"one {number}" for number in range(5000)])
    assert noted.text(4999) == b"one 4999"


@pytest.mark.parametrize("text", ["\ud800", "a\udfff", "\U0001f41d\udabc"])
def test_what_is_no_text_has_none(text: str) -> None:
    assert _core.ColumnStrings(["", text, "b"]).text(1) is None


def test_what_is_no_string_is_refused() -> None:
    with pytest.raises(TypeError, match="strings"):
        _core.ColumnStrings(["a", 3])  # type: ignore[list-item]
