"""The base of embedders that are services elsewhere: settings, requests, kept vectors, and answers.

    texts → prepended → remembered, or put together → one request → vectors → tensors

How a service is asked and what it answers is said by the class of its type (`http_services`).

Vespa: AbstractHttpEmbedder.java, TextPrepender.java
Differs: a text's vector is remembered beyond its document or query; 429 is tried again within the time that there is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.components.embedders.base import Remembered, Settings
from paperwasp.components.embedders.http_batches import BatchSettings, HttpBatches
from paperwasp.components.embedders.sent_vectors import VectorForm, read_vector, tensor_of
from paperwasp.components.json_client import Endpoint, JsonClient, find_secret, variable_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import NotFound, Timeout, Unavailable
from paperwasp.indexing.components import Context

_MILLISECONDS: Final = 1000


class HttpEmbedder(ABC):
    """An embedder that asks a service. Any threads; blocks."""

    default_endpoint: ClassVar[str]
    texts_at_once: ClassVar[int]
    """The most texts that the service takes in one request."""

    def __init__(self, settings: Settings) -> None:
        """Errors: ValueError for settings that are wrong."""
        self.settings = settings
        self.name = f"{settings.type} '{settings.id}'"
        self.model = settings.text("model")
        self.secret_name = settings.text("api-key-secret-ref")
        self._prepended = {True: settings.text("prepend/query"), False: settings.text("prepend/document")}
        default_ms = int(limits.REMOTE_TIMEOUT_SECONDS * _MILLISECONDS)
        timeout_ms = settings.integer("timeout", settings.integer("config/timeout", default_ms))
        self._client = JsonClient(
            Endpoint(
                self.endpoint(settings.text("endpoint") or self.default_endpoint),
                self.name,
                self.secret_name,
                timeout_ms / _MILLISECONDS,
                settings.integer("max-retries", settings.integer("config/maxRetries", 3)),
            )
        )
        self._batches = HttpBatches(_batch_settings(settings, self.texts_at_once))
        self._remembered = Remembered[NDArray[Any]](lambda vector: vector.nbytes)

    def endpoint(self, url: str) -> str:
        """The address that is asked, from what is configured."""
        return url

    def check(self) -> None:
        """Errors: NotFound where the secret is not there yet."""
        if self.secret_name and find_secret(self.secret_name) is None:
            raise NotFound(f"there is no secret '{self.secret_name}' ({variable_of(self.secret_name)}) yet")

    def load(self) -> None:  # noqa: B027 — there is nothing to load
        """Nothing: the service is elsewhere."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type of which the service sends no vectors."""
        self.form(type)

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError, InvalidInput, Overload, Timeout, Unavailable."""
        form = self.form(type)
        said = self._prepended[context.is_query]
        wanted = [said + text for text in texts] if said.strip() else list(texts)
        return [tensor_of(vector, type) for vector in self._vectors(wanted, type.shape[0], form, context)]

    def embed_together(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """As `embed`, where the vector of a text depends on the others: by one request, remembered as a whole."""
        form, size = self.form(type), type.shape[0]
        key = tuple(texts), self.key(size, form, context)
        vectors = self._remembered.get(key)
        if vectors is None:
            with self._timed(context) as seconds:
                vectors = np.array(self._request(texts, size, form, context, seconds)).reshape(len(texts), size)
            self._remembered.put(key, vectors, sum(map(len, texts)))
        return [tensor_of(vector, type) for vector in vectors]

    def _vectors(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> list[NDArray[Any]]:
        key = self.key(size, form, context)
        known = {text: self._remembered.get((text, key)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing:
            with self._timed(context) as seconds:
                made = self._batches.make(
                    missing, key, lambda asked, left: self._request(asked, size, form, context, left), seconds
                )
            for text, vector in zip(missing, made, strict=True):
                known[text] = vector
                self._remembered.put((text, key), vector, len(text))
        return [vector for vector in (known[text] for text in texts) if vector is not None]

    @contextmanager
    def _timed(self, context: Context) -> Iterator[float]:
        """The seconds that a call has. Errors: Timeout, in Vespa's words, where they are over before it has ended."""
        seconds = min(context.timeout_seconds, self._client.endpoint.timeout_seconds)
        if seconds <= 0:
            raise Timeout(f"{self.name}: Request deadline exceeded before embedding API call")
        try:
            yield seconds
        except (TimeoutError, Timeout):
            after = f"Embedding API call timed out after {round(seconds * _MILLISECONDS)}ms"
            raise Timeout(f"{self.name}: {after}: {self._client.endpoint.url} did not answer") from None

    def _request(
        self, texts: Sequence[str], size: int, form: VectorForm, context: Context, seconds: float
    ) -> list[NDArray[Any]]:
        """The vectors of some texts, by one request."""
        answer = self._client.post(self.body(texts, size, form, context), seconds)
        sent = self.embeddings(answer)
        if len(sent) != len(texts):
            raise Unavailable(f"{self.name}: {len(sent)} embeddings were sent for {len(texts)} inputs.")
        return [read_vector(each, size, form, self.name) for each in sent]

    def key(self, size: int, form: VectorForm, context: Context) -> Hashable:
        """Return what beside the text decides about its vector."""
        return size, form

    @abstractmethod
    def form(self, type: TensorType) -> VectorForm:
        """Return the form that the service is to send for a type. Errors: ValueError for one that it cannot make."""

    @abstractmethod
    def body(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> Mapping[str, Any]:
        """The request for some texts. `size`: that of the tensors."""

    def embeddings(self, answer: Any) -> list[Any]:
        """The vectors in an answer, in the order of the texts. Errors: Unavailable for an answer of another form."""
        return indexed(answer, self.name)


def indexed(answer: Any, name: str) -> list[Any]:
    """The embeddings of `{"data": [{"index": 0, "embedding": …}, …]}`, in the order of their indexes."""
    try:
        data = sorted(enumerate(answer["data"]), key=lambda pair: int(pair[1].get("index", pair[0])))
        return [each["embedding"] for _, each in data]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise Unavailable(f"{name} answered without embeddings: {str(answer)[:200]}") from None


def _batch_settings(settings: Settings, most: int) -> BatchSettings:
    gathered = settings.integer("batching@max-size", 0)
    delay = settings.text("batching@max-delay", "0")
    return BatchSettings(min(most, gathered) if gathered > 0 else most, min(most, gathered), _seconds(delay))


def _seconds(text: str) -> float:
    """Of `500ms`, `2.5s` or `2.5`."""
    if text.endswith("ms"):
        return float(text[:-2]) / _MILLISECONDS
    return float(text.removesuffix("s"))
