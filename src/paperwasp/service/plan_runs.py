"""Runs compiled plans: where they are asked for while nothing else waits, on threads of the core otherwise.

A hand-off to another thread takes longer than a short query does. Where the event loop has other sockets to read, it
is worth it: the loop reads them meanwhile, and the threads need no lock of the interpreter, so that every core counts.

    start → PlanPool.submit → … → the loop's selector → _take → reply

`start` is called by any thread; runs on threads of the core are answered on the event loop that asked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.search.compiled import Filled
from paperwasp.search.text_query import TextAnswer

Reply = Callable[[TextAnswer | None], None]


class PlanRuns:
    """The runs of one content cluster."""

    def __init__(self, threads: int) -> None:
        self._threads: Final = threads
        self._pool: _core.PlanPool | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def start(self, filled: Filled, reply: Reply) -> None:
        """Has a plan run, and calls the reply with its answer, now or later."""
        loop = asyncio._get_running_loop()
        if loop is None or not (self._waits(loop) and self._submit(filled, reply, loop)):
            filled.run.run()
            reply(filled.answer())

    def close(self) -> None:
        """Ends the threads, once what runs has run. Whoever asks afterwards has it run where it is."""
        with self._lock:
            self._is_closed = True
            pool, loop, self._pool = self._pool, self._loop, None
        if pool is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(partial(_end, loop, pool))

    def _waits(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the loop has something else to do, or runs are under way."""
        if getattr(loop, "_ready", None):
            return True
        pool = self._pool
        return pool is not None and pool.busy > 0

    def _submit(self, filled: Filled, reply: Reply, loop: asyncio.AbstractEventLoop) -> bool:
        """False: nothing more can wait."""
        pool = self._pool if loop is self._loop else self._open(loop)
        if pool is None or pool.busy >= limits.QUERY_QUEUE_LENGTH:
            return False
        pool.submit(filled.run, partial(_answer, filled, reply))
        return True

    def _open(self, loop: asyncio.AbstractEventLoop) -> _core.PlanPool | None:
        """The pool, for this loop. None: it is closed, or another loop has it."""
        with self._lock:
            if self._is_closed or (self._loop is not None and not self._loop.is_closed()):
                return None
            self._pool = pool = _core.PlanPool(self._threads)
            loop.add_reader(pool.fileno(), _take, pool)
            self._loop = loop
            return pool


def _answer(filled: Filled, reply: Reply) -> None:
    reply(filled.answer())


def _take(pool: _core.PlanPool) -> None:
    for answer in pool.take():
        answer()


def _end(loop: asyncio.AbstractEventLoop, pool: _core.PlanPool) -> None:
    loop.remove_reader(pool.fileno())
    _take(pool)
