"""Queries while documents are fed as fast as the client can: how long they take, and how much is fed meanwhile.

Every document is put again by `vespa feed`; eight connections ask what users typed, each with its next query as soon
as it has an answer, until the feeding is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench import http_kinds as kinds
from bench.feed import feed, feed_file
from bench.load import load, load_beside
from bench.report import Report, Row
from bench.service import data_directory, paperwasp

MOST_P50_US, MOST_P99_US = 4_000, 10_000


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
            quiet = load(server.port, paths, options.connections)
            fed, busy = load_beside(lambda: feed(server, file), server.port, paths, options.connections)
    work = f"OR over HTTP, {options.documents_count:,} documents, {options.connections} connections"
    for name, part, most_us in (("p50", 0.5, MOST_P50_US), ("p99", 0.99, MOST_P99_US)):
        busy_us = busy.quantile_us(part)
        report.add(
            Row(
                f"{work} beside a full feed: {name}",
                f"{busy_us:,.0f} µs",
                f"without feeding {quiet.quantile_us(part):,.0f} µs",
                f"{busy_us / quiet.quantile_us(part):.2f}",
                f"≤ {most_us:,} µs",
                busy_us <= most_us,
            )
        )
    report.add(Row(f"{work} beside a full feed: fed and answered", f"{fed.rate:,.0f}/s, {busy.rate:,.0f}/s"))
