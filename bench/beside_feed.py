"""Queries while documents are fed as fast as the client can: how long they take, and how much is fed meanwhile.

Every document is put again by `vespa feed`; eight connections ask what users typed, each with its next query as soon
as it has an answer, until the feeding is over.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import http_kinds as kinds
from bench.connection import load
from bench.feed import Fed, feed, feed_file
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

BATCH_QUERIES = 200
"""After how many the client looks whether the feeding is over."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    connections: int = 8
    queries_count: int = 2000
    """Without feeding, beforehand; the same are asked over and over beside it."""


def run(report: Report, options: Options) -> None:
    file = feed_file(options.documents_count)
    paths = [kinds.patient_path(kinds.PLAIN, text) for text in kinds.texts(kinds.PLAIN, file, options.queries_count)]
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, file)
        with paperwasp(data, None) as server:
            load(server.port, paths, options.connections)
            quiet_us = sorted(load(server.port, paths, options.connections))
            fed, busy_us = _beside(server, file, paths, options)
    work = f"OR over HTTP, {options.documents_count:,} documents, {options.connections} connections"
    for name, times_us in (("", quiet_us), (" beside a full feed", sorted(busy_us))):
        p50_us, p99_us = (times_us[int(len(times_us) * part)] for part in (0.5, 0.99))
        report.add(Row(f"{work}{name}: p50, p99", f"{p50_us:,.0f} µs, {p99_us:,.0f} µs"))
    report.add(Row(f"{work}: fed meanwhile", f"{fed.rate:,.0f}/s"))


def _beside(server: Running, file: Path, paths: list[str], options: Options) -> tuple[Fed, list[float]]:
    """How fast the documents were fed, and the microseconds of each query that was asked until then."""
    batches = itertools.cycle(paths[start : start + BATCH_QUERIES] for start in range(0, len(paths), BATCH_QUERIES))
    times_us: list[float] = []
    with ThreadPoolExecutor(1) as pool:
        feeding = pool.submit(feed, server, file)
        while not feeding.done():
            times_us += load(server.port, next(batches), options.connections)
        return feeding.result(), times_us
