"""When the work of a thread must end, as its kernels know it (clock.hpp)."""

from __future__ import annotations

import threading
import time
from typing import Final

from paperwasp.core import _core

OutOfTime = _core.OutOfTime
"""The work is given up: its time is over. Raised by kernels too, in the midst of their work."""
check_time = _core.check_time

_OF_THREAD: Final = threading.local()
_BETWEEN_LOOKS_SECONDS: Final = 0.005
"""So long is waited before the time of the thread is looked at again."""


def end_work_at(monotonic_ns: int) -> None:
    """From then on kernels that this thread calls raise OutOfTime; 0: never."""
    _OF_THREAD.end_ns = monotonic_ns
    _core.end_work_at(monotonic_ns)


def work_ends_at() -> int:
    """The last end given to `end_work_at` in this thread; 0: none."""
    found: int = getattr(_OF_THREAD, "end_ns", 0)
    return found


def wait(seconds: float, *, is_busy: bool) -> float:
    """Wait, and say how many seconds it was. is_busy: the processor is kept busy meanwhile.

    Errors: OutOfTime as soon as the time of the thread is over.
    """
    begun = time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < seconds:
        if not is_busy:
            time.sleep(min(seconds - elapsed, _BETWEEN_LOOKS_SECONDS))
        check_time()
    return time.perf_counter() - begun


__all__ = ["OutOfTime", "check_time", "end_work_at", "wait", "work_ends_at"]
