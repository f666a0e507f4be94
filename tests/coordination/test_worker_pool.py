"""The worker pool and shares of it: how much runs at a time, what waits, what is refused, and how it ends."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from paperwasp.base.threads import TaskQueue
from paperwasp.coordination.worker_pool import PoolShare, WorkerPool
from paperwasp.errors import Overload, PaperwaspError, Timeout
from tests.base.test_threads import refuse_threads

WAIT_SECONDS = 30


class Gate:
    """Work that waits to be let through, and counts how many are in it at a time."""

    def __init__(self) -> None:
        self.entered: SimpleQueue[object] = SimpleQueue()
        self.through = threading.Semaphore(0)
        self.inside = 0
        self.most_inside = 0
        self._lock = threading.Lock()

    def __call__(self, message: object) -> object:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        self.entered.put(message)
        assert self.through.acquire(timeout=WAIT_SECONDS)
        with self._lock:
            self.inside -= 1
        if isinstance(message, PaperwaspError):
            raise message
        return message


def replies() -> tuple[SimpleQueue[object], Callable[[object], None]]:
    queue: SimpleQueue[object] = SimpleQueue()
    return queue, queue.put


def test_a_share_runs_only_so_many_and_leaves_the_rest() -> None:
    pool, gate = WorkerPool("test", threads=2), Gate()
    share = PoolShare(pool, at_once=1, queue_length=3)
    answers, reply = replies()
    for number in range(4):
        share.answer(gate, number, reply)
    with pytest.raises(Overload):
        share.answer(gate, 4, reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == 0
    others, other_reply = replies()
    pool.answer(lambda message: message, "a query", other_reply)
    assert others.get(timeout=WAIT_SECONDS) == "a query", "the pool's other thread is free"
    for number in range(4):
        gate.through.release()
        assert answers.get(timeout=WAIT_SECONDS) == number
    share.answer(gate, 5, reply)
    gate.through.release()
    assert answers.get(timeout=WAIT_SECONDS) == 5
    assert gate.most_inside == 1
    pool.shutdown()


def test_an_error_lets_the_next_one_begin() -> None:
    pool, gate = WorkerPool("test", threads=2), Gate()
    share = PoolShare(pool, at_once=1, queue_length=3)
    answers, reply = replies()
    error = Overload("later")
    share.answer(gate, error, reply)
    share.answer(gate, 1, reply)
    gate.through.release(2)
    assert [answers.get(timeout=WAIT_SECONDS) for _ in range(2)] == [error, 1]
    pool.shutdown()


def test_what_waits_when_the_pool_is_closed_is_refused() -> None:
    pool, gate = WorkerPool("test", threads=1), Gate()
    share = PoolShare(pool, at_once=1, queue_length=9)
    answers, reply = replies()
    for number in range(4):
        share.answer(gate, number, reply)
    gate.entered.get(timeout=WAIT_SECONDS)
    pool.shutdown(wait=False)
    gate.through.release()
    pool.shutdown()
    found = [answers.get(timeout=WAIT_SECONDS) for _ in range(4)]
    assert found[0] == 0
    assert all(isinstance(answer, Overload) for answer in found[1:])


def test_a_full_pool_refuses_the_share_too() -> None:
    pool, gate = WorkerPool("test", threads=1, queue_length=1), Gate()
    share = PoolShare(pool, at_once=2, queue_length=9)
    answers, reply = replies()
    pool.answer(gate, 0, reply)
    gate.entered.get(timeout=WAIT_SECONDS)
    pool.answer(gate, 1, reply)
    share.answer(gate, 2, reply)
    assert isinstance(answers.get(timeout=WAIT_SECONDS), Overload)
    gate.through.release(2)
    assert [answers.get(timeout=WAIT_SECONDS) for _ in range(2)] == [0, 1]
    share.answer(gate, 3, reply)
    gate.through.release()
    assert answers.get(timeout=WAIT_SECONDS) == 3
    pool.shutdown()


def test_what_waits_is_answered_at_its_deadline() -> None:
    """While the one thread is busy: one whose time is over, one with time, one that has all the time there is."""
    pool, gate = WorkerPool("test", threads=1), Gate()
    answers, reply = replies()
    pool.answer(gate, "busy", reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == "busy"
    now_ns = time.monotonic_ns()
    pool.answer(gate, "timeless", reply)
    pool.answer(gate, "in time", reply, now_ns + 3600 * 10**9)
    pool.answer(gate, "late", reply, now_ns + 10**6)
    late = answers.get(timeout=WAIT_SECONDS)
    assert isinstance(late, Timeout)
    assert gate.entered.empty(), "the thread was busy all the while"
    for message in ("busy", "timeless", "in time"):
        gate.through.release()
        assert answers.get(timeout=WAIT_SECONDS) == message
    pool.shutdown()
    assert [gate.entered.get_nowait(), gate.entered.get_nowait()] == ["timeless", "in time"]
    assert gate.entered.empty(), "what was answered is not begun"


def test_what_was_answered_makes_room() -> None:
    pool, gate = WorkerPool("test", threads=1, queue_length=1), Gate()
    answers, reply = replies()
    pool.answer(gate, "busy", reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == "busy"
    pool.answer(gate, "late", reply, time.monotonic_ns() + 1)
    assert isinstance(answers.get(timeout=WAIT_SECONDS), Timeout)
    pool.answer(gate, "next", reply)
    with pytest.raises(Overload, match="1 queries are waiting already"):
        pool.answer(gate, "one more", reply)
    for message in ("busy", "next"):
        gate.through.release()
        assert answers.get(timeout=WAIT_SECONDS) == message
    pool.shutdown()


def test_short_work_does_not_wait_for_long_work() -> None:
    """While both threads are busy and more waits; one of its own does all of it, in order."""
    pool, gate = WorkerPool("test", threads=2), Gate()
    answers, reply = replies()
    for number in range(4):
        pool.answer(gate, number, reply)
    assert {gate.entered.get(timeout=WAIT_SECONDS) for _ in range(2)} == {0, 1}
    short, short_reply = replies()
    for number in range(10, 20):
        pool.answer_short(lambda message: message, number, short_reply)
    assert [short.get(timeout=WAIT_SECONDS) for _ in range(10)] == list(range(10, 20))
    assert gate.most_inside == 2 and answers.empty() and pool.waiting() == 2
    gate.through.release(4)
    assert {answers.get(timeout=WAIT_SECONDS) for _ in range(4)} == {0, 1, 2, 3}
    pool.shutdown()
    with pytest.raises(Overload, match="stopping"):
        pool.answer_short(gate, 0, reply)


def test_threads_help_with_short_work_that_waits() -> None:
    """Where the one thread for it is held up, those for all work do one before each of the others."""
    pool, gate, held = WorkerPool("test", threads=1), Gate(), Gate()
    answers, reply = replies()
    for message in ("long", "longer"):
        pool.answer(gate, message, reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == "long"
    for message in ("held", "first", "second"):
        pool.answer_short(held, message, reply, time.monotonic_ns() + 3600 * 10**9)
    pool.answer_short(held, "late", reply, time.monotonic_ns() + 1)
    assert held.entered.get(timeout=WAIT_SECONDS) == "held"
    assert isinstance(answers.get(timeout=WAIT_SECONDS), Timeout)
    assert pool.waiting() == 3, "the longer one, the first and the second"
    gate.through.release()
    assert answers.get(timeout=WAIT_SECONDS) == "long"
    assert held.entered.get(timeout=WAIT_SECONDS) == "first"
    assert gate.entered.empty()
    held.through.release(2)
    gate.through.release()
    assert {answers.get(timeout=WAIT_SECONDS) for _ in range(2)} <= {"held", "first", "second", "longer"}
    held.through.release()
    assert {answers.get(timeout=WAIT_SECONDS) for _ in range(2)} <= {"held", "first", "second", "longer"}
    pool.shutdown()
    assert pool.waiting() == 0


def test_short_work_takes_a_free_thread() -> None:
    pool = WorkerPool("test", threads=1)
    answers, reply = replies()
    pool.answer_short(lambda _: threading.current_thread().name, None, reply)
    assert answers.get(timeout=WAIT_SECONDS) == "test-0"
    pool.shutdown()


class Large:
    """What a weak reference sees the end of."""


def test_an_error_keeps_nothing_of_what_it_was_raised_in() -> None:
    """Without any collection of garbage, and though the error is kept."""
    seen: list[weakref.ref[Large]] = []

    def fail(message: object) -> None:
        large = Large()
        seen.append(weakref.ref(large))
        try:
            raise ValueError(message)
        except ValueError:
            raise Timeout("late") from None

    pool = WorkerPool("test", threads=1)
    answers, reply = replies()
    gc.disable()
    try:
        for number in range(2):
            pool.answer(fail, number, reply)
        kept = [answers.get(timeout=WAIT_SECONDS) for _ in range(2)]
        assert [str(error) for error in kept] == ["late", "late"]
        assert [reference() for reference in seen] == [None, None]
    finally:
        gc.enable()
        pool.shutdown()


def test_a_pool_grows_and_shrinks() -> None:
    pool, gate = WorkerPool("test", threads=1), Gate()
    answers, reply = replies()
    pool.answer(gate, 1, reply)
    pool.answer(gate, 2, reply)
    gate.entered.get(timeout=WAIT_SECONDS)
    assert pool.waiting() == 1 and gate.entered.empty()
    pool.resize(3)
    assert gate.entered.get(timeout=WAIT_SECONDS) == 2
    pool.answer(gate, 3, reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == 3
    pool.resize(1)
    gate.through.release(3)
    assert sorted(answers.get(timeout=WAIT_SECONDS) for _ in range(3)) == [1, 2, 3]  # type: ignore[type-var]
    gate.most_inside = 0
    for number in range(4, 7):
        pool.answer(gate, number, reply)
    gate.through.release(3)
    assert [answers.get(timeout=WAIT_SECONDS) for _ in range(3)] == [4, 5, 6]
    assert gate.most_inside == 1
    pool.shutdown()
    assert not any(thread.is_alive() for thread in pool._threads)


def test_a_pool_has_the_threads_that_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerPool("test", threads=1)
    answers, reply = replies()
    before = threading.active_count()
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            pool.resize(3)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            WorkerPool("other", threads=1)
        assert pool.size == 1 and threading.active_count() == before
    pool.resize(2)
    together = threading.Barrier(2)
    for _ in range(2):
        pool.answer(lambda _: together.wait(WAIT_SECONDS), None, reply)
    assert {answers.get(timeout=WAIT_SECONDS) for _ in range(2)} == {0, 1}
    pool.shutdown()


def test_a_pool_that_has_room_for_some_threads_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be made, and none of its threads is left."""
    start, made = threading.Thread.start, list[threading.Thread]()

    def start_three(thread: threading.Thread) -> None:
        if len(made) == 3:
            raise RuntimeError("can't start new thread")
        made.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_three)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        WorkerPool("test", threads=2)
    assert len(made) == 3 and not any(thread.is_alive() for thread in made)


