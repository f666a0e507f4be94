"""Queries over HTTP from several connections at once, ten hits with all their fields, beside Lucene and OpenSearch.

The plain query is an OR of what a user typed; others (`bench/http_kinds.py`) are asked less often. All servers run at
the same time and have the same documents, stems and stored fields. They take turns, round by round, and the median of
the rounds counts. A server's CPU time says how many queries one core answers a second, whatever else the machine does
meanwhile (the client runs on it too). Lucene is bare behind HTTP; OpenSearch is the server that users would run.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from bench import http_kinds as kinds
from bench import lucene_peer, opensearch_peer
from bench.connection import Connection, load
from bench.feed import feed, feed_file
from bench.http_kinds import PLAIN, Kind
from bench.java_program import NotInstalled
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

LEAST_DOCUMENTS = 500_000
"""Of fewer documents most of what is timed is not the search; the targets are not for it."""
WARM_ROUNDS: Final = {"plain": 8, "other": 2}
"""How often a Java peer is asked everything beforehand: its virtual machine compiles what it finds to be hot."""
COMPARED: Final = 50
"""Queries of each kind whose hits are compared."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    queries_count: int = 2000
    other_queries_count: int = 500
    connections: int = 8
    rounds: int = 3
    works: str = ""
    """Only kinds of query whose name contains this."""


@dataclass(frozen=True)
class Measured:
    """Queries a second, a second of the server's CPU time, and a second on one core; microseconds of half and of 99 %
    of the queries, from all connections and from one; the server's context switches a query."""

    rate: float
    core_rate: float
    p50_us: float
    p99_us: float
    switches: float
    pinned_rate: float = 0
    alone_p50_us: float = 0
    alone_p99_us: float = 0

    @property
    def cpu_us(self) -> float:
        return 1e6 / self.core_rate


@dataclass(frozen=True)
class Figure:
    """A line of the table: an attribute of Measured, and what our value over Lucene's must be at least or at most."""

    name: str
    attribute: str
    unit: str = ""
    least: float | None = None
    most: float | None = None

    def shown(self, value: float) -> str:
        digits = 1 if value < 100 else 0
        return f"{value:,.{digits}f}{self.unit}"

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
    Figure("server CPU a query", "cpu_us", " µs"),
    Figure("a second", "rate"),
    Figure("a second, server on one core", "pinned_rate"),
    Figure("p50", "p50_us", " µs"),
    Figure("p99", "p99_us", " µs", most=1),
    Figure("p50 of one connection", "alone_p50_us", " µs"),
    Figure("p99 of one connection", "alone_p99_us", " µs"),
    Figure("context switches a query", "switches"),
)
CPU: Final = Figure("server CPU a query", "cpu_us", " µs")


@dataclass(frozen=True)
class Engine:
    """A server that is ready, how it is asked, and what it says that it found."""

    name: str
    server: Running
    path: Callable[[Kind, str], str]
    hits: Callable[[bytes], set[str]]
    is_java: bool = True

    def can(self, kind: Kind) -> bool:
        return not self.is_java or kind.lucene is not None


def run(report: Report, options: Options) -> None:
    file = feed_file(options.documents_count)
    wanted = [kind for kind in (PLAIN, *kinds.KINDS) if options.works in kind.name]
    with data_directory() as data, contextlib.ExitStack() as stack:
        with paperwasp(data) as server:
            feed(server, file)
        ours = stack.enter_context(paperwasp(data, None))
        engines = [
            Engine("ours", ours, kinds.patient_path, kinds.our_hits, is_java=False),
            *_peers(report, file, stack),
        ]
        for kind in wanted:
            texts = kinds.texts(kind, file, options.queries_count if kind is PLAIN else options.other_queries_count)
            _check_hits(report, kind, engines, texts[:COMPARED])
            _add_rows(report, kind, options, _measure_all(kind, engines, texts, options))


def _peers(report: Report, file: Path, stack: contextlib.ExitStack) -> Iterator[Engine]:
    """Those that can be had here."""
    for name, serving, path, hits in (
        ("Lucene", lucene_peer.serving, kinds.lucene_path, kinds.lucene_hits),
        ("OpenSearch", opensearch_peer.serving, kinds.opensearch_path, kinds.opensearch_hits),
    ):
        try:
            yield Engine(name, stack.enter_context(serving(file)), path, hits)
        except NotInstalled as error:
            report.remark(str(error))


