"""The base of embedders that are services elsewhere: settings, requests, kept vectors, and answers.

    texts → prepended → remembered, or put together → one request → vectors → tensors

How a service is asked and what it answers is said by the class of its type (`http_services`).

Vespa: AbstractHttpEmbedder.java, TextPrepender.java
Differs: a text's vector is remembered beyond its document or query; 429 is tried again within the time that there is.
"""

from __future__ import annotations

import base64
import binascii
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final, Literal

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.components.embedders.base import Remembered, Settings
from paperwasp.components.embedders.vectors import check_vector
from paperwasp.components.json_client import Endpoint, JsonClient, find_secret, variable_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import InvalidInput, NotFound, Timeout, Unavailable
from paperwasp.indexing.components import Context

# Texts on their way to a service: one request for those of a call, or for those of several calls that come together.
#
#     embed → queue → gathered until `max-size` have come or the first has waited for `max-delay` → one request → values
#
# Without `batching` in services.xml a call's texts are one request of their own. Of several calls, the one that has the
# most time left sends the request of all: each call is answered at its own deadline, and the request ends for none of
# the others before. Where a service refuses a request of several texts, each is tried by itself, so that one bad text
# is the error of its own document.
#
# Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html (batching)


Request = Callable[[Sequence[str], float], Sequence[NDArray[Any]]]
"""From some texts, and the seconds that there are, to a vector of each, by one request."""


class BatchSettings(Struct, frozen=True):
    """How texts are put together."""

    most: int
    """Texts in one request."""
    gathered: int = 0
    """How many of several calls are waited for; 0: a call waits for no other."""
    delay_seconds: float = 0.0


class _Queue(Struct, eq=False):
    """The texts that wait for the same request, and what became of them."""

    closes_at: float
    """When it takes no more texts, by the clock."""
    texts: list[str] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)
    """Of the calls that still wait, by the clock."""
    made: Sequence[NDArray[Any] | Exception] = ()
    is_closed: bool = False
    is_sent: bool = False
    is_done: bool = False


