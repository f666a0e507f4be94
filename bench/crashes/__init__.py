"""Crashes of `paperwasp serve` under load, and whether all that was acknowledged is there after each.

`make bench ONLY=crashes ARGS="--works cut --passes 60"`; `bench/README.md` says what a round does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from bench.crashes.campaign import Campaign
from bench.crashes.disks import build
from bench.crashes.state import extend_model
from bench.report import Report, Row
from bench.service import data_directory

KINDS: Final = ("kill", "cut", "full", "error")


@dataclass(frozen=True)
class Options:
    works: str = ""
    """Only the kinds whose names contain this."""
    rounds: int = 3
    seed: int = 1


def run(report: Report, options: Options) -> None:
    """Rounds of each kind, on data of its own; whatever is wrong fails the report."""
    extend_model()
    for kind in KINDS:
        if options.works not in kind:
            continue
        with data_directory() as folder:
            program = None if kind == "kill" else build(folder)
            campaign = Campaign(folder / kind, options.seed, program, partial(print, flush=True))
            campaign.run(kind, options.rounds)
            done = ", ".join(f"{count:,} {name}" for name, count in sorted(campaign.counts.items()))
            report.add(Row(f"crashes: {options.rounds} of {kind}", f"{campaign.compared:,} documents compared; {done}"))
            for each in campaign.wrong:
                report.fail(f"crashes: {each}")
