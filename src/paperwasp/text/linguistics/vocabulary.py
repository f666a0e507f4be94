"""The terms of the words of shown texts, remembered between queries by `core/text/vocabulary.cpp`.

A vocabulary belongs to a text profile and a language, and never changes what a word means: so all queries share it.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import Final

import numpy as np
import regex

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.text.linguistics.languages import Language
from paperwasp.text.linguistics.query import index_terms
from paperwasp.text.linguistics.text import TextProfile

Forms = tuple[str, ...]
"""The terms of one word of a text: its own, and with some stemming the word itself too; empty: it is cut in pieces."""

WORD_CHARACTERS: Final = r"\p{L}\p{N}\p{M}"
"""Letters, digits and marks: what the words of a shown text consist of, for a regular expression."""
_SURROGATES: Final = range(0xD800, 0xE000)
_LAST_CHARACTER: Final = 0x10FFFF


@lru_cache(maxsize=limits.VOCABULARIES)
def vocabulary_of(profile: TextProfile, language: Language) -> _core.Vocabulary:
    """The vocabulary of texts in a language whose words become terms as the profile says. `profile` is `plain`."""
    forms_of = partial(word_forms, profile, language)
    return _core.Vocabulary(forms_of, not profile.cased, _word_characters(), limits.VOCABULARY_WORDS)


def word_forms(profile: TextProfile, language: Language, words: list[str]) -> list[Forms]:
    """The forms of each word."""
    longest = min(profile.max_length, profile.max_token_length)
    simple = [word for word in words if word.isascii() and word.isalnum() and len(word) <= longest]
    terms = simple if profile.cased else [word.lower() for word in simple]
    stems = profile.stems(terms, language) if profile.is_stemmed else terms
    both = profile.stemming == "multiple"
    known = {
        word: (stem, term) if both and stem != term else (stem,)
        for word, term, stem in zip(simple, terms, stems, strict=True)
    }
    return [known[word] if word in known else _forms(profile, language, word) for word in words]


def _forms(profile: TextProfile, language: Language, word: str) -> Forms:
    terms = index_terms(profile, word, language)
    return terms[0] if len(terms) == 1 else ()


@cache
def _word_characters() -> _core.WordCharacters:
    """All characters that words consist of. Takes some milliseconds, once."""
    codes = np.arange(_LAST_CHARACTER + 1, dtype="<u4")
    codes[_SURROGATES.start : _SURROGATES.stop] = 0
    characters = codes.tobytes().decode("utf-32-le")
    spans = (found.span() for found in regex.finditer(f"[{WORD_CHARACTERS}]+", characters))
    return _core.WordCharacters(np.array([(start, end - 1) for start, end in spans], np.uint32).ravel())
