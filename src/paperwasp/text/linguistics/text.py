"""Tokens of text: words of letters, digits and their marks; their stems and grams.

The compiled tokenizer (`core/index/lexicon.cpp`) finds the words of ASCII text. Of other text, `canonical` first makes
a string that it reads the same way: its words, in Unicode's compatibility form, lower-cased and without accents, with
spaces where it has separators. So indexed texts and queries are cut by one piece of code.

Vespa: https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html#tokenization
Differs: queries get the compatibility form as documents do, also in fields without stemming, where Vespa demands the
annotation `nfkc`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import local
from typing import Final

import regex
import Stemmer
from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.text.linguistics.detection import ENGLISH, Language
from paperwasp.text.linguistics.krovetzstemmer import Stemmer as KrovetzStemmer

# Stemmers: the form of a word that stands for all of its forms.
#
# English, and every language that has no stemmer of its own, is stemmed by Krovetz's algorithm, which leaves words
# alone that are not all of a to z; the others by Snowball's, and English too where the application says so. The stems
# are in the index: a major version of the libraries that changes them changes what is found until documents are
# reindexed.
#
# Vespa: https://docs.vespa.ai/en/linguistics/linguistics-opennlp.html#stemming
# Differs: words of 25 to 49 letters are not stemmed in English. Snowball's algorithms are those of its version 3, which
# stems some German and Norwegian words otherwise than the version that Vespa has.


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
        return [_krovetz(word) if word.isascii() and word.isalpha() and word.islower() else word for word in words]
    return [stem or word for stem, word in zip(_snowball_of(stemmer).stemWords(words), words, strict=True)]


def stem_word(stemmer: str, word: str) -> str:
    """The stem of one word."""
    return _stem_word(stemmer, word) if len(word) <= _LONGEST_KEPT else stem_words(stemmer, [word])[0]


@lru_cache(maxsize=16384)
def _stem_word(stemmer: str, word: str) -> str:
    return stem_words(stemmer, [word])[0]


def _snowball_of(name: str) -> Stemmer.Stemmer:
    """This thread's stemmer: one may not be shared between threads."""
    found = getattr(_snowball, name, None)
    if found is None:
        found = Stemmer.Stemmer(name, 0)
        setattr(_snowball, name, found)
    return found


# Grams: overlapping pieces of a fixed number of characters of each word, for `match: gram`.
#
# `gul bille` in grams of two is `gu ul bi il ll le`. A word that is shorter than a gram is a gram itself, except right
# after a symbol; a symbol is one alone.
#
# Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#gram


_GRAM_WORD: Final = r"\p{L}\p{Nd}\p{Mn}\p{Mc}\p{Me}\u3008-\u3011"
_GRAM_PART: Final = regex.compile(rf"(?P<symbol>\p{{So}})|(?P<word>[{_GRAM_WORD}]+)")
_IN_WORD: Final = regex.compile(f"[{_GRAM_WORD}]")


def grams(text: str, size: int) -> Iterator[str]:
    """The grams of a text, in order, as they are written. Size: in characters, at least 1."""
    return (text[start:end] for start, end in gram_spans(text, size))


