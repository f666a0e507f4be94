"""Text to the numbers of its tokens: by a `tokenizer.json` of Hugging Face, or by a vocabulary alone.

Vespa: com.yahoo.language.huggingface.HuggingFaceTokenizer
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import regex
from msgspec import Struct

from paperwasp import limits
from paperwasp.components.embedders.base import Settings, embedder
from paperwasp.components.embedders.model_files import ModelFile
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context

_LONGEST_FIRST: Final = "longest_first"
_Result = TypeVar("_Result")


class Tokens(Struct, frozen=True):
    """The tokens of one text as a model takes them, without padding; all three of one length."""

    ids: Sequence[int]
    mask: Sequence[int]
    """1 for a token that is attended to, 0 for one that is not."""
    types: Sequence[int]


class TextTokenizer:
    """A tokenizer. Any threads."""

    def __init__(self, file: ModelFile, most_tokens: int | None, *, adds_special_tokens: bool = True) -> None:
        """`most_tokens`: where the file does not say how texts are cut; None: then they are not.

        Errors: LanguageError for a damaged file.
        """
        from tokenizers import Tokenizer

        self._name = file.name
        self._adds_special_tokens = adds_special_tokens
        if len(file.content) > limits.embedding.TOKENIZER_FILE_BYTES:
            raise LanguageError(f"{file.name} has more than {limits.embedding.TOKENIZER_FILE_BYTES} bytes")
        try:
            self._tokenizer = _guarded(lambda: Tokenizer.from_str(file.content.decode()))
        except ValueError as error:
            raise LanguageError(f"{file.name} is no tokenizer: {_shown(error)}") from None
        self._tokenizer.no_padding()
        said: dict[str, Any] | None = self._tokenizer.truncation
        self._most = _most_tokens(said, min(most_tokens or limits.embedding.TOKENS, limits.embedding.TOKENS))
        if said is None or said["strategy"] != _LONGEST_FIRST or said["max_length"] != self._most:
            self._tokenizer.enable_truncation(self._most)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text. Errors: ValueError.

        The whole text is cut into tokens before most of them are left out, a second for each MB. `encode` of the
        library holds the interpreter's lock all that time, this does not; nor does it compute places in the text.
        """
        special = self._adds_special_tokens
        found = _guarded(lambda: self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=special))
        return [Tokens(each.ids, each.attention_mask, each.type_ids) for each in found]

    def notes(self, setting: str, wanted: int | None) -> Iterator[str]:
        """Warn where a component says how many tokens a text has, and the file says another number."""
        if wanted is not None and wanted != self._most:
            yield (
                f"{setting} {wanted} has no effect: the tokenizer '{self._name}' cuts texts at {self._most} tokens; "
                "change truncation.max_length in that file, or the setting"
            )

    def decode(self, token: int) -> str:
        """The text of one token."""
        return str(_guarded(lambda: self._tokenizer.decode([token], skip_special_tokens=False)))


def _most_tokens(said: dict[str, Any] | None, wanted: int) -> int:
    """The most tokens of a text: as the file says if it cuts as models expect it, else what is wanted, or less."""
    if said is None:
        return wanted
    own = int(said["max_length"])
    if said["strategy"] == _LONGEST_FIRST:
        return min(own, limits.embedding.TOKENS)
    return own if 0 < own <= wanted else wanted


def _guarded(work: Callable[[], _Result]) -> _Result:
    """The result. Errors: ValueError for all that the library raises, a panic in its native code included."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic is no Exception
        raise ValueError(_shown(error)) from None


def _shown(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


# Text to word pieces by a vocabulary alone, as Vespa's own tokenizer for BERT makes them.
#
# Letters and digits next to each other are a word, every other character is one by itself. In lower case and without
# accents, a word is the longest entry of the vocabulary that it begins with, then what follows `##`, and so on. Where
# no entry fits, the rest of the word is left out.
#
# Vespa: com.yahoo.language.wordpiece.Model, com.yahoo.language.simple.SimpleTokenizer


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
            if rest in ("", _CONTINUED):
                return
            lengths = range(min(len(rest), self._longest), 0, -1)
            entry = next((rest[:length] for length in lengths if rest[:length] in self._numbers), None)
            if entry is None:
                return
            yield self._numbers[entry]
            rest = _CONTINUED + rest[len(entry) :]


# `hugging-face-tokenizer`: the numbers of a text's tokens as a tensor, by a tokenizer for the text's language.
#
# Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#huggingface-tokenizer-embedder, HuggingFaceTokenizer.java


_UNKNOWN = "unknown"


@embedder("hugging-face-tokenizer")
class TokenNumbers:
    """Makes dense tensors of one dimension: as long as the type says, cut or filled with 0; or as long as the text."""

    def __init__(self, settings: Settings) -> None:
        """Errors: NotFound, LanguageError, ValueError."""
        self._tokenizers = {
            settings.text(f"{name}@language", _UNKNOWN): TextTokenizer(settings.model(name), None)
            for name in settings.repeated("model")
        }

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError."""
        self.check_type(type, context)
        return [_tensor(tokens.ids, type) for tokens in self._tokenizer(context.language).encode(texts)]

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type that is not one dense dimension."""
        if len(type.dimensions) != 1 or type.mapped:
            raise ValueError(f"Don't know how to embed with target tensor type {type}")

    def check(self) -> None:
        """Nothing: all files are read before."""

    def load(self) -> None:
        """Nothing."""

    def _tokenizer(self, language: str) -> TextTokenizer:
        """The one for a language; that for unknown ones where it is the only one, or there is none for the language."""
        found = self._tokenizers.get(language or _UNKNOWN) or self._tokenizers.get(_UNKNOWN)
        if found is None:
            raise ValueError(f"No model for language {language or _UNKNOWN}")
        return found


def _tensor(ids: Sequence[int], type_: TensorType) -> Tensor:
    (dimension,) = type_.dimensions
    size = dimension.size or len(ids)
    values = np.zeros((1, size), np.float64)
    kept = ids[:size]
    values[0, : len(kept)] = kept
    bound = type_ if dimension.size else TensorType.of([Dimension(dimension.name, size)], type_.cell_type)
    return Tensor(bound, ((),), as_cells(values, type_.cell_type))
