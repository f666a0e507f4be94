"""The nearest known word to one that is not known: the end of an error message."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'that'?`, or nothing where no known word is near."""
    found = get_close_matches(word[:100], list(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""
