"""Keeps operations on one document in order where reading some of them takes long and later ones would overtake them.

Each joins when it comes, is read at any time, and is sent when those before it have been. Runs on one event loop.
"""

from __future__ import annotations

import asyncio
from typing import Final


class Sequencer:
    """The operations that are not sent yet, each behind those before it on the same document."""

    def __init__(self) -> None:
        self._last: Final[dict[str, asyncio.Future[None]]] = {}
        """The last operation on each document that is not sent yet, by the document's id."""

    def __contains__(self, key: str) -> bool:
        """Whether an operation on the document waits to be sent."""
        return key in self._last

    def join(self, key: str) -> Sequenced:
        """Add an operation that has just come, behind the others on its document."""
        before = self._last.get(key)
        mine = self._last[key] = asyncio.get_running_loop().create_future()
        return Sequenced(self._last, key, before, mine)


class Sequenced:
    """One operation behind the others on its document."""

    def __init__(
        self,
        last: dict[str, asyncio.Future[None]],
        key: str,
        before: asyncio.Future[None] | None,
        mine: asyncio.Future[None],
    ) -> None:
        self._last = last
        self._key = key
        self._before = before
        self._mine = mine

    async def wait(self) -> None:
        """Return when all operations before are sent, or have failed."""
        if self._before is not None:
            await asyncio.shield(self._before)

    def end_soon(self) -> None:
        """The next operation may be sent when this one is, or once the event loop goes on with something else."""
        asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        if self._mine.done():
            return
        if self._before is not None and not self._before.done():  # cancelled while it waited
            self._before.add_done_callback(lambda _: self._end())
            return
        self._mine.set_result(None)
        if self._last.get(self._key) is self._mine:
            del self._last[self._key]
