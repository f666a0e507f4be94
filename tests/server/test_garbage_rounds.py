"""How much garbage may wait for the collector once the service is ready: that of few enough objects."""

from __future__ import annotations

import subprocess
import sys

from paperwasp import limits

PROGRAM = """
from collections import deque
from paperwasp.server.process import _settle_heap

class Cycle:
    __slots__ = ("me",)
    alive = 0
    def __init__(self):
        self.me = self
        Cycle.alive += 1
    def __del__(self):
        Cycle.alive -= 1

kept_before = [[] for _ in range(200_000)]  # a full collection must not wait for a quarter of these
_settle_heap()
held, most = deque(maxlen=60_000), 0  # so long that each outlives the first two looks
for _ in range(600_000):
    held.append(Cycle())
    most = max(most, Cycle.alive)
print(most)
"""


def test_garbage_that_was_held_for_a_while_is_found() -> None:
    """CPython: gcmodule.c, `long_lived_pending < long_lived_total / 4`."""
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    waiting = limits.GARBAGE_OBJECTS * limits.GARBAGE_ROUNDS * limits.GARBAGE_ROUNDS
    assert 60_000 <= int(said.stdout) <= 60_000 + 1.25 * waiting
