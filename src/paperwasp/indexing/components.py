"""Components that scripts call: embedders, chunkers and generators, each by its id.

Chunkers that come with the service are in `chunkers`; embedders and generators are what an application configures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, Protocol

from paperwasp.base.records import dataclass
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import DataType
from paperwasp.indexing.chunkers import FixedLengthChunker, SentenceChunker
from paperwasp.indexing.context import Context


class Embedder(Protocol):
    """Makes vectors of text. Errors: ValueError for a text or a type that it cannot embed."""

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


@dataclass(frozen=True, slots=True)
class Components:
    """The components that scripts may use, by id."""

    embedders: Mapping[str, Embedder] = field(default_factory=_none)
    chunkers: Mapping[str, Chunker] = field(default_factory=_none)
    generators: Mapping[str, Generator] = field(default_factory=_none)


BUILT_IN: Final = Components(
    chunkers=MappingProxyType({"sentence": SentenceChunker(), "fixed-length": FixedLengthChunker()})
)
