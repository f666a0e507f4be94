"""Has plans run, for `server.roles.content_service`: where they are asked for while nothing else waits, on threads
of the core otherwise.

| Which query | Where it runs | Why |
|---|---|---|
| a short run (`INLINE_QUERY_NS`), the loop has nothing else to do | event loop | a hand-off takes longer |
| another short run | thread of the core | the loop reads on; no lock of the interpreter is needed |
| a short run behind many (`_Pool._help`) | event loop | the threads will not come to it soon |
| a short run where `QUERY_QUEUE_LENGTH` are under way | event loop | the queue has an end |
| a long run | thread of the core, after short ones; idle ones take parts of it | short ones do not wait for it |
| a long run where `QUERY_QUEUE_LENGTH` are under way | general way | it refuses what is too much |
| no plan, or a run without an answer | general way | it answers everything, with errors too |
| the general way, short (`INLINE_QUERY_NS`) | event loop | as above |
| the general way otherwise | `WorkerPool`; one more thread for short ones | its steps are Python |

What goes by a route (`core/http/text_route.hpp`) runs on the thread that has read the socket
(`core/http/watched_sockets.cpp`), where it takes little time; else, and where the event loop has read it, it is placed
as runs are. The thread writes to the socket as well.

    start → PlanPool.submit → … → the loop's selector → _Pool.take → reply

    http.routed_requests → TextRoutes.begin → PlanPool.add → … → _Pool.take → the connection, which goes on

`start` and `resize` are called by any thread; runs on threads of the core are answered on the event loop that asked.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.base.asyncio_internals import has_more_to_do, running_loop
from paperwasp.container.search.merge import GRACE_SECONDS
from paperwasp.core import _core
from paperwasp.search.plan.runs import PlannedRoute, ReadyRun
from paperwasp.search.text_query import TextAnswer

_LOG: Final = logging.getLogger("paperwasp.search")
_GRACE_NS: Final = int(GRACE_SECONDS * 1e9)
THREAD_NS: Final = 200_000
"""The least work for each thread that shares a run: to begin and to end with another takes a tenth of it."""

Reply = Callable[[TextAnswer | None], None]


class PlanRuns:
    """Decides where the runs of one content cluster run, and gives their answers back."""

    def __init__(self, threads: int, reading: threading.Lock) -> None:
        """`reading` is held while hits are read from the node; where it is taken, they are found the general way."""
        self._threads, self._most_of_run = threads, 0
        self._reading = reading
        self._pool: _Pool | None = None
        self._lock = threading.Lock()
        self._is_closed = False
        self.answered = 0
        """Queries that were answered by a plan: a figure, which threads that answer at once may count too low."""

    @property
    def uses_threads(self) -> bool:
        """Whether a run has needed a thread of the core yet."""
        return self._pool is not None

    def start(self, ready: ReadyRun, reply: Reply) -> None:
        """Has a plan run, and calls the reply with its answer, now or later; with None where it is to be answered the
        general way."""
        loop = running_loop()
        is_long = ready.run.expected_ns > limits.INLINE_QUERY_NS
        if loop is not None and (is_long or self._waits(loop)) and self._submit(ready, reply, loop):
            return
        if is_long and loop is not None:
            reply(None)
            return
        ready.run.run()
        reply(self.answer(ready))

    def threads_for_routes(self) -> _Pool | None:
        """The threads, for requests that come on this event loop; None: there are none for it."""
        loop = asyncio.get_running_loop()
        pool = self._pool
        return pool if pool is not None and pool.loop is loop else self._open(loop)

    def answer(self, ready: ReadyRun) -> TextAnswer | None:
        """The answer of a run; None: it is to be found the general way."""
        if not self._reading.acquire(blocking=False):
            return None
        try:
            answer = ready.answer()
        except Exception:
            _LOG.exception("A compiled plan failed")
            return None
        finally:
            self._reading.release()
        self.answered += answer is not None
        return answer

    def _give(self, ready: ReadyRun, reply: Reply) -> None:
        """Give all answers, also those behind one that fails."""
        try:
            reply(self.answer(ready))
        except Exception:
            _LOG.exception("The answer of a compiled plan was not taken")

    def resize(self, threads: int, most_of_run: int = 0) -> None:
        """Has so many threads from now on, of which this number may share one run; 0: all."""
        with self._lock:
            if (threads, most_of_run) != (self._threads, self._most_of_run):
                self._threads, self._most_of_run = threads, most_of_run
                self._retire()

    def close(self) -> None:
        """Ends the threads, once what waits has run. Whoever asks afterwards has it run where it is."""
        with self._lock:
            self._is_closed = True
            self._retire()

    def _retire(self) -> None:
        pool, self._pool = self._pool, None
        _core.forget_routes()
        if pool is not None and not pool.loop.is_closed():
            pool.loop.call_soon_threadsafe(pool.end)

    def _waits(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether the loop has something else to do, or runs are under way."""
        if has_more_to_do(loop):
            return True
        pool = self._pool
        return pool is not None and pool.threads.busy > 0

    def _submit(self, ready: ReadyRun, reply: Reply, loop: asyncio.AbstractEventLoop) -> bool:
        """False: nothing more can wait."""
        pool = self._pool
        if pool is None or pool.loop is not loop:
            pool = self._open(loop)
        if pool is None or pool.threads.busy >= limits.QUERY_QUEUE_LENGTH:
            return False
        pool.submit(ready, reply)
        return True

    def _open(self, loop: asyncio.AbstractEventLoop) -> _Pool | None:
        """The pool, for this loop. None: it is closed, or another loop has it."""
        with self._lock:
            if self._is_closed or (self._pool is not None and not self._pool.loop.is_closed()):
                return None
            self._pool = _Pool(loop, self._threads, self._most_of_run, self._give)
            return self._pool


