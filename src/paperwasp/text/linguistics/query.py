"""The terms that a text of a query, or of a document, stands for in a field.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html#stemming, and the annotations `stem`,
`normalizeCase`, `accentDrop`, `implicitTransforms` and `language` of its YQL.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache, partial
from typing import Final, TypeVar

import numpy as np
import regex
from msgspec import Struct

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.text.linguistics.detection import ENGLISH, UNKNOWN, Language, detect, language_of
from paperwasp.text.linguistics.text import TextProfile

_Token = TypeVar("_Token")

STEM_EXACTNESS: Final = 0.7
"""The exactness of a stem, where the word itself is indexed too; that of a word is 1."""


class QueryToken(Struct, frozen=True):
    """One place of a text: the forms that count there, each with its exactness, the most exact first."""

    forms: tuple[tuple[str, float], ...]

    @property
    def term(self) -> str:
        """The most exact form; the only one, unless the field's stemming is `multiple`."""
        return self.forms[0][0]


def query_terms(
    profile: TextProfile,
    text: str,
    language: str = UNKNOWN,
    *,
    stem: bool = True,
    normalize_case: bool = True,
    accent_drop: bool = True,
    implicit_transforms: bool = True,
    in_phrase: bool = False,
) -> list[QueryToken]:
    """The tokens of a text of a query, one for each position, none left out.

    `language`: a tag; empty: English. In a language that Vespa does not know, nothing is stemmed. Within a phrase every
    token has a single form. In a field of grams (`profile.gram_size`) the tokens are grams: Vespa searches for all of
    them in any order, within a phrase in this order.
    """
    if not implicit_transforms:
        return [QueryToken(((text, 1.0),))] if text else []
    if not (normalize_case and accent_drop):
        cased = profile.cased or not normalize_case
        profile = replace(profile, normalizing=profile.normalizing and accent_drop, cased=cased)
    words = profile.words(text)
    known = language_of(language) if language else ENGLISH
    if not (stem and known and profile.is_stemmed):
        return [QueryToken(((word, 1.0),)) for word in words]
    stems = profile.stems(words, known)
    if profile.stemming != "multiple" or in_phrase:
        return [QueryToken(((found, 1.0),)) for found in stems]
    return [
        QueryToken(((word, 1.0), (found, STEM_EXACTNESS)) if found != word else ((word, 1.0),))
        for word, found in zip(words, stems, strict=True)
    ]


def index_terms(profile: TextProfile, text: str, language: str = UNKNOWN) -> list[tuple[str, ...]]:
    """The terms of a document's text: for each position the term and, with `multiple` stemming, the word.

    `language`: a tag; unknown: what is detected in the text.
    """
    words = profile.words(text)
    if not profile.is_stemmed:
        return [(word,) for word in _indexed(profile, words, words)]
    known = document_language(text, language)
    both = profile.stemming == "multiple"
    pairs = list(zip(profile.stems(words, known), words, strict=True))
    kept = _indexed(profile, pairs, [stem for stem, _ in pairs])
    return [(stem, word) if both and stem != word else (stem,) for stem, word in kept]


def _indexed(profile: TextProfile, tokens: list[_Token], terms: list[str]) -> list[_Token]:
    """The tokens without those that are no longer among the first occurrences of their term that are indexed."""
    if len(tokens) <= profile.max_occurrences:
        return tokens
    counts: Counter[str] = Counter()
    kept = []
    for token, term in zip(tokens, terms, strict=True):
        counts[term] += 1
        if counts[term] <= profile.max_occurrences:
            kept.append(token)
    return kept


def document_language(text: str, given: str = UNKNOWN) -> Language:
    """The language that a text of a document is stemmed by: the given one, else the detected one, else English."""
    return language_of(given) or detect(text) or ENGLISH


def query_language(given: str, text: str = "") -> Language:
    """The language of a query: what `model.language` says, else what is detected in its text, else English."""
    return language_of(given) or detect(text) or ENGLISH


# The terms of the words of shown texts, remembered between queries by `core/text/vocabulary.cpp`.
#
# A vocabulary belongs to a text profile and a language, and never changes what a word means: so all queries share it.


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
    known: dict[str, Forms] = {
        word: (stem, term) if both and stem != term else (stem,)
        for word, term, stem in zip(simple, terms, stems, strict=True)
    }
    for word in words:
        if word not in known:
            found = index_terms(profile, word, language)
            known[word] = found[0] if len(found) == 1 else ()
    return [known[word] for word in words]


@cache
def _word_characters() -> _core.WordCharacters:
    """All characters that words consist of. Takes some milliseconds, once."""
    codes = np.arange(_LAST_CHARACTER + 1, dtype="<u4")
    codes[_SURROGATES.start : _SURROGATES.stop] = 0
    characters = codes.tobytes().decode("utf-32-le")
    spans = (found.span() for found in regex.finditer(f"[{WORD_CHARACTERS}]+", characters))
    return _core.WordCharacters(np.array([(start, end - 1) for start, end in spans], np.uint32).ravel())
