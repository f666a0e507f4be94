"""When the work of a thread must end, as its kernels know it (clock.hpp)."""

from __future__ import annotations

import threading
from typing import Final

from paperwasp.core import _core

OutOfTime = _core.OutOfTime
"""The work is given up: its time is over. Raised by kernels too, in the midst of their work."""
check_time = _core.check_time

_OF_THREAD: Final = threading.local()


def end_work_at(monotonic_ns: int) -> None:
    """From then on kernels that this thread calls raise OutOfTime; 0: never."""
    _OF_THREAD.end_ns = monotonic_ns
    _core.end_work_at(monotonic_ns)


def work_ends_at() -> int:
    """The last end given to `end_work_at` in this thread; 0: none."""
    found: int = getattr(_OF_THREAD, "end_ns", 0)
    return found


__all__ = ["OutOfTime", "check_time", "end_work_at", "work_ends_at"]
