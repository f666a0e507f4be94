"""Highlights the words of the query in a field's text.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#bolding
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any, Final

import regex

from paperwasp.linguistics import TextProfile

OPEN: Final = "<hi>"
CLOSE: Final = "</hi>"
_ASCII: Final = "A-Za-z0-9"
_UNICODE: Final = r"\p{L}\p{N}\p{M}"


class Bolder:
    """Puts <hi> and </hi> around every word of a text whose term is among those of the query.

    Stemming keeps a word's first letter, so only words with the first letter of some term are looked at: a scan by
    regular expression finds them, and what each means is remembered while the query lasts.
    """

    def __init__(self, terms: Set[str], profile: TextProfile) -> None:
        self._terms = terms
        self._profile = profile
        self._known: dict[str, str] = {}
        firsts = re.escape("".join(sorted({form for term in terms for form in (term[0], term[0].upper())})))
        start = f"[{firsts}]" if profile.plain else f"[{_ASCII}]"
        self._in_ascii = re.compile(f"(?<![{_ASCII}]){start}[{_ASCII}]*")
        start = rf"(?:[{firsts}]|[^\x00-\x7f])" if profile.plain else ""
        self._in_unicode: Any = regex.compile(rf"(?<![{_UNICODE}])(?=[{_UNICODE}]){start}[{_UNICODE}]*")

    def bold(self, text: str) -> str:
        """The text with its words of the query marked."""
        if self._profile.whole:
            return self._marked(text)
        pattern = self._in_ascii if text.isascii() else self._in_unicode
        bolded: str = pattern.sub(lambda match: self._marked(match.group()), text)
        return bolded

    def _marked(self, word: str) -> str:
        marked = self._known.get(word)
        if marked is None:
            found = self._profile.terms(word)
            marked = f"{OPEN}{word}{CLOSE}" if len(found) == 1 and found[0] in self._terms else word
            self._known[word] = marked
        return marked
