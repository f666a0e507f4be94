"""When the work of a thread must end, as its kernels know it (clock.hpp)."""

from __future__ import annotations

from paperwasp.core import _core

OutOfTime = _core.OutOfTime
"""The work is given up: its time is over. Raised by kernels too, in the midst of their work."""
end_work_at = _core.end_work_at
check_time = _core.check_time

__all__ = ["OutOfTime", "check_time", "end_work_at"]
