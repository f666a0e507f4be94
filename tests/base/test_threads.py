"""Threads that nothing waits for: what they return and raise, how many there are, and when they end."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from paperwasp.base.threads import ThreadPool, is_any_busy
from tests.children import ROOT


def test_results_and_errors() -> None:
    with ThreadPool("test", 3) as threads:
        assert list(threads.map(divmod, [7, 9, 11], [2, 4, 3])) == [(3, 1), (2, 1), (3, 2)]
        with pytest.raises(ZeroDivisionError):
            threads.submit(divmod, 1, 0).result(60)
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(divmod, 1, 1)
    assert not [each for each in threading.enumerate() if each.name.startswith("test_")]


def test_as_many_as_are_needed_and_no_more() -> None:
    """Three calls that meet need three threads; a fourth waits for one of them, and idle ones are used again."""
    threads = ThreadPool("test", 3)
    together = threading.Barrier(4)
    found = [threads.submit(lambda: together.wait(60) >= 0 and threading.current_thread()) for _ in range(3)]
    fourth = threads.submit(threading.current_thread)
    assert is_any_busy() and not fourth.done()
    together.wait(60)
    used = {each.result(60) for each in found}
    assert len(used) == 3 and fourth.result(60) in used
    assert {threads.submit(threading.current_thread).result(60) for _ in range(20)} <= used


def test_what_is_cancelled_before_it_begins_is_not_done() -> None:
    threads, going, done = ThreadPool("test", 1), threading.Event(), list[int]()
    first = threads.submit(going.wait, 60)
    second = threads.submit(done.append, 2)
    assert second.cancel()
    going.set()
    assert first.result(60)
    threads.shutdown()
    assert done == []


def test_what_has_not_begun_may_be_cancelled_at_the_end() -> None:
    threads, begun, going, done = ThreadPool("test", 1), threading.Event(), threading.Event(), list[int]()

    def hold() -> bool:
        begun.set()
        return going.wait(60)

    first = threads.submit(hold)
    assert begun.wait(60)
    waiting = [threads.submit(done.append, number) for number in range(3)]
    threads.shutdown(wait=False)
    threads.shutdown(wait=False, cancel_futures=True)
    assert all(each.cancelled() for each in waiting)
    going.set()
    assert first.result(60)
    threads.shutdown()
    assert done == []


def refuse_threads(patch: pytest.MonkeyPatch) -> None:
    """Have the system make no more threads."""

    def refuse(*given: object) -> None:
        raise RuntimeError("can't start new thread")

    patch.setattr(threading, "_start_new_thread", refuse)


def test_what_no_thread_can_be_made_for_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool has one as soon as the system has room, and does not do what it has refused."""
    threads, done = ThreadPool("test", 1), list[int]()
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        for number in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                threads.submit(done.append, number)
        assert threads.undone() == 0
    assert threads.submit(done.append, 2).result(60) is None
    threads.shutdown()
    assert done == [2]


def test_the_threads_that_there_are_do_what_no_other_can_be_made_for(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, going = ThreadPool("test", 2), threading.Event()
    first = threads.submit(lambda: going.wait(60) and threading.current_thread())
    with monkeypatch.context() as patch:
        refuse_threads(patch)
        second = threads.submit(threading.current_thread)
    going.set()
    assert first.result(60) is second.result(60)
    threads.shutdown()


def test_they_end_with_their_owner() -> None:
    threads = ThreadPool("test", 2)
    thread = threads.submit(threading.current_thread).result(60)
    del threads
    thread.join(60)
    assert not thread.is_alive()


def test_a_process_ends_without_them() -> None:
    program = (
        "import threading\n"
        "from paperwasp.base.threads import ThreadPool, is_any_busy\n"
        "threads = ThreadPool('test', 1)\n"
        "threads.submit(int).result(60)\n"
        "while is_any_busy():\n    pass\n"
        "threads.submit(threading.Event().wait)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=60, check=False).returncode == 0