class HttpBatches:
    """Puts the texts of calls together. Any thread."""

    def __init__(self, settings: BatchSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._settings = settings
        self._clock = clock
        self._changed = threading.Condition()
        self._queues: dict[Hashable, _Queue] = {}

    def make(
        self, texts: Sequence[str], key: Hashable, request: Request, timeout_seconds: float = math.inf
    ) -> list[NDArray[Any]]:
        """A vector of each text, within the time that the caller has. Only texts of the same `key` go together.

        Errors: the first of one of the texts; TimeoutError where the time is over before there are vectors.
        """
        deadline = self._clock() + timeout_seconds
        made: list[NDArray[Any] | Exception] = []
        for start in range(0, len(texts), self._settings.most):
            part = texts[start : start + self._settings.most]
            gathers = self._settings.gathered > 1
            made += self._gathered(part, key, request, deadline) if gathers else self._made_of(part, request, deadline)
        for each in made:
            if isinstance(each, Exception):
                raise each
        return [each for each in made if not isinstance(each, Exception)]

    def _gathered(
        self, texts: Sequence[str], key: Hashable, request: Request, deadline: float
    ) -> Sequence[NDArray[Any] | Exception]:
        """Joins a queue, or begins one; sends it, or waits until another call has. Errors: TimeoutError."""
        with self._changed:
            queue = self._joined(key, len(texts))
            start = len(queue.texts)
            queue.texts += texts
            queue.deadlines.append(deadline)
            self._changed.notify_all()
            if len(queue.texts) >= self._settings.gathered:
                self._close(queue, key)
            sends = self._wait(queue, key, deadline)
        if sends:
            self._send(queue, request, deadline)
        return queue.made[start : start + len(texts)]

    def _joined(self, key: Hashable, count: int) -> _Queue:
        """The queue that this many more texts join. The caller holds the lock."""
        queue = self._queues.get(key)
        if queue is not None and len(queue.texts) + count > self._settings.gathered:
            self._close(queue, key)
            queue = None
        if queue is None:
            queue = self._queues[key] = _Queue(self._clock() + self._settings.delay_seconds)
        return queue

    def _close(self, queue: _Queue, key: Hashable) -> None:
        """With the lock."""
        queue.is_closed = True
        if self._queues.get(key) is queue:
            del self._queues[key]
        self._changed.notify_all()

    def _wait(self, queue: _Queue, key: Hashable, deadline: float) -> bool:
        """Return whether this call is to send the queue; else it has been. With the lock. Errors: TimeoutError."""
        while not queue.is_done:
            now = self._clock()
            if now >= deadline:
                self._leave(queue, key, deadline)
                raise TimeoutError
            if not queue.is_closed and now >= queue.closes_at:
                self._close(queue, key)
            if queue.is_closed and not queue.is_sent and deadline == max(queue.deadlines):
                queue.is_sent = True
                return True
            until = deadline if queue.is_closed else min(deadline, queue.closes_at)
            self._changed.wait(None if until == math.inf else until - now)
        return False

    def _leave(self, queue: _Queue, key: Hashable, deadline: float) -> None:
        """The call has no time left: another one sends the queue, or nobody. With the lock."""
        queue.deadlines.remove(deadline)
        if not queue.deadlines:
            self._close(queue, key)
        self._changed.notify_all()

    def _send(self, queue: _Queue, request: Request, deadline: float) -> None:
        try:
            queue.made = self._made_of(queue.texts, request, deadline)
        except BaseException as error:
            queue.made = [RuntimeError(str(error))] * len(queue.texts)
            raise
        finally:
            with self._changed:
                queue.is_done = True
                self._changed.notify_all()

    def _made_of(self, texts: Sequence[str], request: Request, deadline: float) -> Sequence[NDArray[Any] | Exception]:
        """A vector, or the error, of each text."""
        try:
            return request(texts, deadline - self._clock())
        except InvalidInput as error:
            if len(texts) == 1:
                return [error]
            return [made for text in texts for made in self._made_of([text], request, deadline)]
        except Exception as error:
            return [error] * len(texts)


# Vectors as services send them, as tensors of the type that is wanted.
#
#     float     numbers, or base64 of 32-bit floats, the lowest byte first → tensor<float>, tensor<bfloat16>
#     int8      numbers from -128 to 127 → tensor<int8>
#     binary    the same, of eight bits each → tensor<int8> with an eighth of the dimensions
#
# Vespa: EmbeddingQuantization.java


Quantization = Literal["auto", "float", "int8", "binary"]
Sent = Literal["float", "int8", "binary"]
"""The output that a service is asked for."""
_CELLS: Final = {"float": ("float", "bfloat16"), "int8": ("int8",), "binary": ("int8",)}


def sent_as(type_: TensorType, dimensions: int, quantization: Quantization) -> Sent:
    """Return the output that a service with vectors of this many dimensions is to send for a type.

    Errors: ValueError where none fits.
    """
    check_vector(type_)
    sent: Sent
    if quantization != "auto":
        sent = quantization
    elif type_.cell_type != "int8":
        sent = "float"
    else:
        sent = "binary" if type_.shape[0] == dimensions // 8 else "int8"
    if type_.cell_type not in _CELLS[sent]:
        raise ValueError(f"Quantization '{quantization}' is incompatible with tensor type {type_}.")
    size, wanted = type_.shape[0], dimensions // 8 if sent == "binary" else dimensions
    if sent == "binary" and dimensions % 8:
        raise ValueError(f"Configured dimension {dimensions} must be divisible by 8 for quantization 'binary'.")
    if size != wanted:
        if quantization == "auto" and type_.cell_type == "int8":
            expected = f"{dimensions} or {dimensions // 8}"
            problem = f"Tensor dimension {size} does not match configured dimension. Expected {expected}."
        elif sent == "binary":
            problem = f"Tensor dimension {size} does not match required dimension {wanted}."
        else:
            problem = f"Tensor dimension {size} does not match configured dimension {dimensions}."
        raise ValueError(problem)
    return sent


def read_vector(sent: object, size: int, form: Sent, who: str) -> NDArray[Any]:
    """The cells of one vector in an answer: float32 or int8. Errors: Unavailable for one of another form or size."""
    cells = _decoded(sent, form)
    if cells is None:
        raise Unavailable(f"{who} answered with an embedding that is not a vector of {form}: {str(sent)[:100]}")
    if cells.shape != (size,):
        raise Unavailable(f"{who}: Expected embedding dimension {size}, got {cells.size}.")
    if form == "float" and not np.isfinite(cells).all():
        raise Unavailable(f"{who} answered with an embedding that has a number that is not finite")
    return cells


def _decoded(sent: object, form: Sent) -> NDArray[Any] | None:
    dtype = np.dtype("<f4") if form == "float" else np.dtype(np.int8)
    try:
        if isinstance(sent, str):
            return np.frombuffer(base64.b64decode(sent, validate=True), dtype)
        if not isinstance(sent, list):
            return None
        if form == "float":
            with np.errstate(over="ignore"):
                return np.array(sent, dtype=np.float64).astype(np.float32)
        numbers = np.array(sent)
        is_right = numbers.dtype.kind == "i" and ((numbers >= -128) & (numbers <= 127)).all()
        return numbers.astype(np.int8) if is_right else None
    except (ValueError, TypeError, OverflowError, binascii.Error):
        return None


def tensor_of(cells: NDArray[Any], type_: TensorType) -> Tensor:
    """The tensor of a vector with as many cells as the type has."""
    return Tensor(type_, ((),), as_cells(cells[None], type_.cell_type))


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

    def _vectors(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> list[NDArray[Any]]:
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
        self, texts: Sequence[str], size: int, form: Sent, context: Context, seconds: float
    ) -> list[NDArray[Any]]:
        """The vectors of some texts, by one request."""
        answer = self._client.post(self.body(texts, size, form, context), seconds)
        sent = self.embeddings(answer)
        if len(sent) != len(texts):
            raise Unavailable(f"{self.name}: {len(sent)} embeddings were sent for {len(texts)} inputs.")
        return [read_vector(each, size, form, self.name) for each in sent]

    def key(self, size: int, form: Sent, context: Context) -> Hashable:
        """Return what beside the text decides about its vector."""
        return size, form

    @abstractmethod
    def form(self, type: TensorType) -> Sent:
        """Return the output that the service is to send for a type. Errors: ValueError for one that it cannot make."""

    @abstractmethod
    def body(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> Mapping[str, Any]:
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
