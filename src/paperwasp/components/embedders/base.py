"""What all embedders share: from texts to tensors, by way of what is remembered and of runs that threads share.

    texts → prepended → remembered, or encoded → run in batches (`batches`) → reduced to what is kept → tensors

An embedder says how a text is encoded, what a run makes of some, and how that becomes a tensor of the type wanted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final, Generic, Protocol, TypeVar

from paperwasp import limits
from paperwasp.components.embedders.batches import Item, Lane, Made, Remembered
from paperwasp.components.embedders.settings import Settings
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Timeout
from paperwasp.indexing.context import Context


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
        """What a deployment warns of, although texts can be embedded."""
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
        """What a run takes of each text. In the thread that embeds."""

    @abstractmethod
    def length(self, item: Item) -> int:
        """What padding adds to: the tokens of a text."""

    @abstractmethod
    def run(self, items: Sequence[Item]) -> Sequence[Made]:
        """What is kept of each text: of all types of tensors that may be made of it."""

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