def gram_spans(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Where the grams of a text begin and end."""
    after_symbol = -1
    for found in _GRAM_PART.finditer(text):
        start, end = found.span()
        if found.lastgroup == "symbol":
            after_symbol = end
            yield start, end
        elif end - start >= size:
            yield from ((at, at + size) for at in range(start, end - size + 1))
        elif start != after_symbol:
            yield start, end


def is_in_word(character: str) -> bool:
    """Return whether a character may stand in a gram of several."""
    return _IN_WORD.match(character) is not None


_ACCENTS: Final = regex.compile(r"[\u0300-\u036f]+")
_PART: Final = regex.compile(r"(?P<word>[\p{L}\p{N}\p{Mn}\p{Mc}]+)|(?P<symbol>\p{So})|[^\p{L}\p{N}\p{Mn}\p{Mc}\p{So}]+")
_BEYOND_ASCII: Final = compile_later(r"[\x00-\x7f]?[^\x00-\x7f]+")
"""With the character before, which what follows may be an accent of. Before any ASCII character, normalizing starts
again: so these pieces can be normalized one by one."""


_ASCII_WORD: Final = compile_later(r"[A-Za-z0-9]+")
_WORD: Final = compile_later(r"[A-Za-z0-9\x80-\U0010ffff]+")
_SEPARATOR: Final = compile_later(r"[\x00-/:-@\[-`{-\x7f]")
# Letters of the private use area stand for ASCII separators that a compatibility form has in the middle of a word.
_SHIELDED: Final = {c: 0xE000 + c for c in range(128) if not chr(c).isalnum()}
_LOWER: Final = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


class TextProfile(Struct, frozen=True):
    """How the text of one field becomes terms."""

    stemming: str = "best"
    """none, best, shortest or multiple. Best and shortest are the same here, as in Vespa's default linguistics."""
    normalizing: bool = True
    """Whether accents are dropped."""
    whole: bool = False
    """The text is one term: match word or exact."""
    cased: bool = False
    gram_size: int = 0
    """Characters of a gram; 0: the terms are words."""
    max_length: int = limits.FIELD_MATCH_CHARACTERS
    """Characters of a text that are looked at."""
    max_occurrences: int = limits.TERM_OCCURRENCES
    """The most occurrences of one term in one text that are indexed."""
    max_token_length: int = limits.TOKEN_CHARACTERS
    """Longer words are not indexed."""
    snowball_english: bool = False
    """Whether English is stemmed by Snowball's algorithm instead of Krovetz's."""

    @property
    def plain(self) -> bool:
        """Whether the compiled tokenizer reads ASCII text as it is."""
        return not (self.whole or self.gram_size)

    @property
    def is_stemmed(self) -> bool:
        return self.plain and self.stemming != "none"

    def stemmer(self, language: Language) -> str:
        """The name of the stemmer for texts in a language."""
        is_stemmed = self.stemming != "none" and not (self.whole or self.gram_size)
        return stemmer_of(language, self.snowball_english) if is_stemmed else NO_STEMMER

    def canonical(self, text: str) -> str:
        """Text that the compiled tokenizer splits at the right places; its ASCII letters are not lower-cased yet."""
        if len(text) > self.max_length and not (self.whole or self.gram_size):
            text = text[: self.max_length]
        if self.gram_size:
            return " ".join(grams(text, self.gram_size)).lower()
        if self.whole:
            return text if self.cased else text.lower()
        if text.isascii():
            return text
        return _BEYOND_ASCII.sub(_replacement[self.cased, self.normalizing], text)

    def canonical_all(self, texts: list[str]) -> list[str]:
        """Canonical texts, at no cost for those that are canonical already."""
        limit = self.max_length
        if not self.plain:
            return [self.canonical(text) for text in texts]
        return [text if text.isascii() and len(text) <= limit else self.canonical(text) for text in texts]

    def words(self, text: str) -> list[str]:
        """The words of a text, not stemmed: what the compiled tokenizer finds in the canonical text."""
        canonical = self.canonical(text)
        if self.whole:
            found = [canonical] if canonical else []
        else:
            is_ascii = canonical.isascii()
            if not self.cased:
                canonical = canonical.lower() if is_ascii else canonical.translate(_LOWER)
            found = (_ASCII_WORD if is_ascii else _WORD).findall(canonical)
        if len(canonical) > self.max_token_length:
            found = [word for word in found if len(word) <= self.max_token_length]
        return found

    def stems(self, words: list[str], language: Language = ENGLISH) -> list[str]:
        """The stem of each word."""
        stemmer = self.stemmer(language)
        return words if stemmer == NO_STEMMER else [stem_word(stemmer, word) for word in words]

    def terms(self, text: str, stem: bool = True, language: Language = ENGLISH) -> list[str]:
        """The term of each word of a text: with `multiple` stemming, its stem."""
        words = self.words(text)
        return self.stems(words, language) if stem else words


@lru_cache(maxsize=1024)
def profile_of(
    stemming: str,
    normalizing: bool,
    match: str | None,
    cased: bool = False,
    gram_size: int = 2,
    max_length: int | None = None,
    max_occurrences: int | None = None,
    max_token_length: int | None = None,
    snowball_english: bool = False,
) -> TextProfile:
    """The profile of a schema's `stemming`, `normalizing` and `match` settings; None: not set."""
    return TextProfile(
        stemming="none" if match in ("word", "exact", "gram") else stemming,
        normalizing=normalizing,
        whole=match in ("word", "exact"),
        cased=cased,
        gram_size=gram_size if match == "gram" else 0,
        max_length=max_length or limits.FIELD_MATCH_CHARACTERS,
        max_occurrences=max_occurrences or limits.TERM_OCCURRENCES,
        max_token_length=max_token_length or limits.TOKEN_CHARACTERS,
        snowball_english=snowball_english,
    )


def normalized(word: str, cased: bool = False, normalizing: bool = True) -> str:
    """A word in compatibility form, lower-cased unless `cased`, without accents if `normalizing`."""
    word = unicodedata.normalize("NFKC", word)
    if not cased:
        word = word.lower()
    if normalizing:
        word = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    return word.translate(_SHIELDED) if _SEPARATOR.search(word) else word


def _canonical(piece: str, cased: bool, normalizing: bool) -> str:
    if piece.isalpha():
        return normalized(piece, cased, normalizing)
    if piece[0] < "\x80" and piece[1:].isalpha():
        return piece[0] + normalized(piece[1:], cased, normalizing)
    parts = []
    for found in _PART.finditer(piece):
        match found.lastgroup:
            case "word":
                parts.append(normalized(found[0], cased, normalizing))
            case "symbol":
                parts.append(f" {normalized(found[0], cased, normalizing)} ")
            case _:
                parts.append(" ")
    return "".join(parts)


_kept = lru_cache(maxsize=16384)(_canonical)


class _Replacement:
    """The replacement of a piece of text by its normalized form, for `re.sub`."""

    def __init__(self, cased: bool, normalizing: bool) -> None:
        self._settings = cased, normalizing

    def __call__(self, found: re.Match[str]) -> str:
        piece = found[0]
        return _kept(piece, *self._settings) if len(piece) <= _LONGEST_KEPT else _canonical(piece, *self._settings)


_replacement: Final = {
    (cased, normalizing): _Replacement(cased, normalizing) for cased in (False, True) for normalizing in (False, True)
}
