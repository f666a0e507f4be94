"""Room for what all feeds of a service have under way, so that the container refuses none of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from paperwasp.embedded.lent_loop import Closed, LentLoop

OPERATIONS: Final = 4096
"""As many as a content cluster takes at a time. What comes beyond waits in a line that is short."""


class Window:
    """Counts operations from when they begin to when they end. Threads take room; ends come while the loop is held."""

    def __init__(self, loop: LentLoop) -> None:
        self._loop = loop
        self._begun = 0
        self._ended = 0
        self._changed = threading.Condition()
        self._waited_for: list[Callable[[], bool]] = []
        loop.call_at_end(self._wake)

    def take(self, count: int) -> None:
        """Waits until there is room for that number of operations, and takes it. Errors: Closed."""
        with self._changed:
            self._wait_until(lambda: self._begun - self._ended <= OPERATIONS - count)
            self._begun += count

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
