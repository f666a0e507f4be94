"""Grams: overlapping pieces of a fixed number of characters of each word, for `match: gram`.

`gul bille` in grams of two is `gu ul bi il ll le`. A word that is shorter than a gram is a gram itself, except right
after a symbol; a symbol is one alone.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#gram
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import regex

_PART: Final = regex.compile(r"(?P<symbol>\p{So})|(?P<word>[\p{L}\p{Nd}\p{Mn}\p{Mc}\p{Me}\u3008-\u3011]+)")


def grams(text: str, size: int) -> Iterator[str]:
    """The grams of a text, in order, as they are written. Size: in characters, at least 1."""
    after_symbol = -1
    for found in _PART.finditer(text):
        if found.lastgroup == "symbol":
            after_symbol = found.end()
            yield found[0]
            continue
        word = found[0]
        if len(word) >= size:
            yield from (word[start : start + size] for start in range(len(word) - size + 1))
        elif found.start() != after_symbol:
            yield word
