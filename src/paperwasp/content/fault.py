"""Why a content node takes no operations for now, and when it tries to go on.

Applying what was logged may fail: the disk of the document store is full, or gone. The state is then of no moment of
the log, so nothing more is applied to it. The node makes another from the last checkpoint and the log, as a start
does: at once, and where that fails, again and again, with pauses that double. Reads go on with the last view.

Threads: the writer begins and ends a fault; anybody may ask.
"""

from __future__ import annotations

import logging
from typing import Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.errors import InternalError, NoSpace, PaperwaspError

_LOGGER: Final = logging.getLogger(__name__)


class Fault:
    """The present fault of a node, if it has one."""

    def __init__(self, environment: Environment = SYSTEM) -> None:
        self._environment = environment
        self._error: PaperwaspError | None = None
        self._cause = ""
        self._pause_seconds = 0.0
        self._not_before_ns = 0

    @property
    def reason(self) -> str | None:
        """Why operations are refused; None: they are not."""
        error = self._error
        return None if error is None else error.message

    @property
    def is_due(self) -> bool:
        """Whether it is time to try again to end it."""
        return self._error is not None and self._environment.monotonic_ns() >= self._not_before_ns

    def check(self) -> None:
        """Errors: NoSpace where room is all that is missing, else InternalError."""
        error = self._error
        if error is not None:
            raise type(error)(error.message)

    def of_logged(self) -> PaperwaspError:
        """Return the error for operations under way: they are logged, unlike those that are refused."""
        assert self._error is not None
        return type(self._error)(f"this is logged, and is applied as soon as the content node can: {self._cause}")

    def begin(self, cause: Exception) -> PaperwaspError:
        """Refuse operations from now on; return the error that they get."""
        self._cause = cause.message if isinstance(cause, PaperwaspError) else f"{type(cause).__name__}: {cause}"
        kind = NoSpace if isinstance(cause, NoSpace) else InternalError
        message = f"the content node takes no operations until it can apply what it has logged: {self._cause}"
        if self.reason != message:
            _LOGGER.error("%s", message, exc_info=cause)
        error = self._error = kind(message)
        longest = limits.RECOVERY_LONGEST_SECONDS
        self._pause_seconds = min(max(limits.RECOVERY_FIRST_SECONDS, 2 * self._pause_seconds), longest)
        self._not_before_ns = self._environment.monotonic_ns() + int(self._pause_seconds * 1e9)
        return error

    def end(self) -> None:
        """Take operations again."""
        if self._error is not None:
            _LOGGER.warning("the content node has applied all that it had logged, and takes operations again")
        self._error, self._pause_seconds = None, 0.0
