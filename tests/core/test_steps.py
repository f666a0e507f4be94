"""Long work in steps: it ends with its time and says where that went, and each step has its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.core.clock import OutOfTime, check_time, end_work_at, work_ends_at
from paperwasp.core.steps import WorkOutOfTime, bounded_work, step

NEVER, OVER = 0, 1


@pytest.fixture(autouse=True)
def _own_clock() -> Iterator[None]:
    yield
    end_work_at(NEVER)
    budget.begin(0)


def test_the_longest_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with pytest.raises(WorkOutOfTime, match=r"^12\.5 seconds of it were for b$"), bounded_work(NEVER, 0):
        step("a")
        now += 1
        step("b")
        now += 12.5
        step("c")
        now += 11.5
        end_work_at(OVER)
        step("d")


def test_the_step_that_the_work_is_in_may_be_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with pytest.raises(WorkOutOfTime, match=r"^3\.0 seconds of it were for b$"), bounded_work(NEVER, 0):
        step("a")
        step("b")
        now += 3
        end_work_at(OVER)
        check_time()


def test_work_whose_time_is_over_does_not_begin() -> None:
    with pytest.raises(WorkOutOfTime, match="it had not begun"), bounded_work(OVER, 0):
        check_time()


def test_each_step_has_the_whole_memory() -> None:
    with bounded_work(NEVER, 100):
        for name in ("a", "b"):
            step(name)
            budget.take(60)
            step(name)  # the same one
            with pytest.raises(OutOfMemory):
                budget.take(60)


def test_afterwards_everything_is_as_before() -> None:
    """Also the time of a work that this one is a part of, which the part cannot exceed."""
    end_ns = time.monotonic_ns() + 10**12
    end_work_at(end_ns)
    budget.begin(50)
    budget.take(20)
    with bounded_work(end_ns * 2, 100):
        assert work_ends_at() == end_ns
        step("a")
        budget.take(90)
    assert (work_ends_at(), budget.most_bytes, budget.taken_bytes) == (end_ns, 50, 20)
    with pytest.raises(WorkOutOfTime), bounded_work(NEVER, 0):
        raise OutOfTime
    assert (work_ends_at(), budget.most_bytes, budget.taken_bytes) == (end_ns, 50, 20)