def test_what_comes_while_the_pool_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads have ended when it gets into the queue: nobody would answer it."""
    pool, put = WorkerPool("test", threads=1), TaskQueue.put

    def put_late(queue: TaskQueue, task: Callable[[TaskQueue], None]) -> None:
        pool.shutdown()
        put(queue, task)

    monkeypatch.setattr(TaskQueue, "put", put_late)
    answers, reply = replies()
    with pytest.raises(Overload, match="stopping"):
        pool.answer(lambda message: message, 1, reply)
    assert answers.empty() and pool.waiting() == 0


def test_what_is_offered_while_the_pool_ends_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool ends behind it."""
    pool, put, done = WorkerPool("test", threads=1), TaskQueue.put, list[int]()

    def put_late(queue: TaskQueue, task: Callable[[TaskQueue], None]) -> None:
        if not pool._adding.locked():  # which ending it needs
            pool.shutdown()
        put(queue, task)

    monkeypatch.setattr(TaskQueue, "put", put_late)
    assert pool.offer(lambda: done.append(1))
    pool.shutdown()
    assert done == [1]


def fail(answer: object) -> None:
    """A reply that cannot be given."""
    raise RuntimeError("Event loop is closed")


def test_a_thread_goes_on_when_a_reply_fails(caplog: pytest.LogCaptureFixture) -> None:
    pool = WorkerPool("test", threads=1)
    answers, reply = replies()
    pool.answer(lambda message: message, 1, fail)
    pool.answer(lambda message: message, 2, reply)
    assert answers.get(timeout=WAIT_SECONDS) == 2
    assert "An answer could not be handed over" in caplog.text
    pool.shutdown()


