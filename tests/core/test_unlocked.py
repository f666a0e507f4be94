"""What kernels do without the interpreter's lock is counted on every thread, while it is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from paperwasp.core import _core

MUCH, LITTLE = 1 << 22, 1 << 10
"""Rows: the lock is released for the first, not for the second."""


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    _core.count_unlocked(True)
    yield
    _core.count_unlocked(False)


def work(rows: int) -> None:
    _core.range_bitmap(np.zeros(rows, np.int32), 0, 1, np.zeros(rows // 64, np.uint64))


def counted_ns(rows: int) -> int:
    before = _core.unlocked_ns()
    work(rows)
    return _core.unlocked_ns() - before


def test_the_time_of_a_kernel_with_much_to_do_is_counted() -> None:
    before = time.thread_time_ns()
    counted = counted_ns(MUCH)
    assert 0 < counted <= time.thread_time_ns() - before


def test_the_lock_is_kept_for_little_work() -> None:
    assert counted_ns(LITTLE) == 0


def test_nothing_is_counted_unless_it_is_asked_for() -> None:
    _core.count_unlocked(False)
    assert counted_ns(MUCH) == 0
    _core.count_unlocked(True)
    assert counted_ns(MUCH) > 0


def test_a_kernel_that_fails_has_been_counted() -> None:
    before = _core.unlocked_ns()
    with pytest.raises(ValueError, match="not a field index"):
        _core.check_field_index(np.zeros(4096, np.uint8))
    assert _core.unlocked_ns() > before


def test_all_threads_count_together() -> None:
    spent: list[int] = []

    def run() -> None:
        before = time.thread_time_ns()
        work(MUCH)
        spent.append(time.thread_time_ns() - before)

    before = _core.unlocked_ns()
    threads = [Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < _core.unlocked_ns() - before <= sum(spent)
