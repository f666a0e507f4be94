"""Forms of words: what makes a term of a rule and a term of a query the same.

Vespa: the directives `stemming` and `language` in https://docs.vespa.ai/en/reference/querying/semantic-rules.html
"""

from __future__ import annotations

from functools import lru_cache

from paperwasp.base.records import dataclass
from paperwasp.text.linguistics import ENGLISH, Language, TextProfile

_PROFILE = TextProfile()


@dataclass(frozen=True, slots=True)
class Speech:
    """How the terms of one file of rules are compared."""

    stemming: bool = True
    """False: as they are written."""
    language: Language = ENGLISH

    def form(self, word: str) -> str:
        """The form of a word: two words are one term where their forms are the same."""
        return _form(word, self.language) if self.stemming else word


@lru_cache(maxsize=65536)
def _form(word: str, language: Language) -> str:
    found = _PROFILE.terms(word, language=language)
    return found[0] if found else word
