"""The nearest known word to one that is not known: the end of an error message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from paperwasp import limits

_LONGEST_WORD: Final = 100
"""The longest word that is compared: a longer one was hardly mistyped, and comparing takes time by the length."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'that'?`, or nothing where no known word is near, or too many are known to be looked through."""
    words = frozenset(known)
    if word in words or len(word) > _LONGEST_WORD or len(words) > limits.NEAREST_WORDS:
        return ""  # a word that is known is wrong for another reason
    return _did_you_mean(word, words)


def did_you_mean_sentence(word: str, known: Iterable[str]) -> str:
    """The same as a sentence of its own, behind a message in Vespa's words: ` Did you mean 'that'?`."""
    hint = did_you_mean(word, known)
    return f" D{hint[3:]}" if hint else ""


@lru_cache(maxsize=1000)
def _did_you_mean(word: str, known: frozenset[str]) -> str:
    """The same unknown word is often in many places of one file."""
    found = get_close_matches(word, sorted(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""
