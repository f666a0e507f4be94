"""Texts on their way to a service: one request for those of a call, or for those of several calls that come together.

    embed → queue → gathered until `max-size` have come or the first has waited for `max-delay` → one request → values

Without `batching` in services.xml a call's texts are one request of their own. The thread that finds a queue empty
sends it: no thread waits for nothing. Where a service refuses a request of several texts, each is tried by itself, so
that one bad text is the error of its own document.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html (batching)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from paperwasp.errors import InvalidInput

Request = Callable[[Sequence[str]], Sequence[NDArray[Any]]]
"""From some texts to a vector of each, by one request."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """How texts are put together."""

    most: int
    """Texts in one request."""
    gathered: int = 0
    """How many of several calls are waited for; 0: a call waits for no other."""
    delay_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class _Queue:
    """The texts that wait for the same request, and what became of them."""

    texts: list[str] = field(default_factory=list)
    made: Sequence[NDArray[Any] | Exception] = ()
    is_closed: bool = False
    """Whether it takes no more texts."""
    is_done: bool = False


class HttpBatches:
    """Puts the texts of calls together. Any thread."""

    def __init__(self, settings: BatchSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._changed = threading.Condition()
        self._queues: dict[Hashable, _Queue] = {}

    def make(self, texts: Sequence[str], key: Hashable, request: Request) -> list[NDArray[Any]]:
        """A vector of each text. Only texts of the same `key` go together. Errors: the first of one of the texts."""
        made: list[NDArray[Any] | Exception] = []
        for start in range(0, len(texts), self._settings.most):
            part = texts[start : start + self._settings.most]
            made += self._gathered(part, key, request) if self._settings.gathered > 1 else _made_of(part, request)
        for each in made:
            if isinstance(each, Exception):
                raise each
        return [each for each in made if not isinstance(each, Exception)]

    def _gathered(self, texts: Sequence[str], key: Hashable, request: Request) -> Sequence[NDArray[Any] | Exception]:
        """Joins a queue, or begins one and sends it."""
        with self._changed:
            queue = self._queues.get(key)
            is_first = queue is None or len(queue.texts) + len(texts) > self._settings.gathered
            if queue is None or is_first:
                if queue is not None:
                    queue.is_closed = True
                queue = self._queues[key] = _Queue()
            start = len(queue.texts)
            queue.texts += texts
            queue.is_closed = len(queue.texts) >= self._settings.gathered
            self._changed.notify_all()
            if not is_first:
                self._changed.wait_for(lambda: queue.is_done)
                return queue.made[start : start + len(texts)]
            self._changed.wait_for(lambda: queue.is_closed, self._settings.delay_seconds)
            queue.is_closed = True
            if self._queues.get(key) is queue:
                del self._queues[key]
        try:
            queue.made = _made_of(queue.texts, request)
        except BaseException as error:
            queue.made = [RuntimeError(str(error))] * len(queue.texts)
            raise
        finally:
            with self._changed:
                queue.is_done = True
                self._changed.notify_all()
        return queue.made[: len(texts)]


def _made_of(texts: Sequence[str], request: Request) -> Sequence[NDArray[Any] | Exception]:
    """A vector, or the error, of each text."""
    try:
        return request(texts)
    except InvalidInput as error:
        if len(texts) == 1:
            return [error]
        return [made for text in texts for made in _made_of([text], request)]
    except Exception as error:
        return [error] * len(texts)
