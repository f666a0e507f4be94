"""The one kind of pool for what waits or takes long: threads that are made when they are needed.

The end of the process does not wait for them, since they may wait for a service elsewhere, or never return: those of
`concurrent.futures.ThreadPoolExecutor` are all joined when the interpreter ends. Who needs its work done to the end
shuts its threads down.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
_Task = tuple[Future[Any], Callable[[], object]]
_Work = SimpleQueue[_Task | None]


class DaemonThreads(Executor):
    """A number of daemon threads, made when they are needed, and ended with this object. Any thread may submit."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._work: _Work = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._threads: list[_Worker] = []
        self._adding = threading.Lock()
        self._is_shut = False
        weakref.finalize(self, _end, self._work, self._threads).atexit = False

    def submit(self, fn: Callable[_Given, _Made], /, *given: _Given.args, **named: _Given.kwargs) -> Future[_Made]:
        """Have `fn` called on a thread. Errors: RuntimeError after `shutdown`."""
        future: Future[_Made] = Future()
        with self._adding:
            if self._is_shut:
                raise RuntimeError("the threads were shut down")
            self._work.put((future, partial(fn, *given, **named)))
            if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
                self._threads.append(_Worker(f"{self._name}_{len(self._threads)}", self._work, self._idle))
                self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more work, and ends the threads behind what was submitted. `cancel_futures`: what has not begun is
        not done."""
        with self._adding:
            if cancel_futures:
                _cancel(self._work)
            if not self._is_shut:
                self._is_shut = True
                _end(self._work, self._threads)
        if wait:
            for thread in self._threads:
                thread.join()


def is_any_busy() -> bool:
    """Whether one of these threads is at work."""
    return any(thread.is_busy for thread in threading.enumerate() if isinstance(thread, _Worker))


class _Worker(threading.Thread):
    """One of the threads. It holds the queue, and not the object that is submitted to."""

    def __init__(self, name: str, work: _Work, idle: threading.Semaphore) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._has_idle = idle
        self.is_busy = True

    def run(self) -> None:
        """Works until the queue's end."""
        while (task := self._work.get()) is not None:
            self.is_busy = True
            _do(*task)
            del task  # what it holds is not kept while there is nothing to do
            self.is_busy = False
            self._has_idle.release()


def _do(future: Future[Any], work: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        made = work()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(made)


def _cancel(work: _Work) -> None:
    """Cancels what waits; the signs for threads to end stay."""
    ends = 0
    try:
        while True:
            task = work.get_nowait()
            if task is None:
                ends += 1
            else:
                task[0].cancel()
    except Empty:
        for _ in range(ends):
            work.put(None)


def _end(work: _Work, threads: list[_Worker]) -> None:
    for _ in threads:
        work.put(None)
