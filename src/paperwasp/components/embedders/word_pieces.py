"""Text to word pieces by a vocabulary alone, as Vespa's own tokenizer for BERT makes them.

Letters and digits next to each other are a word, every other character is one by itself. In lower case and without
accents, a word is the longest entry of the vocabulary that it begins with, then what follows `##`, and so on. Where no
entry fits, the rest of the word is left out.

Vespa: com.yahoo.language.wordpiece.Model, com.yahoo.language.simple.SimpleTokenizer
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import regex

from paperwasp import limits
from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.errors import LanguageError

_CONTINUED: Final = "##"
_WORDS: Final = regex.compile(r"[\p{L}\p{M}\p{Nd}\p{Nl}]+|[^\p{L}\p{M}\p{Nd}\p{Nl}]")
_ACCENTS: Final = regex.compile(r"[\u0300-\u036F]+")


class WordPieces:
    """A vocabulary: one entry a line, numbered from 0."""

    def __init__(self, file: ModelFile) -> None:
        """Errors: LanguageError for a file that is no vocabulary."""
        if len(file.content) > limits.embedding.TOKENIZER_FILE_BYTES:
            raise LanguageError(f"{file.name} has more than {limits.embedding.TOKENIZER_FILE_BYTES} bytes")
        try:
            lines = file.content.decode().splitlines()
        except UnicodeDecodeError as error:
            raise LanguageError(f"{file.name} is no vocabulary: not UTF-8 at byte {error.start}") from None
        if not any(lines):
            raise LanguageError(f"{file.name} is no vocabulary: it is empty")
        self._numbers: Mapping[str, int] = {entry: number for number, entry in enumerate(lines) if entry}
        self._longest = max(map(len, self._numbers))

    def encode(self, text: str, most: int) -> list[int]:
        """The numbers of the first pieces of a text, no more than `most`."""
        found: list[int] = []
        for word in _WORDS.finditer(text.lower()):
            pieces = self._pieces(_ACCENTS.sub("", unicodedata.normalize("NFD", word[0])))
            found += islice(pieces, most - len(found))
            if len(found) >= most:
                break
        return found

    def _pieces(self, word: str) -> Iterator[int]:
        rest = word
        for _ in range(len(word) + 2):
            if rest in ("", _CONTINUED) or (entry := self._longest_entry(rest)) is None:
                return
            yield self._numbers[entry]
            rest = _CONTINUED + rest[len(entry) :]

    def _longest_entry(self, text: str) -> str | None:
        lengths = range(min(len(text), self._longest), 0, -1)
        return next((text[:length] for length in lengths if text[:length] in self._numbers), None)
