"""An event loop on a thread of its own, which other threads may use while it waits.

To hand a request to a loop's thread and to wait for its answer costs two wake-ups of threads, which is more than most
queries take. So the loop lends itself: while it waits for something to happen, a thread that has a request runs the
handler itself, up to its first wait. Most queries are answered by then. What is left of the others runs on the loop's
own thread.

One lock says whose turn it is. The loop's thread has it, but while it waits in its selector.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import os
import selectors
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, TypeVarTuple

from paperwasp.base.asyncio_internals import running_loop, set_running_loop
from paperwasp.errors import Conflict
from paperwasp.http.eager import run_eagerly
from paperwasp.http.messages import Answer, Response, StreamedResponse
from paperwasp.http.pending import Begun, PendingAnswer, settled

_Made = TypeVar("_Made")
_Given = TypeVarTuple("_Given")
Given = Answer | Exception
"""An answer, or why there is none."""
Take = Callable[[Given], None]
_FAIR_SECONDS: Final = 20e-6
_STOP_SECONDS: Final = 60.0
_ADVICE: Final = "give that one a port and ask it over HTTP, or start processes by spawn"


class Closed(Conflict):
    """The service has ended."""


class _Selector(selectors.DefaultSelector):
    """A selector that gives up the turn while it waits, for a moment also where others wait for their turn."""

    def __init__(self, turn: _Turn) -> None:
        super().__init__()
        self._turn = turn

    def select(self, timeout: float | None = None) -> Any:
        turn = self._turn
        turn.lock.release()
        try:
            if turn.waiting:  # the lock alone does not let those who wait in while this thread is busy
                time.sleep(_FAIR_SECONDS)
            return super().select(timeout)
        finally:
            turn.lock.acquire()


class _Turn:
    """The lock, and how many other threads wait for it."""

    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.waiting = 0


class _Loop(asyncio.SelectorEventLoop):
    """Notes whether something was left for the loop's own thread."""

    has_more = False

    def call_soon(
        self, callback: Callable[[*_Given], object], *args: *_Given, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        self.has_more = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Given], object],
        *args: *_Given,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self.has_more = True
        return super().call_at(when, callback, *args, context=context)


class LentLoop:
    """The loop and its thread, from when it is made until `close`. Any thread may call, but for the loop's own."""

    def __init__(self, name: str = "paperwasp") -> None:
        """Errors: Closed in a fork of a process that has had a loop."""
        _check_process()
        self._turn = _Turn()
        self._loop = _Loop(_Selector(self._turn))
        self._is_closed = False
        self._is_ending = False
        self._at_end: list[Callable[[], None]] = []
        self.is_copy = False
        """Whether this process is a fork of the one that has the thread."""
        _LOOPS.add(self)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with self._turn.lock:
            try:
                self._loop.run_forever()
            finally:
                self._loop.close()

    def _lend(self, work: Callable[[_Loop], _Made], *, at_end: bool = False) -> _Made:
        """Runs `work` on this thread as if it were the loop's own. `at_end`: also where the service is ending. Errors:
        its own; Closed.

        The lock is taken by `with`, in one step that no signal handler can interrupt: Ctrl-C, wherever it comes, leaves
        it to the others.
        """
        turn, loop = self._turn, self._loop
        if self.is_copy:  # the lock may be held for ever
            self.refuse_copy()
        turn.waiting += 1  # a count that is wrong by a race, or by Ctrl-C, costs a moment, and nothing else
        with turn.lock:
            turn.waiting -= 1
            if self._is_closed or (self._is_ending and not at_end):
                raise Closed("The service has ended")
            outer = running_loop()
            try:
                loop.has_more = False
                set_running_loop(loop)
                return work(loop)
            finally:
                set_running_loop(outer)
                if loop.has_more and not self._is_closed:
                    loop.call_soon_threadsafe(_do_nothing)

    def refuse_copy(self) -> None:
        """Errors: Closed in a fork of the process, which has neither the thread nor the right to the files."""
        if self.is_copy:
            raise Closed(f"This process is a fork of the one that has the service: {_ADVICE}")

    def answer(self, begin: Callable[[], Begun]) -> Answer:
        """The answer of a handler, for which this thread waits. Errors: those of the handler; Closed."""
        box = Box()

        def begin_here(loop: _Loop) -> None:
            start(loop, begin, box.give)
            box.prepare()

        self._lend(begin_here)
        return box.wait()

    def start_all(self, begins: list[tuple[Callable[[], Begun], Take]]) -> None:
        """Begins to answer many requests, in their order. Each `take` is called on the loop, with the answer or an
        error; it must not raise. Errors: Closed, with nothing begun."""

        def begin_here(loop: _Loop) -> None:
            for begin, take in begins:
                start(loop, begin, take)

        self._lend(begin_here)

    def call(self, work: Callable[[], None]) -> None:
        """Runs on this thread what belongs on the loop, and does not wait there. Errors: its own; Closed."""
        self._lend(lambda _: work())

    async def answer_later(self, begin: Callable[[], Begun]) -> Answer:
        """As `answer`, for a coroutine of another event loop."""
        waiting = asyncio.get_running_loop()
        box = Box()

        def begin_here(loop: _Loop) -> asyncio.Future[Answer] | None:
            start(loop, begin, box.give)
            if box.given is not None:
                return None
            future: asyncio.Future[Answer] = waiting.create_future()
            box.give_to(lambda given: _settle_there(waiting, future, given))
            return future

        future = self._lend(begin_here)
        return box.taken() if future is None else await future

    def run(self, make_work: Callable[[], Coroutine[Any, Any, _Made]]) -> _Made:
        """Runs a coroutine on the loop's own thread, and waits for it, also where the service is ending. Errors: those
        of the coroutine; Closed."""
        work = self._lend(lambda _: make_work(), at_end=True)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def begin_end(self) -> None:
        """From now on only `run` is taken: what would begin now might never be answered."""
        self._is_ending = True

    def call_at_end(self, call: Callable[[], None]) -> None:
        """Has `call` called when the thread has ended, and with it all answers that were to come."""
        self._at_end.append(call)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is answered any more."""
        return self._is_closed

    def close(self) -> None:
        """Ends the thread. Calls that come later raise Closed; those that wait now raise it too. A fork has none."""
        if self.is_copy:
            return
        with self._turn.lock:
            if self._is_closed:
                return
            self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        for call in self._at_end:
            call()


_LOOPS: Final[weakref.WeakSet[LentLoop]] = weakref.WeakSet()


_of_process: int | None = None
"""The process that made the first loop; None: there has been none."""


def _check_process() -> None:
    """Refuses a fork, where writing to disk would never end: it waits for threads of RocksDB that fork leaves out."""
    global _of_process
    if _of_process not in (None, os.getpid()):
        raise Closed(f"This process is a fork of one that has had a service, and can have none: {_ADVICE}")
    _of_process = os.getpid()


def _note_fork() -> None:
    """Runs in a new process that is a copy of this one."""
    for loop in list(_LOOPS):
        loop.is_copy = True
    if _of_process is not None:
        _skip_exit_handlers()


def _skip_exit_handlers() -> None:
    """Has this process end without what its parent would do at its end: RocksDB joins threads that fork leaves out,
    which is a segmentation fault. Only glibc has a way."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)


