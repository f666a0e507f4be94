"""A pool of threads: daemon threads that work off one queue, made when they are needed.

The end of the process does not wait for them, since they may wait for a service elsewhere, or never return: those of
`concurrent.futures.ThreadPoolExecutor` are all joined when the interpreter ends. Whoever needs its work done to the end
shuts its pool down.

`coordination.worker_pool.WorkerPool` adds a bound for what waits, deadlines, and a thread for short work.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class TaskQueue:
    """The tasks of a pool. Its threads hold this and not the pool, so that they can end with it."""

    __slots__ = ("undone", "waiting")

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Task | None] = SimpleQueue()
        """Tasks that no thread has taken; None ends the thread that takes it."""
        self.undone: deque[None] = deque()
        """One for each task that waits or runs: adding and taking one needs no lock."""

    def put(self, task: Task) -> None:
        """Have a thread do the task."""
        self.undone.append(None)
        self.waiting.put(task)


Task = Callable[[TaskQueue], None]
"""Does its work, tells the result, and takes one from `undone` of its queue. Raises nothing."""


class ThreadPool(Executor):
    """At most `size` daemon threads, which end with this object. Any thread may submit."""

    def __init__(self, name: str, size: int, *, helps: ThreadPool | None = None) -> None:
        """`helps`: a pool from which each thread takes a task that waits, behind each of its own."""
        self.name = name
        self.size = size
        self._queue = TaskQueue()
        self._helped = helps._queue if helps is not None else None
        self._threads: list[_Worker] = []
        self._adding = threading.Lock()
        self._is_shut = False
        weakref.finalize(self, _end, self._queue, self._threads).atexit = False

    def submit(self, fn: Callable[_Given, _Made], /, *given: _Given.args, **named: _Given.kwargs) -> Future[_Made]:
        """Have `fn` called on a thread. Errors: RuntimeError after `shutdown`, and where no thread can be made."""
        future: Future[_Made] = Future()
        with self._adding:
            if self._is_shut:
                raise RuntimeError("the threads were shut down")
            if len(self._threads) < min(len(self._queue.undone) + 1, self.size):
                try:
                    self._add_thread()
                except RuntimeError:
                    if not self._threads:  # those that there are do it in their time
                        raise
            self._queue.put(_Call(future, partial(fn, *given, **named)))
        return future

    def undone(self) -> int:
        """Return how many tasks wait or run; one that is cancelled waits until a thread has met it."""
        return len(self._queue.undone)

    def _add_thread(self) -> None:
        """Errors: RuntimeError where the system has no room for one more."""
        thread = _Worker(f"{self.name}-{len(self._threads)}", self._queue, self._helped)
        thread.start()
        self._threads.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work, and end the threads behind what was submitted.

        `cancel_futures`: calls that have not begun are not made.
        """
        with self._adding:
            if cancel_futures:
                _cancel_waiting(self._queue)
            if not self._is_shut:
                self._is_shut = True
                _end(self._queue, self._threads)
        if wait:
            for thread in self._threads:
                thread.join()


def is_any_busy() -> bool:
    """Return whether a pool of this process has work that is not done."""
    return any(thread.queue.undone for thread in threading.enumerate() if isinstance(thread, _Worker))


class _Worker(threading.Thread):
    """A thread of a pool."""

    def __init__(self, name: str, queue: TaskQueue, helped: TaskQueue | None) -> None:
        super().__init__(name=name, daemon=True)
        self.queue = queue
        self._helped = helped

    def run(self) -> None:
        """Do what is in the queue, until its end."""
        queue, helped = self.queue, self._helped
        while (task := queue.waiting.get()) is not None:
            task(queue)
            del task  # what it holds is not kept while there is nothing to do
            if helped is not None:
                self._help(helped)

    def _help(self, helped: TaskQueue) -> None:
        """Do one task that waits there; all of them while nothing waits here."""
        while True:
            try:
                task = helped.waiting.get_nowait()
            except Empty:
                return
            if task is None:  # which ends a thread of the other pool
                helped.waiting.put(None)
                return
            self.queue.undone.append(None)
            task(helped)
            self.queue.undone.pop()
            del task
            if not self.queue.waiting.empty():
                return


class _Call:
    """A task whose result goes to a future."""

    __slots__ = ("_call", "future")

    def __init__(self, future: Future[Any], call: Callable[[], object]) -> None:
        self.future = future
        self._call = call

    def __call__(self, queue: TaskQueue) -> None:
        if not self.future.set_running_or_notify_cancel():
            queue.undone.pop()
            return
        try:
            made = self._call()
        except BaseException as error:
            queue.undone.pop()  # before who waits knows: then there is room for one more
            self.future.set_exception(error)
        else:
            queue.undone.pop()
            self.future.set_result(made)


def _cancel_waiting(queue: TaskQueue) -> None:
    """Cancel the calls that wait. Other tasks, and the signs for threads to end, stay."""
    kept: list[Task | None] = []
    try:
        while True:
            task = queue.waiting.get_nowait()
            if isinstance(task, _Call):
                task.future.cancel()
                queue.undone.pop()
            else:
                kept.append(task)
    except Empty:
        for task in kept:
            queue.waiting.put(task)


def _end(queue: TaskQueue, threads: list[_Worker]) -> None:
    for _ in threads:
        queue.waiting.put(None)
