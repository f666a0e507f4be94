"""The command: starts a service, attacks it, prints the report. Its exit code is 1 where there are failures."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from tests.service.running import running_service
from tools.fuzz.attack import Attack
from tools.fuzz.seeds import load_seeds
from tools.fuzz.target import Target

GROWTH_MIB = 400
"""How much memory may grow from a quarter of the requests to the last: applications come and go."""


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="ends earlier")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**32))
    parser.add_argument("--folder", type=Path, help="where data, log and bodies of failing requests are kept")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    _say(f"seed {given.seed}, everything is kept in {folder}")
    seeds = load_seeds()
    with running_service(folder / "data", "--allow-python-components") as service:
        with closing(Target(service, seeds)) as target:
            report = Attack(target, seeds, given.seed, folder).run(
                given.requests, time.monotonic() + given.seconds, _say
            )
        if target.is_running and (code := service.stop()) != 0:
            report.failures.append(f"the service ended with {code}")
    quarter = report.memory_mib[len(report.memory_mib) // 4]
    if report.memory_mib[-1] > quarter + GROWTH_MIB:
        report.failures.append(f"memory grew from {quarter:.0f} to {report.memory_mib[-1]:.0f} MiB")
    _say("\n".join(report.lines()))
    return 1 if report.failures else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
