"""Queries over HTTP from several connections at once: an OR of what a user typed, ten hits with all their fields.

The server's CPU time of a query says how many queries one core answers a second, whatever else the machine does
meanwhile (the clients run on it too).
"""

from __future__ import annotations

import itertools
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import corpus as corpora
from bench.feed import feed, feed_file
from bench.http_query import Connection
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

LEAST_QUERIES_A_CORE = 2 * 1033
"""Twice what a core answers with Lucene bare behind HTTP, at 500,000 passages."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 100_000
    queries_count: int = 4000
    connections: int = 8


def run(report: Report, options: Options) -> None:
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, feed_file(options.documents_count))
        with paperwasp(data, None) as server:
            _measure(report, server, options)


def _measure(report: Report, server: Running, options: Options) -> None:
    paths = list(itertools.islice(itertools.cycle(map(_path, corpora.query_texts())), options.queries_count))
    _load(server, paths[: options.queries_count // 4], options.connections)
    cpu_before, start = server.cpu_seconds(), time.perf_counter()
    times_us = sorted(_load(server, paths, options.connections))
    wall_seconds, cpu_seconds = time.perf_counter() - start, server.cpu_seconds() - cpu_before
    a_core = len(paths) / cpu_seconds
    work = f"user queries over HTTP, {options.documents_count:,} documents, {options.connections} connections"
    target = f"≥ {LEAST_QUERIES_A_CORE:,}"
    report.add(
        Row(f"{work}: a second and server core", f"{a_core:,.0f}", target=target, met=a_core >= LEAST_QUERIES_A_CORE)
    )
    report.add(Row(f"{work}: a second", f"{len(paths) / wall_seconds:,.0f}"))
    report.add(Row(f"{work}: p50", f"{times_us[len(times_us) // 2]:.0f} µs"))
    report.add(Row(f"{work}: p99", f"{times_us[int(len(times_us) * 0.99)]:.0f} µs"))


def _path(query: str) -> str:
    parameters = {"yql": "select * from article where userQuery()", "query": query, "type": "any", "nocache": "true"}
    return "/search/?" + urllib.parse.urlencode({**parameters, "ranking": "body", "default-index": "body"})


def _load(server: Running, paths: list[str], connections: int) -> list[float]:
    """Microseconds of each query."""

    def work(share: list[str]) -> list[float]:
        connection = Connection(server.port)
        times_us = []
        for path in share:
            start = time.perf_counter_ns()
            connection.answer(path)
            times_us.append((time.perf_counter_ns() - start) / 1e3)
        connection.close()
        return times_us

    with ThreadPoolExecutor(connections) as pool:
        shares = [paths[number::connections] for number in range(connections)]
        return [taken for times_us in pool.map(work, shares) for taken in times_us]
