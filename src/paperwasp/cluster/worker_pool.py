"""A few threads that work off a bounded queue: where queries run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from paperwasp import limits
from paperwasp.errors import Overload

Work = Callable[[Any], object]
"""From a message to its answer; raises to answer with an error."""
_Task = tuple[Work, Any, Callable[[object], None]]


class WorkerPool:
    """Runs work on `threads` threads; refuses with Overload what would wait behind `queue_length` others."""

    def __init__(
        self, name: str, threads: int = limits.QUERY_THREADS, queue_length: int = limits.QUERY_QUEUE_LENGTH
    ) -> None:
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._queue_length = queue_length
        self._closed = False
        self._threads = [Thread(target=self._run, name=f"{name}-{number}", daemon=True) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work, message: object, reply: Callable[[object], None]) -> None:
        """Answers through `reply`, from a thread of the pool. Errors: Overload, also when the pool is closed."""
        if self._closed:
            raise Overload("the service is stopping")
        if self._queue.qsize() >= self._queue_length:
            raise Overload(f"{self._queue_length} queries are waiting already")
        self._queue.put((work, message, reply))

    def close(self) -> None:
        """Works off what is queued, then ends the threads."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            work, message, reply = task
            try:
                answer = work(message)
            except Exception as error:
                answer = error
            reply(answer)
            # Nothing of the last query stays alive while the thread waits for the next.
            del task, work, message, reply, answer


class PoolShare:
    """Work that may have a few of a pool's threads, however much of it there is. The rest of it waits here."""

    def __init__(self, pool: WorkerPool, at_once: int, queue_length: int) -> None:
        self._pool = pool
        self._at_once = at_once
        self._queue_length = queue_length
        self._running = 0
        self._waiting: deque[_Task] = deque()
        self._lock = Lock()

    def submit(self, work: Work, message: object, reply: Callable[[object], None]) -> None:
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
                self._pool.submit(work, message, self._then_next(reply))
            except Overload as error:
                reply(error)
                task = self._next()
            else:
                return

    def _then_next(self, reply: Callable[[object], None]) -> Callable[[object], None]:
        def done(answer: object) -> None:
            reply(answer)
            self._start(self._next())

        return done

    def _next(self) -> _Task | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._running -= 1
            return None
