"""Whose requests are taken next, where more have come at once than a moment allows.

A request that has come is taken at once, as long as those of this round of the event loop have not taken
HTTP_ROUND_SECONDS. All others, and what a client has sent ahead, wait in one line, of which each round serves as much
again. So who asks once waits for a round or two, and not for all that others have sent ahead.

Everything here runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from paperwasp import limits

_NOTED_SECONDS: Final = 0.001
"""Work of a round so short is added up over rounds: to notice each of them would take longer."""


class Turns:
    """The connections of one port that wait for their turn."""

    __slots__ = ("_is_due", "_loop", "_waiting", "spent_seconds")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Callable[[], None], None] = {}
        """Functions that take a connection's next requests, in the order of the line."""
        self._is_due = False
        self.spent_seconds = 0.0
        """On the requests of this round."""

    def join(self, advance: Callable[[], None]) -> None:
        """Calls it, once, when its turn has come: in a later round."""
        self._waiting[advance] = None
        self._come_again()

    def spend(self, seconds: float) -> None:
        """Requests have taken so long."""
        self.spent_seconds += seconds
        if self.spent_seconds > _NOTED_SECONDS:
            self._come_again()

    def _come_again(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._begin_round)

    def _begin_round(self) -> None:
        self._is_due = False
        self.spent_seconds = 0.0
        waiting = self._waiting
        for _ in range(len(waiting)):
            advance = next(iter(waiting))
            del waiting[advance]
            advance()
            if self.spent_seconds >= limits.HTTP_ROUND_SECONDS:
                break
        self.spent_seconds = 0.0
        if waiting:
            self._come_again()