class ClusterRoute(NamedTuple):
    """The route of requests, and what a content cluster does for them beside what the core does."""

    planned: PlannedRoute
    runs: PlanRuns
    pool: _Pool

    @property
    def route(self) -> _core.TextRoute:
        return self.planned.route

    @property
    def documents(self) -> int:
        """Those that are searched."""
        return self.planned.documents

    @property
    def note_waiting(self) -> Callable[[bool], None]:
        """Is called when a request waits for the threads; True: so much waits that the event loop is to help."""
        return self.pool.note_waiting

    def note_sent(self, count: int) -> None:
        """Counts requests that the core has answered."""
        self.runs.answered += count

    def answer(self, run: _core.PlanRun) -> TextAnswer | None:
        """The answer to a request that the core has not answered in full; None: it is to be found the general way."""
        return self.runs.answer(self.planned.ready(run))


class _Pool:
    """Threads of the core whose answers one event loop takes."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, threads: int, most_of_run: int, give: Callable[[ReadyRun, Reply], None]
    ) -> None:
        """`most_of_run`: threads that may share a run; 0: all. `give`: gives a run's answer to the one who asked."""
        self.loop = loop
        self._give = give
        self.threads: _core.PlanPool[tuple[ReadyRun, Reply]] = _core.PlanPool(
            threads, limits.INLINE_QUERY_NS, most_of_run, THREAD_NS
        )
        self._is_ending = False
        self._will_help = False
        self._watching: asyncio.TimerHandle | None = None
        loop.add_reader(self.threads.fileno(), self.take)

    def submit(self, ready: ReadyRun, reply: Reply) -> None:
        self.threads.submit(ready.run, (ready, reply))
        self.help_soon()

    def help_soon(self) -> None:
        """Something was added: if much waits when the loop has done what is next, it helps."""
        if not self._will_help:
            self._will_help = True
            self.loop.call_soon(self._help)

    def _help(self) -> None:
        """Runs one that waits for long, and comes back behind all that the loop has to do then."""
        self._will_help = self.threads.help()
        self.take()
        if self._will_help:
            self.loop.call_soon(self._help)

    def take(self) -> None:
        for done in self.threads.take():
            if isinstance(done, _core.RoutedText):
                self._give_back(done)
            else:
                ready, reply = done
                self._give(ready, reply)
        if self._is_ending and not self.threads.busy:
            self.loop.remove_reader(self.threads.fileno())

    def note_waiting(self, is_worth_help: bool) -> None:
        """A request with a route was added."""
        if is_worth_help:
            self.help_soon()
        if self._watching is None:
            self.watch()

    def watch(self) -> None:
        """Give back what still waits for a thread when its time is over."""
        if self._watching is None:
            self._watching = self.loop.call_later(GRACE_SECONDS, self._look)

    def _look(self) -> None:
        self._watching = None
        self.threads.give_up(time.monotonic_ns() - _GRACE_NS)
        self.take()
        if self.threads.busy:
            self.watch()

    @staticmethod
    def _give_back(routed: _core.RoutedText) -> None:
        try:
            routed.asker(routed)
        except Exception:
            _LOG.exception("The answer to a request with a route was not taken")

    def end(self) -> None:
        """Stops listening when all queued runs have finished. On the loop."""
        self._is_ending = True
        self.take()
