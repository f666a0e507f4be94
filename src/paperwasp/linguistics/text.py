"""Tokens of text: words of letters and digits, lower-cased, without accents, stemmed.

The compiled tokenizer (`core/lexicon.cpp`) does this for ASCII text; for other text `canonical` first makes a
string that it reads the same way: normalized words with single spaces between them. Queries, which are short,
are tokenized here.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics.html
Differs: English is stemmed by Snowball's English stemmer, where Vespa's default is a Krovetz stemmer.
"""

from __future__ import annotations

import re
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
_BEYOND_ASCII = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")
"""With the character before, which what follows may be an accent of. Before any ASCII character, normalizing starts
anew: so these pieces can be normalized one by one."""
_LONGEST_KEPT = 32
"""Longer pieces are not met twice."""
_FINAL_SIGMA, _SIGMA = "\u03c2", "\u03c3"
"""One small sigma for both: which of them a capital becomes depends on what is around it, and a search should not."""
_ASCII_WORD = regex.compile(r"[A-Za-z0-9]+")
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}\uE000-\uE07F]+")
# Letters of the private use area stand for ASCII that the tokenizer would split at, or lower-case, and should not.
_SHIELDED_SEPARATORS = {c: 0xE000 + c for c in range(128) if not chr(c).isalnum()}
_SHIELDED_CAPITALS = {c: 0xE000 + c for c in range(ord("A"), ord("Z") + 1)}
_state = local()


@dataclass(frozen=True, slots=True)
class TextProfile:
    """How the text of one field becomes terms."""

    stemming: int = ENGLISH
    normalizing: bool = True
    whole: bool = False
    """The text is one term: match word or exact."""
    cased: bool = False

    @property
    def plain(self) -> bool:
        """Whether the compiled tokenizer reads ASCII text as it is."""
        return not (self.whole or self.cased)

    def canonical(self, text: str) -> str:
        """Text that the compiled tokenizer splits at the right places."""
        if not text.isascii():
            if self.plain:
                return _BEYOND_ASCII.sub(_piece if self.normalizing else _accented_piece, text)
            text = _canonical(text, self)
        if self.cased:
            text = text.translate(_SHIELDED_CAPITALS)
        return text.translate(_SHIELDED_SEPARATORS) if self.whole else text

    def words(self, text: str) -> list[str]:
        """The words of a text, not stemmed."""
        if not self.plain:
            canonical = self.canonical(text) if self.cased else self.canonical(text).lower()
            return [canonical] if self.whole else _WORD.findall(canonical)
        if text.isascii():
            return [word.lower() for word in _ASCII_WORD.findall(text)]
        return _canonical(text, self).split()

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


@lru_cache(maxsize=64)
def profile_of(stemming: str, normalizing: bool, match: str | None, cased: bool = False) -> TextProfile:
    """The profile of a schema's `stemming`, `normalizing` and `match` settings."""
    whole = match in ("word", "exact")
    unstemmed = whole or cased or stemming == "none"
    return TextProfile(NO_STEMMING if unstemmed else ENGLISH, normalizing, whole, cased)


def _canonical(text: str, profile: TextProfile) -> str:
    text = unicodedata.normalize("NFKC", text)
    if not profile.cased:
        text = text.lower().replace(_FINAL_SIGMA, _SIGMA)
    if profile.normalizing:
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
    canonical: str = text if profile.whole else _NO_WORD.sub(" ", text)
    return canonical


def _piece(found: re.Match[str]) -> str:
    piece = found[0]
    return _kept_piece(piece) if len(piece) <= _LONGEST_KEPT else _canonical(piece, _PLAIN)


@lru_cache(maxsize=8192)
def _kept_piece(piece: str) -> str:
    return _canonical(piece, _PLAIN)


def _accented_piece(found: re.Match[str]) -> str:
    return _canonical(found[0], _ACCENTED)


_PLAIN = TextProfile()
_ACCENTED = TextProfile(normalizing=False)


@lru_cache(maxsize=65536)
def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem


def _stemmer() -> Stemmer.Stemmer:
    """This thread's stemmer: one may not be shared between threads."""
    if not hasattr(_state, "stemmer"):
        _state.stemmer = Stemmer.Stemmer("english", 0)
    return _state.stemmer
