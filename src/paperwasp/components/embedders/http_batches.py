"""Texts on their way to a service: one request for those of a call, or for those of several calls that come together.

    embed → queue → gathered until `max-size` have come or the first has waited for `max-delay` → one request → values

Without `batching` in services.xml a call's texts are one request of their own. Of several calls, the one that has the
most time left sends the request of all: each call is answered at its own deadline, and the request ends for none of
the others before. Where a service refuses a request of several texts, each is tried by itself, so that one bad text
is the error of its own document.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html (batching)
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.errors import InvalidInput

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
