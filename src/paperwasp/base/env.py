"""The outside world: time and randomness, which tests can replace, and functions that make file names durable."""

from __future__ import annotations

import ctypes
import math
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from msgspec import Struct


class Environment(Struct, frozen=True):
    """Clock and randomness, replaceable in tests."""

    time_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    token_bytes: Callable[[int], bytes] = secrets.token_bytes

    def now_seconds(self) -> float:
        return self.time_ns() / 1e9


SYSTEM = Environment()
_ROOT: Final = Path("/")


def sync_directory(directory: Path) -> None:
    """Makes the names of new, renamed and removed files durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_data(descriptor: int) -> None:
    """Makes a file's bytes durable, and of what is known of the file what reading them needs."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def processors() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores(root: Path = _ROOT) -> float:
    """How many processors' time this process may have: those that it may run on, or a control group's share of them.

    `root`: of the file system in which control groups are looked for, of either version.
    """
    most = float(processors())
    group = root / "sys/fs/cgroup"
    with suppress(OSError, ValueError):
        quota, period = (group / "cpu.max").read_text().split()
        return most if quota == "max" else min(most, int(quota) / int(period))
    with suppress(OSError, ValueError):
        quota, period = ((group / f"cpu/cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return most if int(quota) <= 0 else min(most, int(quota) / int(period))
    return most


def threads_for_cores() -> int:
    """How many threads use all of `cores`."""
    return max(1, math.ceil(cores()))


def process_seconds() -> float | None:
    """How long ago this process began, in steps of 10 ms: when it was executed, not when its code ran. None: the system
    does not say it."""
    try:
        started = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[_STARTED]
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return None


_STARTED: Final = 19
"""The place of the time of the start in /proc/self/stat, counted behind the name, in ticks since the system began."""
_M_ARENA_MAX: Final = -8
"""The parameter of `mallopt`, in glibc's malloc.h."""


@cache
def _c_library() -> ctypes.CDLL:
    """To load it makes a class, which is garbage afterwards: it is loaded once."""
    return ctypes.CDLL(None)


def limit_arenas(count: int) -> None:
    """Lets the C library divide its memory into at most `count` arenas (glibc); to be called before threads begin.

    It would make one for each thread that allocates while another does, up to eight for each processor, and what is
    free in one is of no use to the others: that grows for as long as threads come and go.
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, count)


def release_memory() -> None:
    """Gives free memory back to the system where the C library would keep it for itself (glibc). Takes milliseconds."""
    trim = getattr(_c_library(), "malloc_trim", None)
    if trim is not None:
        trim(0)


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def unused_bytes() -> int:
    """Return the bytes that the C library holds unused, given back already or not (glibc since 2.33); 0: unknown.

    Takes as long as there are pieces of it, mostly less than a millisecond.
    """
    mallinfo = getattr(_c_library(), "mallinfo2", None)
    if mallinfo is None:
        return 0
    mallinfo.restype = _Mallinfo
    return int(mallinfo().fordblks)


def anonymous_bytes() -> int:
    """The memory of this process that is of no file (Linux); 0: unknown. Takes some 20 µs."""
    try:
        _, resident, shared, *_ = Path("/proc/self/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
