"""How soon the service is ready, and how much memory it holds when nothing is asked of it."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import CACHE, pydoc
from bench.feed import feed, feed_file
from bench.report import Report, Row
from bench.service import data_directory, paperwasp

MOST_EMPTY_SECONDS = 1.0
MOST_FULL_SECONDS = 0.8
MOST_FED_MB, MOST_RESTARTED_MB = 250, 180
"""With documents that are fed, and after a restart."""
MOST_IDLE_MB = 150
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
            report.add(_memory(f"memory after feeding {options.documents_count:,}", server.resident_mb(), MOST_FED_MB))
        for _ in range(2):
            with paperwasp(data, None) as server:
                seconds, found = server.ready_seconds, server.count()
                time.sleep(IDLE_SECONDS)
                resident_mb = server.resident_mb()
    if found != options.documents_count:
        raise AssertionError(f"{found} documents after the restart")
    report.add(_row(f"start with {options.documents_count:,} documents", seconds, MOST_FULL_SECONDS))
    report.add(_memory(f"memory idle with {options.documents_count:,} documents", resident_mb, MOST_RESTARTED_MB))


def run_demo(report: Report) -> None:
    """Memory when idle with the demo's application and documents: after feeding them, and after a restart."""
    with data_directory() as data:
        with paperwasp(data, Path(__file__).parents[1] / "examples" / "pydoc" / "application") as server:
            feed(server, _demo_feed())
            found = server.count()
            time.sleep(IDLE_SECONDS)
            fed_mb = server.resident_mb()
        with paperwasp(data, None) as server:
            server.count()
            time.sleep(IDLE_SECONDS)
            restarted_mb = server.resident_mb()
    for when, resident_mb in (("after feeding", fed_mb), ("after a restart", restarted_mb)):
        work, met = f"memory idle, demo of {found:,} documents, {when}", resident_mb < MOST_IDLE_MB
        report.add(Row(work, f"{resident_mb:.0f} MB", target=f"< {MOST_IDLE_MB} MB", met=met))


def _demo_feed() -> Path:
    """What the demo feeds."""
    reader = pydoc()
    path = CACHE / "feed-demo.jsonl"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(document) + "\n" for document in reader.documents(reader.installation_roots()))
    return path


def _memory(work: str, resident_mb: float, most_mb: float) -> Row:
    return Row(work, f"{resident_mb:.0f} MB", target=f"≤ {most_mb:g} MB", met=resident_mb <= most_mb)


def _row(work: str, seconds: float, most: float) -> Row:
    return Row(work, f"{seconds:.2f} s", target=f"≤ {most:g} s", met=seconds <= most)
