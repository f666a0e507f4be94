"""Ends runs of ONNX models whose time is over: how long one takes may depend on its inputs, and the runtime looks at
no clock. It ends a run between two operations of the model when another thread says so.

One thread watches all runs; there is none before the first run that has an end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol


class Stoppable(Protocol):
    """The options of a run."""

    terminate: bool
    """Set: the run ends with an error as soon as it can."""


class RunWatch:
    """Knows all runs under way that have an end."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._runs: dict[int, tuple[int, Stoppable]] = {}
        self._next_ns = 0
        """When the thread looks again, on the clock of `end_ns`; 0: when it is notified."""
        self._is_started = False

    @contextmanager
    def ending(self, run: Stoppable, end_ns: int) -> Iterator[None]:
        """Within it the run is stopped at `end_ns`, of time.monotonic_ns; 0: never."""
        if end_ns == 0:
            yield
            return
        with self._changed:
            self._runs[id(run)] = end_ns, run
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._watch, name="onnx-watch", daemon=True).start()
            elif self._next_ns == 0 or end_ns < self._next_ns:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                del self._runs[id(run)]

    def _watch(self) -> None:
        with self._changed:
            while True:
                now_ns = time.monotonic_ns()
                for end_ns, run in self._runs.values():
                    if end_ns <= now_ns:
                        run.terminate = True
                self._next_ns = min((end_ns for end_ns, _ in self._runs.values() if end_ns > now_ns), default=0)
                self._changed.wait((self._next_ns - now_ns) / 1e9 if self._next_ns else None)


WATCH: Final = RunWatch()