os.register_at_fork(after_in_child=_note_fork)


def start(loop: asyncio.AbstractEventLoop, begin: Callable[[], Begun], take: Take) -> None:
    """Begins to answer on the loop; `take` gets the answer, now or later."""
    try:
        begun = begin()
    except Exception as error:
        take(error)
        return
    if isinstance(begun, PendingAnswer):
        begun.hand_to(take)
    elif isinstance(begun, Response | StreamedResponse):
        take(begun)
    else:
        run_eagerly(loop, _give_settled(begun, take))


async def _give_settled(begun: Begun, take: Take) -> None:
    try:
        answer = await settled(begun)
    except Exception as error:
        take(error)
    except asyncio.CancelledError:
        take(Closed("The service has ended"))
        raise
    else:
        take(answer)


class Box:
    """The answer to a request, for one thread that waits. All but `wait` and `taken` runs while the loop is held."""

    __slots__ = ("_lock", "_take", "given")

    def __init__(self) -> None:
        self.given: Given | None = None
        self._lock: threading.Lock | None = None
        self._take: Take | None = None

    def give(self, given: Given) -> None:
        self.given = given
        if self._lock is not None:
            self._lock.release()
        if self._take is not None:
            self._take(given)

    def give_to(self, take: Take) -> None:
        self._take = take

    def prepare(self) -> None:
        """Has something to wait for, where the answer is not there."""
        if self.given is None:
            self._lock = threading.Lock()
            self._lock.acquire()

    def wait(self) -> Answer:
        """Errors: what was given instead of an answer."""
        if self._lock is not None:
            self._lock.acquire()
        return self.taken()

    def taken(self) -> Answer:
        given = self.given
        assert given is not None
        if isinstance(given, Exception):
            raise given
        return given


def _settle_there(loop: asyncio.AbstractEventLoop, future: asyncio.Future[Answer], given: Given) -> None:
    def settle() -> None:
        if future.done():
            return
        if isinstance(given, Exception):
            future.set_exception(given)
        else:
            future.set_result(given)

    try:
        loop.call_soon_threadsafe(settle)
    except RuntimeError:
        return  # that loop is closed: nobody waits


def _do_nothing() -> None:
    pass
