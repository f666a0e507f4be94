"""Random histories, each read by two replicas: see `simulation`.

PAPERWASP_SIMULATED_SEEDS says how many (default: some hundred), PAPERWASP_SEED where they begin.
"""

from __future__ import annotations

import logging
import os

import pytest

from tests.chance import SEED
from tests.content.simulation import simulate, simulated

SEEDS = int(os.environ.get("PAPERWASP_SIMULATED_SEEDS", "200"))
PARTS = 4
"""Tests, so that some can run side by side."""


@pytest.mark.parametrize("part", range(PARTS))
def test_two_replicas_of_one_log_are_equal(part: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    seeds = range(SEED + part, SEED + SEEDS, PARTS)
    print(f"seeds {seeds}")  # noqa: T201
    operations = refusals = 0
    with simulated() as directory:
        for seed in seeds:
            found = simulate(seed, directory)
            operations += len(found.outcomes)
            refusals += sum(outcome.refusal is not None for outcome in found.outcomes)
    assert operations > 20 * len(seeds) and refusals > len(seeds), "histories in which hardly anything happens"
