"""A few threads that work off a bounded queue: where queries run.

What has a deadline is answered with Timeout when it is over, also while it waits: where no thread is free, one more
thread looks at the deadlines of what waits. A task is done by who claims it first, a worker or that thread.

Short work does not wait for long work: where no thread is free, one more thread does short work, and nothing else.

All threads begin with the pool: starting one waits until it has run, which takes long just when others compute.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Lock, Thread
from typing import Any, Final

from paperwasp import limits
from paperwasp.base.threads import TaskQueue, ThreadPool
from paperwasp.errors import Overload, PaperwaspError, Timeout, without_frames

_LOG: Final = logging.getLogger("paperwasp.service")

Work = Callable[[Any], object]
"""From a message to its answer; raises to answer with an error."""
_Reply = Callable[[object], None]
_Task = tuple[Work, Any, _Reply]


class _Deadlines:
    """Answers what waits for longer than it may."""

    def __init__(self, name: str) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[int, int, list[_Reply]]] = []
        """A heap of (deadline, number, the reply in a list that is empty once it is claimed)."""
        self._numbers = count()
        self._is_closed = False
        self.expired = 0
        """Tasks that were answered here and are still in the queue."""
        self._thread = Thread(target=self._watch, name=f"{name}-deadlines", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, deadline_ns: int, claim: list[_Reply]) -> None:
        with self._changed:
            heappush(self._waiting, (deadline_ns, next(self._numbers), claim))
            if self._waiting[0][2] is claim:
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    def withdraw(self, claim: list[_Reply]) -> bool:
        """Claim a task that is in the queue, and return whether nobody else has."""
        with self._changed:
            try:
                claim.pop()
            except IndexError:
                return False
            self.expired += 1
            return True

    def skip(self) -> None:
        """A worker has met a task that was answered here."""
        with self._changed:
            self.expired -= 1

    def _watch(self) -> None:
        while True:
            with self._changed:
                while self._waiting and not self._waiting[0][2]:
                    heappop(self._waiting)
                if self._is_closed:
                    return
                left_ns = self._waiting[0][0] - time.monotonic_ns() if self._waiting else None
                if left_ns is None or left_ns > 0:
                    self._changed.wait(None if left_ns is None else left_ns / 1e9)
                    continue
                _, _, claim = heappop(self._waiting)
                try:
                    reply = claim.pop()
                except IndexError:  # a worker was first
                    continue
                self.expired += 1
            _tell(reply, Timeout("no time was left to search: it was used up in the queue"))
            del reply


class WorkerPool(ThreadPool):
    """Runs work on `threads` threads; refuses with Overload what would wait behind `queue_length` others."""

    def __init__(
        self,
        name: str,
        threads: int = limits.QUERY_THREADS,
        queue_length: int = limits.QUERY_QUEUE_LENGTH,
        *,
        with_short: bool = True,
    ) -> None:
        """`with_short`: whether there is one more thread for short work. Errors: RuntimeError as of `resize`."""
        self._short = WorkerPool(f"{name}-short", 1, queue_length, with_short=False) if with_short else None
        super().__init__(name, 0, helps=self._short)
        self._deadlines = _Deadlines(name)
        self._queue_length = queue_length
        try:
            self._deadlines.start()
            self.resize(threads)
        except RuntimeError:
            self.shutdown()
            raise

    def resize(self, threads: int) -> None:
        """Have this number of threads. Those that are too many end behind what waits now. By one thread at a time.

        Errors: RuntimeError where the system has no room for so many; then there are as many as it has room for.
        """
        for _ in range(threads, self.size):
            self._queue.waiting.put(None)
        self._threads[:] = [thread for thread in self._threads if thread.is_alive()]
        for _ in range(self.size, threads):
            self._add_thread()
            self.size += 1
        self.size = threads

    def offer(self, work: Callable[[], None]) -> bool:
        """Have a thread that is idle do this, and return whether there is one. What work raises is lost."""
        with self._adding:
            if self._is_shut or len(self._queue.undone) >= self.size:
                return False
            self._queue.put(partial(_do_offered, work))
        return True

    def is_wanted(self) -> bool:
        """Return whether work waits that no thread is free for."""
        return len(self._queue.undone) > self.size

    def answer(self, work: Work, message: object, reply: _Reply, deadline_ns: int = 0) -> None:
        """Answer a message through `reply`, from a thread of the pool.

        The answer is Timeout at the deadline (on the monotonic clock; 0: none) if the work has not begun by then.
        Errors: Overload, also when the pool is shut down.
        """
        queue = self._queue
        if queue.waiting.qsize() - self._deadlines.expired >= self._queue_length:
            raise Overload(f"{self._queue_length} queries are waiting already (QUERY_QUEUE_LENGTH in paperwasp.limits)")
        claim = [reply]
        queue.put(partial(_answer, self._deadlines, work, message, claim))
        if self._is_shut and self._deadlines.withdraw(
            claim
        ):  # looked at last: what ends the threads may be ahead of it
            raise Overload("the service is stopping")
        if deadline_ns > 0 and len(queue.undone) >= self.size:  # it may have to wait
            self._deadlines.add(deadline_ns, claim)

    def answer_short(self, work: Work, message: object, reply: _Reply, deadline_ns: int = 0) -> None:
        """As `answer`, for work that takes little time: it waits for other short work alone. Errors: Overload."""
        pool = self
        if len(self._queue.undone) >= self.size:  # it might wait for long work
            pool = self._short or self
        pool.answer(work, message, reply, deadline_ns)

    def waiting(self) -> int:
        """Return how many tasks wait for a thread."""
        short = self._short
        return max(0, self._queue.waiting.qsize() - self._deadlines.expired) + (0 if short is None else short.waiting())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work, and end the threads behind what waits."""
        if self._short is not None:
            self._short.shutdown(wait, cancel_futures=cancel_futures)
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._deadlines.close()


