"""Queries over HTTP from several connections at once: an OR of what a user typed, ten hits with all their fields.

The server's CPU time of a query says how many queries one core answers a second, whatever else the machine does
meanwhile (the clients run on it too). Lucene, bare behind HTTP, answers the same queries from the same documents.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import corpus as corpora
from bench import lucene_peer
from bench.feed import feed, feed_file
from bench.http_query import Connection
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

LEAST_DOCUMENTS = 500_000
"""Of fewer documents most of what is timed is not the search; the targets are not for it."""
WARM_ROUNDS = 15
"""How often Lucene is asked everything beforehand: its virtual machine compiles what it finds to be hot."""
COMPARED = 50


@dataclass(frozen=True)
class Options:
    documents_count: int = 100_000
    queries_count: int = 4000
    connections: int = 8


@dataclass(frozen=True)
class Measured:
    """Queries a second, a second of the server's CPU time, and microseconds of half and of 99 % of the queries."""

    rate: float
    core_rate: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True)
class Figure:
    """A line of the table: an attribute of Measured, and what our value over Lucene's must be at least or at most."""

    name: str
    attribute: str
    unit: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def target(self) -> str:
        """In words."""
        if self.least is not None:
            return f"≥ {self.least:g} of Lucene"
        return f"≤ {self.most:g} of Lucene" if self.most is not None else ""

    def met(self, ratio: float) -> bool | None:
        """None: there is no target."""
        if self.least is not None:
            return ratio >= self.least
        return ratio <= self.most if self.most is not None else None


FIGURES = (
    Figure("a second and server core", "core_rate", least=2),
    Figure("a second", "rate"),
    Figure("p50", "p50_us", " µs"),
    Figure("p99", "p99_us", " µs", most=1),
)


def run(report: Report, options: Options) -> None:
    file = feed_file(options.documents_count)
    texts = list(itertools.islice(itertools.cycle(corpora.query_texts()), options.queries_count))
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, file)
        with paperwasp(data, None) as server:
            ours = _measure(server, [_path(text) for text in texts], options)
            found = [_our_hits(server.port, text) for text in texts[:COMPARED]]
    lucene = _lucene(report, file, texts, options, found)
    for figure in FIGURES:
        report.add(_row(options, figure, ours, lucene))


def _lucene(
    report: Report, file: Path, texts: list[str], options: Options, ours_found: list[set[str]]
) -> Measured | None:
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(lucene_peer.serving(file))
        except lucene_peer.NotInstalled as error:
            report.remark(str(error))
            return None
        measured = _measure(server, [_lucene_path(text) for text in texts], options, WARM_ROUNDS)
        found = [_lucene_hits(server.port, text) for text in texts[:COMPARED]]
    same = sum(len(mine & theirs) for mine, theirs in zip(ours_found, found, strict=True))
    whole = sum(map(len, found))
    report.remark(f"http_load: of Lucene's hits {same / whole:.0%} are ours too (it rounds lengths)")
    return measured


def _measure(server: Running, paths: list[str], options: Options, warm_rounds: int = 1) -> Measured:
    for _ in range(warm_rounds):
        _load(server, paths, options.connections)
    cpu_before, start = server.cpu_seconds(), time.perf_counter()
    times_us = sorted(_load(server, paths, options.connections))
    wall_seconds, cpu_seconds = time.perf_counter() - start, server.cpu_seconds() - cpu_before
    p50_us, p99_us = (times_us[int(len(times_us) * part)] for part in (0.5, 0.99))
    return Measured(len(paths) / wall_seconds, len(paths) / cpu_seconds, p50_us, p99_us)


def _row(options: Options, figure: Figure, ours: Measured, lucene: Measured | None) -> Row:
    work = f"user queries over HTTP, {options.documents_count:,} documents, {options.connections} connections"
    mine: float = getattr(ours, figure.attribute)
    row = Row(f"{work}: {figure.name}", f"{mine:,.0f}{figure.unit}")
    if lucene is None:
        return row
    theirs: float = getattr(lucene, figure.attribute)
    row = replace(row, peers=f"Lucene {theirs:,.0f}{figure.unit}", ratio=f"{mine / theirs:.2f}")
    if options.documents_count < LEAST_DOCUMENTS:
        return row
    return replace(row, target=figure.target, met=figure.met(mine / theirs))


def _path(query: str) -> str:
    parameters = {"yql": "select * from article where userQuery()", "query": query, "type": "any", "nocache": "true"}
    return "/search/?" + urllib.parse.urlencode({**parameters, "ranking": "body", "default-index": "body"})


def _lucene_path(query: str) -> str:
    return "/search?" + urllib.parse.urlencode({"query": query})


def _our_hits(port: int, query: str) -> set[str]:
    return {hit["id"] for hit in _answer(port, _path(query))["root"].get("children", [])}


def _lucene_hits(port: int, query: str) -> set[str]:
    return {hit["id"] for hit in _answer(port, _lucene_path(query))["hits"]}


def _answer(port: int, path: str) -> dict[str, Any]:
    connection = Connection(port)
    answer: dict[str, Any] = json.loads(connection.answer(path))
    connection.close()
    return answer


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
