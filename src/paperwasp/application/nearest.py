"""Hints for words that are not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

_LONGEST_WORD: Final = 100
"""What is longer was not mistyped, and comparing takes time that grows with the length."""


def nearest(word: str, words: Iterable[str]) -> str:
    """`; did you mean '…'?` with the nearest of the words, or nothing where none is near."""
    return _nearest(word, frozenset(words)) if len(word) <= _LONGEST_WORD else ""


@lru_cache(maxsize=1000)
def _nearest(word: str, words: frozenset[str]) -> str:
    found = get_close_matches(word, sorted(words), n=1)
    return f"; did you mean '{found[0]}'?" if found else ""
