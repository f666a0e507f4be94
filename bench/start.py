"""How soon the service is ready, and how much memory it holds when nothing is asked of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from feed import feed, feed_file
from report import Report, Row
from service import data_directory, paperwasp

MOST_EMPTY_SECONDS = 1.0
MOST_FULL_SECONDS = 5.0
IDLE_SECONDS = 3


@dataclass(frozen=True)
class Options:
    documents_count: int = 500_000
    repeats: int = 3


def run_empty(report: Report, options: Options) -> None:
    """Start on an empty data directory, without and with an application to deploy."""
    bare, deploying = [], []
    for _ in range(options.repeats):
        with data_directory() as data, paperwasp(data, None) as server:
            bare.append(server.ready_seconds)
        with data_directory() as data, paperwasp(data) as server:
            deploying.append(server.ready_seconds)
    report.add(_row("start on an empty data directory", statistics.median(bare), MOST_EMPTY_SECONDS))
    report.add(_row("start and deploy an application", statistics.median(deploying), MOST_EMPTY_SECONDS))


def run_full(report: Report, options: Options) -> None:
    """Start with documents that are flushed, the memory held then, and the first query's answer."""
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, feed_file(options.documents_count))
            report.add(Row(f"memory after feeding {options.documents_count:,}", f"{server.resident_mb():.0f} MB"))
        for _ in range(2):
            with paperwasp(data, None) as server:
                seconds, found = server.ready_seconds, server.count()
                time.sleep(IDLE_SECONDS)
                resident_mb = server.resident_mb()
    if found != options.documents_count:
        raise AssertionError(f"{found} documents after the restart")
    report.add(_row(f"start with {options.documents_count:,} documents", seconds, MOST_FULL_SECONDS))
    report.add(Row(f"memory idle with {options.documents_count:,} documents", f"{resident_mb:.0f} MB"))


def _row(work: str, seconds: float, most: float) -> Row:
    return Row(work, f"{seconds:.2f} s", target=f"≤ {most:g} s", met=seconds <= most)
