"""Room for what all feeds of a service have under way, so that the container refuses none of it.

Operations that embed wait for a model, and their time runs meanwhile: of them only as many are begun as embedding does
in a time that is short beside their timeout.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from paperwasp import limits
from paperwasp.embedded.lent_loop import Closed, LentLoop

OPERATIONS: Final = 4096
"""As many as a content cluster takes at a time. What comes beyond waits in a line that is short."""
EMBEDDING_OPERATIONS: Final = 4 * limits.embedding.DOCUMENT_THREADS
"""The most of them that embed: more wait without making runs of a model larger."""
EMBEDDING_SECONDS: Final = 20.0
"""How long one of them may take until fewer are begun; the service gives up after 180 s."""


class Window:
    """Counts operations from when they begin to when they end. Threads take room; ends come while the loop is held."""

    def __init__(self, loop: LentLoop) -> None:
        self._loop = loop
        self._begun = 0
        self._ended = 0
        self._changed = threading.Condition()
        self._waited_for: list[Callable[[], bool]] = []
        self.pace = Pace()
        """Of operations that embed."""
        loop.call_at_end(self._wake)

    def take(self, count: int) -> None:
        """Waits until there is room for that number of operations, and takes it. Errors: Closed."""
        with self._changed:
            self._wait_until(lambda: self._begun - self._ended <= OPERATIONS - count)
            self._begun += count

    def take_embedding(self) -> None:
        """Waits until an operation that embeds may begin, and takes its room. Errors: Closed."""
        with self._changed:
            self._wait_until(lambda: self._begun - self._ended < OPERATIONS and self.pace.has_room)
            self._begun += 1
            self.pace.begin()

    def give_back(self, count: int) -> None:
        """These operations did not begin."""
        with self._changed:
            self._begun -= count
            self._changed.notify_all()

    def note_end(self) -> None:
        """An operation has ended."""
        self._ended += 1
        for is_met in tuple(self._waited_for):
            if is_met():
                self._wake()
                return

    def wait_until(self, is_met: Callable[[], bool]) -> None:
        """Waits for what becomes true when operations end. Errors: Closed, where they will not end any more."""
        if not is_met():
            with self._changed:
                self._wait_until(is_met)

    def _wait_until(self, is_met: Callable[[], bool]) -> None:
        self._waited_for.append(is_met)
        try:
            self._changed.wait_for(lambda: is_met() or self._loop.is_closed)
        finally:
            self._waited_for.remove(is_met)
        if not is_met():
            raise Closed("The service has ended")

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Pace:
    """How many operations that embed may be under way: one at first, one more with each that ends in time, half as many
    where one takes long. `begin` is called under a lock, `end` while the loop is held."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = 0
        self._ended = 0
        self._cut = 0.0
        self.most = 1

    @property
    def has_room(self) -> bool:
        """Whether one more may begin."""
        return self._begun - self._ended < self.most

    def now(self) -> float:
        """The time at which an operation begins, for `end`."""
        return self._clock()

    def begin(self) -> None:
        """An operation begins."""
        self._begun += 1

    def end(self, since: float) -> None:
        """An operation has ended that began then."""
        self._ended += 1
        now = self._clock()
        if now - since <= EMBEDDING_SECONDS:
            self.most = min(self.most + 1, EMBEDDING_OPERATIONS)
        elif since >= self._cut:  # those that began before waited for as many as were begun then
            self.most, self._cut = max(self.most // 2, 1), now
