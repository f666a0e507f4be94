"""What the outside world is to us: time and randomness, which tests can replace, and what makes names durable."""

from __future__ import annotations

import ctypes
import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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


def release_memory() -> None:
    """Gives free memory back to the system where the C library would keep it for itself (glibc). Takes milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
