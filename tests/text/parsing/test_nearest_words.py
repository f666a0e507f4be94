"""The nearest known word: told where it is near, and never at the price of much work."""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.text.parsing.tokens import did_you_mean


def test_the_nearest_word_is_told() -> None:
    assert did_you_mean("tilte", ["title", "year"]) == "; did you mean 'title'?"
    assert did_you_mean("xyz", ["title", "year"]) == ""


def test_neither_long_words_nor_many_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert did_you_mean("x" * 1000, ["x" * 999]) == ""
    monkeypatch.setattr(limits, "NEAREST_WORDS", 2)
    assert did_you_mean("tilte", ["title", "year"])
    assert did_you_mean("tilte", ["title", "year", "isbn"]) == ""
