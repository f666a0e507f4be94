"""The time of a deployment step."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.core.steps import WorkOutOfTime, bounded_work
from paperwasp.errors import DeployTimeout


class Deadline:
    """When a step must have ended, and the answer to who was first: the clock, or the step.

    A step asks `check` between its parts and `commit` before its first change. Whoever waits for it may `expire` it:
    from then on it cannot commit. So a step that was answered with a timeout changes nothing, and one that has begun
    to change things is waited for.
    """

    def __init__(self, seconds: float, environment: Environment = SYSTEM) -> None:
        self.seconds = seconds
        self._environment = environment
        self._end_ns = environment.monotonic_ns() + int(seconds * 1e9)
        self._lock = threading.Lock()
        self._committed = False
        self._expired = False

    @property
    def remaining_seconds(self) -> float:
        return max(0.0, (self._end_ns - self._environment.monotonic_ns()) / 1e9)

    def check(self, detail: str = "") -> None:
        """Errors: DeployTimeout when the time is over. `detail`: where it went."""
        if self._expired or (not self._committed and self.remaining_seconds == 0):
            raise self.error(detail)

    def commit(self) -> None:
        """From here on the step is carried through. Errors: DeployTimeout when the time is over."""
        with self._lock:
            self.check()
            self._committed = True

    def expire(self) -> bool:
        """Ends the time, unless the step has committed. Returns whether it did."""
        with self._lock:
            self._expired = not self._committed
            return self._expired

    def error(self, detail: str = "") -> DeployTimeout:
        """The error for a request whose time is over. `detail`: where it went."""
        text = f"The request was not done within its timeout of {self.seconds:g} seconds"
        return DeployTimeout(f"{text}: {detail}" if detail else text)

    @contextmanager
    def bounding_work(self) -> Iterator[None]:
        """The work inside ends with the time (`core.steps`). Errors: DeployTimeout, with the step that took longest."""
        end_ns = time.monotonic_ns() + max(1, int(self.remaining_seconds * 1e9))
        try:
            with bounded_work(end_ns, limits.PREPARE_STEP_BYTES):
                yield
        except WorkOutOfTime as error:
            raise self.error(str(error)) from None
