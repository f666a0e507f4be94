"""The steps of a long work of one thread, such as a deployment: all of them have a time together, and each a memory.

Whoever begins the work gives both; `step` stands before each part whose length depends on what somebody sent. Inside of
a step the clock and the budget of the thread hold (`core.clock`, `core.budget`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, check_time, end_work_at, work_ends_at


class _Steps(threading.local):
    """The work of a thread."""

    name: str = ""
    """The step that it is in."""
    begun: float = 0.0
    longest: tuple[float, str] = (0.0, "")
    is_bounded: bool = False

    def end(self) -> None:
        """The step that it is in has ended."""
        now = time.monotonic()
        if self.name:
            self.longest = max(self.longest, (now - self.begun, self.name))
        self.begun = now


_OF_THREAD = _Steps()


class WorkOutOfTime(Exception):
    """The time of the work is over. The message says which step was the longest."""


@contextmanager
def bounded_work(end_ns: int, step_bytes: int) -> Iterator[None]:
    """The work inside ends at a time of the monotonic clock (0: never), and the tensors of a step take no more memory.

    It may be a part of such a work. Errors: WorkOutOfTime, and what the work raises.
    """
    clock, most_bytes, taken_bytes = work_ends_at(), budget.most_bytes, budget.taken_bytes
    before = _OF_THREAD.name, _OF_THREAD.begun, _OF_THREAD.longest, _OF_THREAD.is_bounded
    _OF_THREAD.name, _OF_THREAD.longest, _OF_THREAD.is_bounded = "", (0.0, ""), True
    end_work_at(min(filter(None, (clock, end_ns)), default=0))
    budget.begin(step_bytes)
    try:
        yield
    except OutOfTime:
        _OF_THREAD.end()
        seconds, name = _OF_THREAD.longest
        raise WorkOutOfTime(f"{seconds:.1f} seconds of it were for {name}" if name else "it had not begun") from None
    finally:
        _OF_THREAD.name, _OF_THREAD.begun, _OF_THREAD.longest, _OF_THREAD.is_bounded = before
        end_work_at(clock)
        budget.begin(most_bytes)
        budget.take(taken_bytes)


def step(name: str) -> None:
    """The next step of the thread's bounded work begins: what was taken of its memory before is free.

    Errors: OutOfTime, in any work.
    """
    if _OF_THREAD.is_bounded and _OF_THREAD.name != name:
        _OF_THREAD.end()
        _OF_THREAD.name = name
        budget.give_back_to(0)
    check_time()
