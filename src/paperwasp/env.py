"""What the outside world is to us: time and randomness, which tests can replace, and what makes names durable."""

from __future__ import annotations

import ctypes
import gc
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from paperwasp import limits


@dataclass(frozen=True, slots=True)
class Environment:
    """Clock and randomness, replaceable in tests."""

    time_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    token_bytes: Callable[[int], bytes] = secrets.token_bytes

    def now_seconds(self) -> float:
        return self.time_ns() / 1e9


SYSTEM = Environment()


def sync_directory(directory: Path) -> None:
    """Makes the names of new, renamed and removed files durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class _Collector:
    """The garbage collector, put off as long as somebody asks for that."""

    def __init__(self) -> None:
        self._asking = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        with self._lock:
            self._asking += 1
            gc.disable()

    def end(self) -> None:
        with self._lock:
            self._asking -= 1
            if not self._asking:
                gc.enable()


_COLLECTOR = _Collector()


@contextmanager
def collecting_later(size_bytes: int) -> Iterator[None]:
    """Puts off the search for garbage during work on a large request: each search would look at all of the millions
    of objects that are being made, and no other thread runs meanwhile."""
    if size_bytes < limits.LARGE_REQUEST_BYTES:
        yield
        return
    _COLLECTOR.begin()
    try:
        yield
    finally:
        _COLLECTOR.end()


_M_ARENA_MAX: Final = -8
"""The parameter of `mallopt`, in glibc's malloc.h."""


def limit_arenas(count: int) -> None:
    """Lets the C library divide its memory into at most `count` arenas (glibc); to be called before threads begin.

    It would make one for each thread that allocates while another does, up to eight for each processor, and what is
    free in one is of no use to the others: that grows for as long as threads come and go.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, count)


def release_memory() -> None:
    """Gives free memory back to the system where the C library would keep it for itself (glibc). Takes milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
