"""Tokens of text: words of letters and digits, lower-cased, without accents, stemmed.

The compiled tokenizer (`core/lexicon.cpp`) does this for ASCII text; for other text `canonical` first makes a
string that it reads the same way: normalized words with single spaces between them. Queries, which are short,
are tokenized here.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html
Differs: English is stemmed by Snowball's English stemmer, where Vespa's default is a Krovetz stemmer.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from threading import local

import regex
import Stemmer

NO_STEMMING = 0
ENGLISH = 1
PROFILES = 2
"""Stemming profiles, numbered as the lexicon numbers them."""

_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_NO_WORD = regex.compile(r"[^\p{L}\p{N}\p{M}]+")
_ASCII_WORD = regex.compile(r"[A-Za-z0-9]+")
_state = local()


@dataclass(frozen=True, slots=True)
class TextProfile:
    """How the text of one field becomes terms."""

    stemming: int = ENGLISH
    normalizing: bool = True

    def canonical(self, text: str) -> str:
        """Text that the compiled tokenizer splits at the same places: unchanged if it is ASCII."""
        return text if text.isascii() else _canonical(text, self.normalizing)

    def words(self, text: str) -> list[str]:
        """The words of a text, not stemmed."""
        if text.isascii():
            return [word.lower() for word in _ASCII_WORD.findall(text)]
        return _canonical(text, self.normalizing).split()

    def stem(self, word: str) -> str:
        return word if self.stemming == NO_STEMMING else _stem(word)

    def stems(self, words: list[str]) -> list[str]:
        """The terms of many words at once."""
        if self.stemming == NO_STEMMING:
            return words
        stems: list[str] = _stemmer().stemWords(words)
        return stems

    def terms(self, text: str, stem: bool = True) -> list[str]:
        """The terms that a query's text stands for."""
        words = self.words(text)
        return [self.stem(word) for word in words] if stem else words


@lru_cache(maxsize=16)
def profile_of(stemming: str, normalizing: bool) -> TextProfile:
    """The profile of a schema's `stemming` and `normalizing` settings."""
    return TextProfile(NO_STEMMING if stemming == "none" else ENGLISH, normalizing)


def _canonical(text: str, drop_accents: bool) -> str:
    text = unicodedata.normalize("NFKC", text).lower()
    if drop_accents:
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    canonical: str = _NO_WORD.sub(" ", text)
    return canonical


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


def _stemmer() -> Stemmer.Stemmer:
    """This thread's stemmer: one may not be shared between threads."""
    if not hasattr(_state, "stemmer"):
        _state.stemmer = Stemmer.Stemmer("english", 0)
    return _state.stemmer