def _check_hits(report: Report, kind: Kind, engines: Sequence[Engine], texts: list[str]) -> None:
    """Remarks how many of the peers' hits are ours. Errors: NothingMeasured where ours are not what was meant."""
    found = {engine.name: _hits(engine, kind, texts) for engine in engines if engine.can(kind)}
    ours = found.pop("ours")
    if any(ours) == (kind.texts == "unknown"):
        raise NothingMeasured(f"{kind.name}: {sum(map(bool, ours))} of {len(ours)} queries find something")
    for name, theirs in found.items():
        whole = sum(map(len, theirs))
        if kind.is_same_ranking and whole:
            same = sum(len(mine & its) for mine, its in zip(ours, theirs, strict=True))
            report.remark(f"http_load, {kind.name}: of {name}'s hits {same / whole:.0%} are ours too")
        elif not whole and kind.texts != "unknown":
            raise NothingMeasured(f"{kind.name}: {name} finds nothing")


def _hits(engine: Engine, kind: Kind, texts: list[str]) -> list[set[str]]:
    connection = Connection(engine.server.port)
    found = [engine.hits(connection.answer(engine.path(kind, text))) for text in texts]
    connection.close()
    return found


def _measure_all(kind: Kind, engines: Sequence[Engine], texts: list[str], options: Options) -> dict[str, Measured]:
    """The medians of rounds in which the engines take turns."""
    paths = {engine.name: [engine.path(kind, text) for text in texts] for engine in engines if engine.can(kind)}
    asked = [engine for engine in engines if engine.name in paths]
    for engine in asked:
        for _ in range(WARM_ROUNDS["plain" if kind is PLAIN else "other"] if engine.is_java else 1):
            load(engine.server.port, paths[engine.name], options.connections)
    rounds: dict[str, list[Measured]] = {engine.name: [] for engine in asked}
    for _ in range(options.rounds):
        for engine in asked:
            rounds[engine.name].append(_measure(engine.server, paths[engine.name], options, kind is PLAIN))
    return {name: _median(measured) for name, measured in rounds.items()}


def _measure(server: Running, paths: list[str], options: Options, wholly: bool) -> Measured:
    """One round. `wholly`: on one core and over one connection, too."""
    switches, cpu_seconds, begun = server.context_switches(), server.cpu_seconds(), time.perf_counter()
    times_us = load(server.port, paths, options.connections)
    rate = len(paths) / (time.perf_counter() - begun)
    core_rate = len(paths) / (server.cpu_seconds() - cpu_seconds)
    each = (server.context_switches() - switches) / len(paths)
    measured = Measured(rate, core_rate, *_quantiles(times_us), each)
    if not wholly:
        return measured
    alone_p50_us, alone_p99_us = _quantiles(load(server.port, paths[: options.other_queries_count], 1))
    return replace(
        measured, pinned_rate=_pinned_rate(server, paths, options), alone_p50_us=alone_p50_us, alone_p99_us=alone_p99_us
    )


def _pinned_rate(server: Running, paths: list[str], options: Options) -> float:
    """Queries a second while the server has one core only; the client has all."""
    with server.pinned():
        begun = time.perf_counter()
        load(server.port, paths, options.connections)
        return len(paths) / (time.perf_counter() - begun)


def _quantiles(times_us: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(times_us)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]


def _median(rounds: Sequence[Measured]) -> Measured:
    names = [field.name for field in fields(Measured)]
    return Measured(**{name: statistics.median(getattr(each, name) for each in rounds) for name in names})


def _work(kind: Kind, options: Options) -> str:
    return f"{kind.name} over HTTP, {options.documents_count:,} documents, {options.connections} connections"


def _add_rows(report: Report, kind: Kind, options: Options, measured: Mapping[str, Measured]) -> None:
    figures = FIGURES if kind is PLAIN else (CPU,)
    for figure in figures:
        report.add(_row(_work(kind, options), options, figure, measured))


def _row(work: str, options: Options, figure: Figure, measured: Mapping[str, Measured]) -> Row:
    """Ours beside each peer, with the ratios in the same order. What is to be reached is a share of Lucene's."""
    values: dict[str, float] = {name: getattr(each, figure.attribute) for name, each in measured.items()}
    mine = values.pop("ours")
    row = Row(f"{work}: {figure.name}", figure.shown(mine))
    if not values:
        return row
    peers = ", ".join(f"{name} {figure.shown(value)}" for name, value in values.items())
    row = replace(row, peers=peers, ratio=", ".join(f"{mine / value:.2f}" for value in values.values()))
    if "Lucene" not in values or options.documents_count < LEAST_DOCUMENTS:
        return row
    return replace(row, target=figure.target, met=figure.met(mine / values["Lucene"]))
