"""What the outside world tells us: time and randomness. Everything else takes it from here, so tests can replace it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Environment:
    """Clock and randomness, replaceable in tests."""

    time_ns: Callable[[], int] = time.time_ns
    monotonic_ns: Callable[[], int] = time.monotonic_ns
    token_bytes: Callable[[int], bytes] = secrets.token_bytes

    def now_seconds(self) -> float:
        return self.time_ns() / 1e9


SYSTEM = Environment()
