"""The circuit breaker stops sending to a service that fails, and looks whether it has recovered.

    state       moved by                              to
    CLOSED      failures for the grace period         HALF_OPEN: one request every 100 ms
    HALF_OPEN   failures for the doom period          OPEN: all operations fail at once, for good
    HALF_OPEN   one success                           CLOSED

Both periods begin with the first failure that no success has followed.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Final, Protocol

from paperwasp.errors import InvalidInput

GRACE_SECONDS: Final = 10.0


class CircuitState(enum.Enum):
    """The states of a circuit breaker."""

    CLOSED = "closed"
    HALF_OPEN = "half-open"
    OPEN = "open"


class CircuitBreaker(Protocol):
    """A circuit breaker. It is called on the client's event loop."""

    @property
    def state(self) -> CircuitState: ...
    def success(self) -> None:
        """An operation was answered."""

    def failure(self, reason: str) -> None:
        """An attempt failed: a connection broke, or the service answered with a status of 500 or more."""


class GracePeriodBreaker:
    """Breaks after a time without any success."""

    def __init__(
        self,
        grace_seconds: float = GRACE_SECONDS,
        doom_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`doom_seconds`, None: it never opens. Errors: InvalidInput for negative periods."""
        if grace_seconds < 0 or (doom_seconds is not None and doom_seconds < 0):
            raise InvalidInput("the periods of a circuit breaker are not negative")
        self._grace_seconds = grace_seconds
        self._doom_seconds = doom_seconds
        self._clock = clock
        self._failing_since: float | None = None
        self._state = CircuitState.CLOSED
        self.first_failure: str | None = None
        """The error that began the time without success."""

    @property
    def state(self) -> CircuitState:
        if self._failing_since is not None and self._state is not CircuitState.OPEN:
            failing_seconds = self._clock() - self._failing_since
            if failing_seconds > self._grace_seconds:
                self._state = CircuitState.HALF_OPEN
                if self._doom_seconds is not None and failing_seconds > self._doom_seconds:
                    self._state = CircuitState.OPEN
        return self._state

    def success(self) -> None:
        self._failing_since = None
        if self._state is CircuitState.HALF_OPEN:
            self._state = CircuitState.CLOSED

    def failure(self, reason: str) -> None:
        if self._failing_since is None:
            self._failing_since = self._clock()
            self.first_failure = reason


class FusedBreaker:
    """Never breaks."""

    state = CircuitState.CLOSED

    def success(self) -> None:
        """Changes nothing."""

    def failure(self, reason: str) -> None:
        """Changes nothing."""