def test_deadlines_are_watched_when_a_reply_fails() -> None:
    pool, gate = WorkerPool("test", threads=1), Gate()
    answers, reply = replies()
    pool.answer(gate, "busy", reply)
    assert gate.entered.get(timeout=WAIT_SECONDS) == "busy"
    for answered in (fail, reply):
        pool.answer(gate, "late", answered, time.monotonic_ns() + 1)
    assert isinstance(answers.get(timeout=WAIT_SECONDS), Timeout)
    gate.through.release()
    assert answers.get(timeout=WAIT_SECONDS) == "busy"
    pool.shutdown()


def test_a_share_goes_on_when_a_reply_fails() -> None:
    """One of what was done, and one of what the pool has no room for."""
    pool, gate = WorkerPool("test", threads=2, queue_length=1), Gate()
    share = PoolShare(pool, at_once=1, queue_length=1)
    answers, reply = replies()
    share.answer(gate, 1, fail)
    assert gate.entered.get(timeout=WAIT_SECONDS) == 1
    share.answer(gate, 2, reply)
    gate.through.release(2)
    assert answers.get(timeout=WAIT_SECONDS) == gate.entered.get(timeout=WAIT_SECONDS) == 2
    for _ in range(2):
        pool.answer(gate, "busy", reply)
        gate.entered.get(timeout=WAIT_SECONDS)
    pool.answer(gate, "waits", reply)
    share.answer(gate, 3, fail)
    gate.through.release(3)
    assert {answers.get(timeout=WAIT_SECONDS) for _ in range(3)} == {"busy", "waits"}
    share.answer(lambda message: message, 4, reply)
    assert answers.get(timeout=WAIT_SECONDS) == 4
    pool.shutdown()


def test_work_is_offered_to_threads_that_are_idle() -> None:
    pool, gate = WorkerPool("test", threads=2), Gate()
    answers, reply = replies()
    done: SimpleQueue[str] = SimpleQueue()
    pool.answer(gate, 1, reply)
    gate.entered.get(timeout=WAIT_SECONDS)
    assert pool.offer(lambda: done.put("idle"))
    assert done.get(timeout=WAIT_SECONDS) == "idle"
    pool.answer(gate, 2, reply)
    gate.entered.get(timeout=WAIT_SECONDS)
    assert not pool.offer(lambda: done.put("busy"))
    assert not pool.is_wanted()
    pool.answer(gate, 3, reply)
    assert pool.is_wanted()
    gate.through.release(3)
    assert sorted(answers.get(timeout=WAIT_SECONDS) for _ in range(3)) == [1, 2, 3]  # type: ignore[type-var]
    pool.shutdown()
    assert not pool.offer(lambda: done.put("closed"))
    assert done.empty()
