"""Kills a process that deploys at each of its changes of files: opening to write, renaming, removing.

A child process ends itself just before its n-th. By default every 23rd is tried, beginning at a random one;
PAPERWASP_ALL_STEPS=1 tries all.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from paperwasp.coordination.config_store import FileConfigStore
from tests.chance import SEED
from tests.children import start_child
from tests.configserver.config_killed_worker import KILLED
from tests.configserver.test_config_crashes import STEPS, check_after_crash

STRIDE = 1 if os.environ.get("PAPERWASP_ALL_STEPS") else 23
DONE = 0


def run_until(path: Path, step: int) -> tuple[int, int]:
    """How the child ended, and how many steps it had acknowledged."""
    child, reading = start_child("tests.configserver.config_killed_worker", path, step)
    acknowledged = b""
    while more := os.read(reading, 100):
        acknowledged += more
    os.close(reading)
    return child.wait(), max(acknowledged, default=0)


@pytest.mark.crash
def test_deployments_killed_at_each_step(tmp_path: Path) -> None:
    step, ending = random.Random(SEED).randrange(1, STRIDE + 1), KILLED
    print(f"steps {step}, {step + STRIDE}, …")  # noqa: T201
    while ending == KILLED:
        path = tmp_path / str(step)
        ending, acknowledged = run_until(path, step)
        assert ending in (KILLED, DONE), f"the child failed at step {step}"
        if ending == KILLED:
            check_after_crash(FileConfigStore(path), [{}, *(running for running, _ in STEPS[:acknowledged])])
        step += STRIDE
    assert ending == DONE and acknowledged == len(STEPS) and step > 50
