"""The base of all embedders: their settings, and the way from texts to tensors.

    texts → prepended → remembered, or encoded → run in batches → reduced to what is kept → tensors

An embedder says how a text is encoded, what a run makes of some, and how that becomes a tensor of the type wanted.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from paperwasp import limits
from paperwasp.base.cache import Cache
from paperwasp.components.embedders.batches import Item, Lane, Made
from paperwasp.components.embedders.model_files import MODEL_ATTRIBUTES, Files, ModelFile, find_model
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Timeout
from paperwasp.indexing.components import Context
from paperwasp.ranking.onnx.session import SessionSettings
from paperwasp.schema.files import Component

_INTRAOP_THREADS = 4


class Settings:
    """The settings of a component with their defaults, and the files that it may name."""

    def __init__(self, component: Component, files: Files) -> None:
        self.id = component.id
        self.type = component.type
        self._given: Mapping[str, str] = component.settings
        self._files = files

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name, default)

    def integer(self, name: str, default: int) -> int:
        return int(self._given[name]) if name in self._given else default

    def number(self, name: str, default: float) -> float:
        return float(self._given[name]) if name in self._given else default

    def flag(self, name: str, default: bool = False) -> bool:
        return self._given[name] == "true" if name in self._given else default

    def is_given(self, name: str) -> bool:
        """Return whether there is such an element, or something in it."""
        return any(path.partition("@")[0] == name for path in self._given)

    def repeated(self, name: str) -> list[str]:
        """The names of an element that may be there several times, as the other methods take them."""
        names = {path.partition("@")[0] for path in self._given}
        return sorted(each for each in names if each.partition("#")[0] == name)

    def model(self, name: str) -> ModelFile:
        """The file that an element names. Errors: NotFound; ValueError where it names none."""
        given = {attribute: self._given.get(f"{name}@{attribute}", "") for attribute in MODEL_ATTRIBUTES}
        found = find_model(name, given, self._files)
        if found is None:
            raise ValueError(f"'{name}' is needed: it names a file of the application package by 'path'")
        return found

    def session(self) -> SessionSettings:
        """How the model is run, within the processors that there are: one is left to others, unless it is said how many
        are to be used."""
        others = max(1, (os.cpu_count() or 1) - 1)
        return SessionSettings(
            intraop_threads=_threads(self.integer("onnx-intraop-threads", min(_INTRAOP_THREADS, others))),
            interop_threads=_threads(self.integer("onnx-interop-threads", 1)),
            parallel=self.text("onnx-execution-mode") == "parallel",
            gpu_device=self.integer("onnx-gpu-device", 0),
            spins=False,
            optimizes=self.flag("onnx-optimize-model", True),
        )


def _threads(wanted: int) -> int:
    """A number of threads; of 0 or less: all processors, or that part of them. More than there are helps nobody."""
    processors = os.cpu_count() or 1
    return min(wanted, processors) if wanted > 0 else math.ceil(processors / max(1, -wanted))


class Remembered(Generic[Made]):
    """The results of the texts that came last, up to a number of bytes. Any thread."""

    def __init__(self, size_of: Callable[[Made], int], size_bytes: int = limits.embedding.CACHE_BYTES) -> None:
        self._size_of = size_of
        self._made: Cache[Hashable, Made] = Cache(size=size_bytes)
        self.get = self._made.get

    @property
    def size_bytes(self) -> int:
        """Bytes of all that is kept."""
        return self._made.size

    def put(self, key: Hashable, made: Made, text_length: int) -> None:
        """`text_length`: in characters, of which each may take four bytes."""
        self._made.put(key, made, self._size_of(made) + 4 * text_length + limits.embedding.CACHE_ENTRY_BYTES)


class LocalOrRemote(Protocol):
    """An embedder as containers have it: `indexing.components.Embedder`, which is checked and made ready."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type of which it makes no tensor, as far as it knows that without a text."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> Sequence[Tensor]:
        """One tensor of the type for each text. Blocks. Errors: ValueError; LanguageError; InternalError; Timeout."""

    def check(self) -> None:
        """Errors: LanguageError, ValueError, at a deployment, for what cannot work. May take seconds."""

    def load(self) -> None:
        """Makes it ready, so that the first text does not wait for that."""


