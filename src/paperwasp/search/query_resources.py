"""The resources of one query on a content node: time, memory, and threads that help with large work.

With a soft timeout, matching and ranking end when a share of the time is used up, and what was found is the answer; the
rest is for summaries, and for the way back. Without one there is an answer only if all was searched in time.

Kernels look at the machine's clock themselves, and end in the midst of their work: those that match and rank when
matching must end, those that write hits when nobody waits for the answer any more.

Vespa: https://docs.vespa.ai/en/performance/graceful-degradation.html
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition
from types import TracebackType
from typing import Final, Protocol

from paperwasp.base.env import Environment
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at, work_ends_at
from paperwasp.errors import Timeout
from paperwasp.search.query import Query

HARD_FACTOR: Final = 0.95
"""The share of the time that is used where there is no soft timeout."""


class QueryClock:
    """Starts when a query is taken up. Raises Timeout if its deadline has passed by then.

    As a context it bounds the kernels that its thread calls, and the memory that they take, and takes both bounds away
    again.
    """

    def __init__(self, query: Query, env: Environment) -> None:
        self._env = env
        self._end_ns = 0
        if query.deadline.at_ns > 0:
            now_ns = env.monotonic_ns()
            left_ns = query.deadline.at_ns - now_ns
            if left_ns <= 0:
                raise Timeout("no time was left to search")
            self._end_ns = now_ns + int(
                left_ns * (query.deadline.soft_share if query.deadline.is_soft else HARD_FACTOR)
            )
        # Where a test says what time it is, kernels would read another clock.
        self._bounds_kernels = query.deadline.at_ns > 0 and env.monotonic_ns is time.monotonic_ns
        self._deadline_ns = query.deadline.at_ns
        self._memory_bytes = query.memory_bytes

    def __enter__(self) -> QueryClock:
        budget.most_bytes, budget.taken_bytes = self._memory_bytes, 0  # no call: every query does it
        self.begin_matching()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        budget.most_bytes = budget.taken_bytes = 0
        if self._bounds_kernels:
            end_work_at(0)

    def begin_matching(self) -> None:
        """From now on kernels work for as long as matching may."""
        if self._bounds_kernels:
            end_work_at(self._end_ns)

    def begin_writing(self) -> None:
        """From now on kernels work for as long as somebody waits for the answer."""
        if self._bounds_kernels:
            end_work_at(self._deadline_ns)

    @property
    def now_seconds(self) -> float:
        return self._env.now_seconds()

    def now_ns(self) -> int:
        """The monotonic time."""
        return self._env.monotonic_ns()

    def is_over(self) -> bool:
        return self._end_ns > 0 and self._env.monotonic_ns() > self._end_ns

    def check(self) -> None:
        """Raises OutOfTime if the time is over."""
        if self._end_ns > 0 and self._env.monotonic_ns() > self._end_ns:
            raise OutOfTime


# Large work of one query that threads help with which have nothing to do.


class Pool(Protocol):
    """The threads that answer queries: a `coordination.worker_pool.WorkerPool`."""

    @property
    def size(self) -> int:
        """How many there are."""

    def offer(self, work: Callable[[], None]) -> bool:
        """Have a thread that is idle do this, and return whether there is one."""

    def is_wanted(self) -> bool:
        """Return whether work waits that no thread is free for."""


class Helpers:
    """The threads of a pool that one query may have: its own, and others where they are idle.

    Any thread may ask for help; `configure` is called by one at a time.
    """

    def __init__(self, pool: Pool | None = None, most: int = 0) -> None:
        """`most`: the threads of one query; 0: as many as the pool has. Without a pool nobody helps."""
        self._pool = pool
        self._most = most

    def configure(self, most: int) -> None:
        """Have queries from now on take this number of threads at most; 0: as many as the pool has."""
        self._most = most

    @property
    def most(self) -> int:
        """How many threads one query may have, its own among them."""
        if self._pool is None:
            return 1
        return min(self._pool.size, self._most) if self._most else self._pool.size

    def are_wanted(self) -> bool:
        """Return whether other work waits for the threads that help."""
        return self._pool is not None and self._pool.is_wanted()

    def work(self, threads: int, work: Callable[[bool], None]) -> None:
        """Run `work` on this thread, and on up to `threads - 1` others that are idle now; return when all have ended.

        `work` is called with whether it helps. It takes what is left to do from what its callers share, and ends when
        there is nothing left. All have the time of this thread, and each an equal share of the memory that it has left.
        Errors: what `work` raises on this thread; what it raises elsewhere is lost.
        """
        crew = _Crew(work, threads)
        pool, asked = self._pool, 1
        while asked < threads and pool is not None and pool.offer(crew.help):
            asked += 1
        if asked == 1:
            work(False)
            return
        most_bytes = budget.most_bytes
        try:
            budget.most_bytes = most_bytes and budget.taken_bytes + crew.share_bytes
            work(False)
        finally:
            budget.most_bytes = most_bytes
            crew.close()


class _Crew:
    """The threads that work on the same. Made by the one that is helped."""

    def __init__(self, work: Callable[[bool], None], threads: int) -> None:
        self._work = work
        self._ends_at = work_ends_at()
        self.share_bytes = max(1, (budget.most_bytes - budget.taken_bytes) // threads) if budget.most_bytes else 0
        """0: there is no bound."""
        self._changed = Condition()
        self._helping = 0
        self._is_closed = False

    def help(self) -> None:
        """Works until nothing is left. Called late, when all is done, it does nothing."""
        with self._changed:
            if self._is_closed:
                return
            self._helping += 1
        budget.begin(self.share_bytes)
        end_work_at(self._ends_at)
        try:
            self._work(True)
        finally:
            budget.begin(0)
            end_work_at(0)
            with self._changed:
                self._helping -= 1
                self._changed.notify()

    def close(self) -> None:
        """Return when nobody helps any more; nobody will."""
        with self._changed:
            self._is_closed = True
            self._changed.wait_for(lambda: not self._helping)