def _answer(deadlines: _Deadlines, work: Work, message: Any, claim: list[_Reply], queue: TaskQueue) -> None:
    """Reply to a message, unless that was done at its deadline."""
    try:
        reply = claim.pop()
    except IndexError:
        queue.undone.pop()
        deadlines.skip()
        return
    try:
        answer = work(message)
    except PaperwaspError as error:
        answer = without_frames(error)
    except Exception as error:
        answer = error
    queue.undone.pop()
    _tell(reply, answer)
    del answer  # of which this frame would be a part, where it is an error


def _tell(reply: _Reply, answer: object) -> None:
    """Reply. What that raises is logged: the thread goes on for the others."""
    try:
        reply(answer)
    except Exception:
        _LOG.exception("An answer could not be handed over")


def _do_offered(work: Callable[[], None], queue: TaskQueue) -> None:
    with suppress(Exception):
        work()
    queue.undone.pop()


class PoolShare:
    """Work that may have a few of a pool's threads, however much of it there is. The rest of it waits here."""

    def __init__(self, pool: WorkerPool, at_once: int, queue_length: int) -> None:
        self._pool = pool
        self._at_once = at_once
        self._queue_length = queue_length
        self._running = 0
        self._waiting: deque[_Task] = deque()
        self._lock = Lock()

    def answer(self, work: Work, message: object, reply: Callable[[object], None]) -> None:
        """As WorkerPool's. Errors: Overload where `queue_length` wait already."""
        with self._lock:
            if self._running >= self._at_once:
                if len(self._waiting) >= self._queue_length:
                    raise Overload(f"{self._queue_length} visits are waiting already")
                self._waiting.append((work, message, reply))
                return
            self._running += 1
        self._start((work, message, reply))

    def _start(self, task: _Task | None) -> None:
        """Hands the task to the pool, which lets the next one begin when it is done."""
        while task is not None:
            work, message, reply = task
            try:
                self._pool.answer(work, message, self._then_next(reply))
            except Overload as error:
                _tell(reply, error)
                task = self._next()
            else:
                return

    def _then_next(self, reply: Callable[[object], None]) -> Callable[[object], None]:
        def done(answer: object) -> None:
            _tell(reply, answer)
            self._start(self._next())

        return done

    def _next(self) -> _Task | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None
