"""Stemmers: the form of a word that stands for all of its forms.

English, and every language that has no stemmer of its own, is stemmed by Krovetz's algorithm, which leaves words alone
that are not all of a to z; the others by Snowball's, and English too where the application says so. The stems are in
the index: a major version of the libraries that changes them changes what is found until documents are reindexed.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html#stemming
Differs: words of 25 to 49 letters are not stemmed in English. Snowball's algorithms are those of its version 3, which
stems some German and Norwegian words otherwise than the version that Vespa has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import local
from typing import Final

import Stemmer

from paperwasp.text.linguistics.krovetzstemmer import Stemmer as KrovetzStemmer
from paperwasp.text.linguistics.languages import ENGLISH, Language

NO_STEMMER: Final = "none"
KROVETZ: Final = "krovetz"

_SNOWBALL: Final[dict[Language, str]] = {
    "ar": "arabic",
    "ca": "catalan",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "ga": "irish",
    "hu": "hungarian",
    "id": "indonesian",
    "it": "italian",
    "nb": "norwegian",
    "nl": "dutch_porter",
    "nn": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "tr": "turkish",
}

_SNOWBALL_ENGLISH: Final = "english"
STEMMERS: Final = (NO_STEMMER, KROVETZ, *sorted({*_SNOWBALL.values(), _SNOWBALL_ENGLISH}))
"""All of them. What the lexicon numbers are places in it; files say the names."""

_LONGEST_KEPT: Final = 32
"""Characters of a word whose stem is kept for the next query."""
_snowball = local()
_krovetz: Callable[[str], str] = KrovetzStemmer().stem
"""One for all threads: it never lets go of the interpreter's lock."""


def stemmer_of(language: Language, snowball_english: bool = False) -> str:
    """The name of the stemmer for a language. `snowball_english`: English is stemmed by Snowball's, too."""
    if snowball_english and language == ENGLISH:
        return _SNOWBALL_ENGLISH
    return _SNOWBALL.get(language, KROVETZ)


def stem_words(stemmer: str, words: list[str]) -> list[str]:
    """The stems of words, one each; of a word of which nothing would be left, itself."""
    if stemmer == NO_STEMMER:
        return words
    if stemmer == KROVETZ:
        return [_krovetz(word) if _is_plain(word) else word for word in words]
    return [stem or word for stem, word in zip(_snowball_of(stemmer).stemWords(words), words, strict=True)]


def stem_word(stemmer: str, word: str) -> str:
    """The stem of one word."""
    return _stem_word(stemmer, word) if len(word) <= _LONGEST_KEPT else stem_words(stemmer, [word])[0]


@lru_cache(maxsize=16384)
def _stem_word(stemmer: str, word: str) -> str:
    return stem_words(stemmer, [word])[0]


def _is_plain(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower()


def _snowball_of(name: str) -> Stemmer.Stemmer:
    """This thread's stemmer: one may not be shared between threads."""
    found = getattr(_snowball, name, None)
    if found is None:
        found = Stemmer.Stemmer(name, 0)
        setattr(_snowball, name, found)
    return found
