"""An answer that comes later, without a task that waits for it.

A handler that has handed its work on, to a queue for instance, need not wait for what comes of it: it returns a
`PendingAnswer`, and whoever makes the answer gives it to that. Thousands of requests may wait so for little.

Runs on one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from paperwasp.http.messages import Answer, Response, StreamedResponse

Given = Response | Exception
"""A whole answer, or the defect for which there is none."""


class PendingAnswer:
    """A whole answer that is still to come."""

    __slots__ = ("_given", "_taker")

    def __init__(self) -> None:
        self._given: Given | None = None
        self._taker: Callable[[Given], None] | None = None

    def give(self, answer: Given) -> None:
        """Gives the answer to whoever waits for it. Call it once."""
        self._given = answer
        if self._taker is not None:
            self._taker(answer)

    def hand_to(self, taker: Callable[[Given], None]) -> None:
        """Calls `taker` with the answer when it is there, or now where it is there already. Call it once."""
        self._taker = taker
        if self._given is not None:
            taker(self._given)

    def __await__(self) -> Generator[Any, None, Response]:
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.hand_to(partial(_settle, answer))
        return (yield from answer)


Begun = Answer | PendingAnswer | Coroutine[Any, Any, Answer | PendingAnswer]
"""The answer, one that is still to come, or a coroutine to be run for it."""


async def settled(begun: Begun) -> Answer:
    """The answer, run and waited for. Errors: those of what is run; the defect for which there is no answer."""
    answer = begun if isinstance(begun, Response | StreamedResponse | PendingAnswer) else await begun
    return await answer if isinstance(answer, PendingAnswer) else answer


def _settle(answer: asyncio.Future[Response], given: Given) -> None:
    if answer.done():
        return
    if isinstance(given, Exception):
        answer.set_exception(given)
    else:
        answer.set_result(given)
