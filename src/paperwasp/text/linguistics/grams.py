"""Grams: overlapping pieces of a fixed number of characters of each word, for `match: gram`.

`gul bille` in grams of two is `gu ul bi il ll le`. A word that is shorter than a gram is a gram itself, except right
after a symbol; a symbol is one alone.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#gram
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

_WORD: Final = r"\p{L}\p{Nd}\p{Mn}\p{Mc}\p{Me}\u3008-\u3011"
_PART: Final = regex.compile(rf"(?P<symbol>\p{{So}})|(?P<word>[{_WORD}]+)")
_IN_WORD: Final = regex.compile(f"[{_WORD}]")


def grams(text: str, size: int) -> Iterator[str]:
    """The grams of a text, in order, as they are written. Size: in characters, at least 1."""
    return (text[start:end] for start, end in gram_spans(text, size))


def gram_spans(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Where the grams of a text begin and end."""
    after_symbol = -1
    for found in _PART.finditer(text):
        start, end = found.span()
        if found.lastgroup == "symbol":
            after_symbol = end
            yield start, end
        elif end - start >= size:
            yield from ((at, at + size) for at in range(start, end - size + 1))
        elif start != after_symbol:
            yield start, end


def is_in_word(character: str) -> bool:
    """Whether a character may stand in a gram of several."""
    return _IN_WORD.match(character) is not None