class TextEmbedder(ABC, Generic[Item, Made]):
    """An embedder of texts. Any threads."""

    tries_alone: ClassVar[bool] = True
    """Whether the texts of a run that failed are tried again, each by itself."""
    batch_tokens: ClassVar[int] = limits.embedding.BATCH_TOKENS
    """The tokens of one run, padding included."""

    def __init__(self, settings: Settings) -> None:
        """Errors: NotFound for a file that is not there (yet); LanguageError, ValueError for what cannot work."""
        self.id = settings.id
        self._prepended = {is_query: settings.text(f"prepend/{side}") for is_query, side in _SIDES}
        self._lanes = {
            is_query: Lane[Item, Made](self.run, self.length, self.batch_tokens, tries_alone=self.tries_alone)
            for is_query, _ in _SIDES
        }
        self._remembered = Remembered[Made](self.size_bytes)

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError, also for a type that it does not make; Timeout."""
        self.check_type(type, context)
        return [
            self.tensor(made, type, context) for made in self._make([self.prepend(t, context) for t in texts], context)
        ]

    def prepend(self, text: str, context: Context) -> str:
        """The text with the instruction before it. That for documents is for queries, too, where they have none.

        Vespa: HuggingFaceEmbedder.prependInstruction.
        """
        said = (context.is_query and self._prepended[True]) or self._prepended[False]
        return f"{said} {text}" if said else text

    def check(self) -> None:
        """Errors: LanguageError, ValueError, at a deployment, for what cannot work."""

    def notes(self) -> Iterator[str]:
        """Yield the warnings of a deployment, although texts can be embedded."""
        return iter(())

    def load(self) -> None:
        """Makes it ready."""

    def _make(self, texts: Sequence[str], context: Context) -> list[Made]:
        is_query = context.is_query
        known = {text: self._remembered.get((is_query, text)) for text in texts}
        missing = [text for text, made in known.items() if made is None]
        if missing:
            items = self.encode(missing, is_query=is_query)
            try:
                new = self._lanes[is_query].make(items, context.timeout_seconds)
            except TimeoutError:
                raise Timeout(f"component '{self.id}': the time was over before the text was embedded") from None
            for text, made in zip(missing, new, strict=True):
                known[text] = made
                self._remembered.put((is_query, text), made, len(text))
        found = [known[text] for text in texts]
        return [made for made in found if made is not None]

    @abstractmethod
    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type of which it makes no tensor, as far as it knows that without a text."""

    @abstractmethod
    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Item]:
        """Return the item that a run takes for each text. In the thread that embeds."""

    @abstractmethod
    def length(self, item: Item) -> int:
        """Return the length of a text, to which padding adds: its tokens."""

    @abstractmethod
    def run(self, items: Sequence[Item]) -> Sequence[Made]:
        """Run the model, and return for each text the values from which a tensor of any type can be made."""

    @abstractmethod
    def size_bytes(self, made: Made) -> int:
        """The memory of what is kept of a text."""

    @abstractmethod
    def tensor(self, made: Made, type: TensorType, context: Context) -> Tensor:
        """The tensor of a text. Errors: ValueError."""


_SIDES: Final = ((True, "query"), (False, "document"))

FACTORIES: Final[dict[str, Callable[[Settings], LocalOrRemote]]] = {}
"""Type of a component → what makes its embedder."""

_Factory = TypeVar("_Factory", bound=Callable[[Settings], LocalOrRemote])


def embedder(type_: str) -> Callable[[_Factory], _Factory]:
    """Registers a class as the embedder of components of that type."""

    def register(factory: _Factory) -> _Factory:
        assert type_ not in FACTORIES
        FACTORIES[type_] = factory
        return factory

    return register
