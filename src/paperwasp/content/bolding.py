"""Highlights the words of the query in a field's text.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding
"""

from __future__ import annotations

from collections.abc import Set
from typing import Final

import regex

from paperwasp.linguistics import TextProfile

OPEN: Final = "<hi>"
CLOSE: Final = "</hi>"
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")


def bold(text: str, terms: Set[str], profile: TextProfile) -> str:
    """`text` with every word whose term is among `terms` between <hi> and </hi>."""
    pieces: list[str] = []
    done = 0
    for match in _WORD.finditer(text):
        found = profile.terms(match.group())
        if len(found) == 1 and found[0] in terms:
            pieces += [text[done : match.start()], OPEN, match.group(), CLOSE]
            done = match.end()
    return "".join([*pieces, text[done:]]) if pieces else text
