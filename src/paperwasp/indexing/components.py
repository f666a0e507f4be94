"""Components that scripts call: embedders, chunkers and generators, each by its id.

An application configures embedders and generators. Two chunkers come with the service, `sentence` and `fixed-length`:
their chunks, joined, are the text again.

Vespa: https://docs.vespa.ai/en/reference/rag/chunking.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

import regex
from msgspec import Struct, field

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import DataType

TimeLeft = Callable[[], float]
"""The seconds that an operation still has."""


def no_end() -> float:
    """The time that is left where there is no timeout."""
    return math.inf


class Context(Struct, frozen=True):
    """The context of a call of a component, beside the text."""

    destination: str
    """The field that the value is for, or the input of a query: `query(name)`."""
    language: str = ""
    """A language tag; empty: unknown."""
    arguments: tuple[str, ...] = ()
    timeout_seconds: float = math.inf
    """The time that the caller has; a component that waits for others may take less."""

    @property
    def is_query(self) -> bool:
        """True where the value is for a query, not for a document."""
        return self.destination.startswith("query(")


class Embedder(Protocol):
    """Makes vectors of texts. Errors: ValueError for a text or a type that it cannot embed."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type of which it makes no tensor, as far as it knows that without a text."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> Sequence[Tensor]:
        """One tensor of that type for each text."""


class Chunker(Protocol):
    """Splits text into chunks. Errors: ValueError for arguments that it does not take."""

    def check(self, arguments: tuple[str, ...]) -> None:
        """Errors: ValueError, at deployment."""

    def chunk(self, text: str, context: Context) -> list[str]: ...


class Generator(Protocol):
    """Makes a value of a field from a text. Errors: ValueError for a text or a type that it makes no value of."""

    def check(self, type: DataType) -> None:
        """Errors: ValueError, at deployment, for a type that it makes no values of."""

    def generate(self, prompt: str, type: DataType, context: Context) -> Any:
        """A value of that type; None: there is none."""


def _none() -> Mapping[str, Any]:
    return MappingProxyType({})


class Components(Struct, frozen=True):
    """The components that scripts may use, by id."""

    embedders: Mapping[str, Embedder] = field(default_factory=_none)
    chunkers: Mapping[str, Chunker] = field(default_factory=_none)
    generators: Mapping[str, Generator] = field(default_factory=_none)


# Chunkers

_DEFAULT_LENGTH: Final = 1000
_SOFT_SHARE: Final = 1.05
_HARD_SHARE: Final = 1.10
_UNSPACED: Final = ("zh", "ja", "ko", "th")
"""Languages whose words are not apart: their chunks end anywhere."""
_LETTERS: Final = r"\p{L}\p{Nd}\p{M}\u3008-\u3011"
"""Letters, digits and marks; the brackets of Chinese and Japanese count as letters, fractions and the like do not."""
_NO_LETTER: Final = regex.compile(rf"[^{_LETTERS}]")
_ENDS: Final = ".!?\u203d\u1362\u0964\u0965\u2e2e\u061f\uff01\uff1f\uff61\u3002"
"""Signs that end a sentence, in any script."""
_CONTENT: Final = rf"{_LETTERS}\p{{So}}"
_SENTENCE: Final = regex.compile(rf"[^{_CONTENT}]*+[{_CONTENT}][^{_ENDS}]*+[{_ENDS}]*+")
"""Up to the last of the signs that end it, the first of them after a letter, a digit or a symbol such as an emoji."""


class SentenceChunker:
    """One chunk a sentence."""

    def check(self, arguments: tuple[str, ...]) -> None:
        """It looks at no arguments."""

    def chunk(self, text: str, context: Context) -> list[str]:
        chunks: list[str] = []
        end = 0
        while (found := _SENTENCE.match(text, end)) is not None:  # a search would try all places of what is left over
            chunks.append(found[0])
            end = found.end()
        return [*chunks, text[end:]] if end < len(text) else chunks


class FixedLengthChunker:
    """Chunks of about a length in characters. From there on a chunk ends at the first two characters that are no
    letters; 5 % further on, at one; 10 % further on, where it is."""

    def check(self, arguments: tuple[str, ...]) -> None:
        if arguments and (not arguments[0].isascii() or not arguments[0].isdecimal() or int(arguments[0][:9]) == 0):
            raise ValueError(
                f"Expected a chunk length integer argument to the fixed-length chunker, got '{arguments[0]}'"
            )

    def chunk(self, text: str, context: Context) -> list[str]:
        target = int(context.arguments[0][:9]) if context.arguments else _DEFAULT_LENGTH
        is_unspaced = context.language.partition("-")[0] in _UNSPACED
        chunks: list[str] = []
        start = 0
        while start < len(text):
            end = start + target if is_unspaced else _end(text, start, target)
            chunks.append(text[start:end])
            start = end
        return chunks


def _end(text: str, start: int, target: int) -> int:
    """Return the end of the chunk that begins at `start`: the place after its last character."""
    soft, hard = start + _round(target * _SOFT_SHARE), start + _round(target * _HARD_SHARE)
    place = start + target
    while place < min(soft, len(text)):
        if _is_no_letter(text, place - 1) and _is_no_letter(text, place):
            return place
        place += 1
    while place < min(hard, len(text)):
        if _is_no_letter(text, place - 1):
            return place
        place += 1
    return place


def _is_no_letter(text: str, place: int) -> bool:
    return place >= len(text) or _NO_LETTER.match(text[place]) is not None


def _round(number: float) -> int:
    """Halves go up."""
    return int(number + 0.5)


BUILT_IN: Final = Components(
    chunkers=MappingProxyType({"sentence": SentenceChunker(), "fixed-length": FixedLengthChunker()})
)
