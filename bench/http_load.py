"""Queries over HTTP from several connections at once, ten hits with all their fields, beside Lucene and OpenSearch.

The plain query is an OR of what a user typed; others (`bench/http_kinds.py`) are asked less often. All servers run at
the same time and have the same documents, stems and stored fields. They take turns, round by round, and the median of
the rounds counts. A server's CPU time says how many queries one core answers a second, whatever else the machine does
meanwhile. Lucene is bare behind HTTP; OpenSearch is the server that users would run.

A second the server has one core, two, and all of them; the client then runs on the others, if there are any.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

from bench import http_kinds as kinds
from bench import lucene_peer, opensearch_peer
from bench.connection import Connection
from bench.feed import feed_file
from bench.filled import fill
from bench.http_kinds import PLAIN, Kind
from bench.java_program import NotInstalled
from bench.layers import NothingMeasured
from bench.load import load
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

LEAST_DOCUMENTS: Final = 60_000
"""Of fewer documents most of what is timed is not the search; the targets are not for it."""
LARGE_DOCUMENTS: Final = 500_000
SCALED_CORES: Final = 2
LEAST_SCALING: Final = 1.85
"""The ratio of queries a second on SCALED_CORES cores to those on one."""
WARM_ROUNDS: Final = {"plain": 8, "other": 2}
"""How often a Java peer is asked everything beforehand: its virtual machine compiles what it finds to be hot."""
REST_SECONDS: Final = 0.5
MOST_REST_SECONDS: Final = 20.0
"""How long servers are looked at before a turn, and for how long that is waited for."""
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
    kinds: Sequence[Kind] = (PLAIN, *kinds.KINDS)
    peers: Collection[str] = ("Lucene", "OpenSearch")


@dataclass(frozen=True)
class Measured:
    """Queries a second, a second of the server's CPU time, and a second on one core and on two; microseconds of half
    and of 99 % of the queries, from all connections and from one; the server's context switches a query; microseconds
    of the client's CPU time a query, which is part of what all cores can do together."""

    rate: float
    core_rate: float
    p50_us: float
    p99_us: float
    switches: float
    pinned_rate: float = 0
    two_rate: float = 0
    alone_p50_us: float = 0
    alone_p99_us: float = 0
    client_us: float = 0

    @property
    def used_cores(self) -> float:
        """How many cores the server and the client kept busy where the server had all."""
        return self.rate * (self.cpu_us + self.client_us) / 1e6

    @property
    def cpu_us(self) -> float:
        return 1e6 / self.core_rate

    @property
    def two_over_one(self) -> float:
        return self.two_rate / self.pinned_rate

    @property
    def all_over_one(self) -> float:
        return self.rate / self.pinned_rate


@dataclass(frozen=True)
class Figure:
    """A line of the table: an attribute of Measured, and what our value, or its share of Lucene's, must be."""

    name: str
    attribute: str
    unit: str = ""
    least: float | None = None
    """Of Lucene's value."""
    most: float | None = None
    """Of Lucene's value."""
    least_own: float | None = None
    most_own: float | None = None

    def shown(self, value: float) -> str:
        digits = 2 if value < 10 else 1 if value < 100 else 0
        return f"{value:,.{digits}f}{self.unit}"

    @property
    def target(self) -> str:
        """In words."""
        for sign, limit, whose in (
            ("≥", self.least, " of Lucene"),
            ("≤", self.most, " of Lucene"),
            ("≥", self.least_own, self.unit),
            ("≤", self.most_own, self.unit),
        ):
            if limit is not None:
                return f"{sign} {limit:g}{whose}"
        return ""

    def met(self, value: float, lucene: float | None) -> bool | None:
        """None: there is no target, or no Lucene that it is a share of."""
        if self.least_own is not None:
            return value >= self.least_own
        if self.most_own is not None:
            return value <= self.most_own
        if lucene is None or self.least is self.most is None:
            return None
        return value >= self.least * lucene if self.least is not None else value <= (self.most or 0) * lucene


def figures(kind: Kind, documents_count: int) -> Sequence[Figure]:
    """The lines of a kind of query, with targets unless there are too few documents."""
    is_judged = documents_count >= LEAST_DOCUMENTS
    found = _plain_figures(documents_count) if kind is PLAIN else _other_figures(kind)
    return found if is_judged else [Figure(each.name, each.attribute, each.unit) for each in found]


def _plain_figures(documents_count: int) -> list[Figure]:
    cores = len(os.sched_getaffinity(0))
    least = 2.2 if documents_count >= LARGE_DOCUMENTS else 3
    more = [
        Figure("a second, server on two cores", "two_rate"),
        Figure(f"all {cores} cores over one", "all_over_one", " times"),
    ]
    return [
        Figure("a second and server core", "core_rate", least=least),
        Figure("server CPU a query", "cpu_us", " µs"),
        Figure("a second, server on one core", "pinned_rate"),
        Figure(f"a second, server on all {cores} cores", "rate", least=kinds.LEAST),
        Figure("two cores over one", "two_over_one", " times", least_own=LEAST_SCALING),
        *(more if _has_more_cores() else ()),
        Figure("client CPU a query", "client_us", " µs"),
        Figure("cores that server and client used together", "used_cores"),
        Figure("p50", "p50_us", " µs"),
        Figure("p99", "p99_us", " µs", most=1),
        Figure("p50 of one connection", "alone_p50_us", " µs"),
        Figure("p99 of one connection", "alone_p99_us", " µs"),
        Figure("context switches a query", "switches"),
    ]


def _other_figures(kind: Kind) -> list[Figure]:
    if kind.least is not None:
        return [Figure("a second and server core", "core_rate", least=kind.least)]
    return [Figure("server CPU a query", "cpu_us", " µs", most=kind.most, most_own=kind.most_us)]


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
    wanted = [kind for kind in options.kinds if options.works in kind.name]
    with data_directory() as data, contextlib.ExitStack() as stack:
        fill(data, file)
        ours = stack.enter_context(paperwasp(data, None))
        engines = [
            Engine("ours", ours, kinds.patient_path, kinds.our_hits, is_java=False),
            *_peers(report, file, stack, options),
        ]
        for kind in wanted:
            texts = kinds.texts(kind, file, options.queries_count if kind is PLAIN else options.other_queries_count)
            _check_hits(report, kind, engines, texts[:COMPARED])
            _add_rows(report, kind, options, _measure_all(kind, engines, texts, options))
    if PLAIN in wanted:
        report.remark(f"http_load: {shared_cores(len(os.sched_getaffinity(0)))}")


def run_large(report: Report, options: Options) -> None:
    """The plain query alone, of more documents, beside Lucene."""
    run(report, replace(options, kinds=[PLAIN], peers=["Lucene"]))


def shared_cores(count: int) -> str:
    """Where the client runs while the server has one core, two, and all of them."""
    shared = [name for used, name in ((1, "one core"), (2, "two cores"), (count, "all cores")) if used >= count]
    if count == 1:
        return "the client shares the server's one core"
    return (
        f"the client has a core that the server has not, but for {' and '.join(dict.fromkeys(shared))}, which it shares"
    )


def _peers(report: Report, file: Path, stack: contextlib.ExitStack, options: Options) -> Iterator[Engine]:
    """Those that can be had here."""
    for name, serving, path, hits in (
        ("Lucene", lucene_peer.serving, kinds.lucene_path, kinds.lucene_hits),
        ("OpenSearch", opensearch_peer.serving, kinds.opensearch_path, kinds.opensearch_hits),
    ):
        if name not in options.peers:
            continue
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
            _wait_for_rest([each.server for each in engines])
            rounds[engine.name].append(_measure(engine.server, paths[engine.name], options, kind is PLAIN))
    return {name: _median(measured) for name, measured in rounds.items()}


def _wait_for_rest(servers: Sequence[Running]) -> None:
    """Returns when no server uses a core any more: the compilers of a Java peer work on for seconds after its turn."""
    end, used = time.monotonic() + MOST_REST_SECONDS, -1.0
    while time.monotonic() < end:
        before, used = used, sum(server.cpu_seconds() for server in servers)
        if 0 <= used - before <= REST_SECONDS / 50:
            return
        time.sleep(REST_SECONDS)


def _measure(server: Running, paths: list[str], options: Options, wholly: bool) -> Measured:
    """One round. `wholly`: also on one core and on two, and over one connection."""
    switches, cpu_seconds = server.context_switches(), server.cpu_seconds()
    taken = load(server.port, paths, options.connections)
    core_rate = len(paths) / (server.cpu_seconds() - cpu_seconds)
    each = (server.context_switches() - switches) / len(paths)
    measured = Measured(taken.rate, core_rate, taken.quantile_us(0.5), taken.quantile_us(0.99), each)
    if not wholly:
        return measured
    alone = load(server.port, paths[: options.other_queries_count], 1)
    return replace(
        measured,
        client_us=1e6 * taken.client_seconds / len(paths),
        pinned_rate=_rate_on(1, server, paths, options),
        two_rate=_rate_on(SCALED_CORES, server, paths, options) if _has_more_cores() else taken.rate,
        alone_p50_us=alone.quantile_us(0.5),
        alone_p99_us=alone.quantile_us(0.99),
    )


def _has_more_cores() -> bool:
    return len(os.sched_getaffinity(0)) > SCALED_CORES


def _rate_on(count: int, server: Running, paths: list[str], options: Options) -> float:
    """Queries a second while the server is bound to `count` cores, and the client to the others, if there are any."""
    cores = sorted(os.sched_getaffinity(0))
    with server.pinned(cores[:count]):
        return load(server.port, paths, options.connections, cores[count:]).rate


def _median(rounds: Sequence[Measured]) -> Measured:
    names = [field.name for field in fields(Measured)]
    return Measured(**{name: statistics.median(getattr(each, name) for each in rounds) for name in names})


def _work(kind: Kind, options: Options) -> str:
    return f"{kind.name} over HTTP, {options.documents_count:,} documents, {options.connections} connections"


def _add_rows(report: Report, kind: Kind, options: Options, measured: Mapping[str, Measured]) -> None:
    for figure in figures(kind, options.documents_count):
        report.add(_row(_work(kind, options), figure, measured))


def _row(work: str, figure: Figure, measured: Mapping[str, Measured]) -> Row:
    """Ours beside each peer, with the ratios in the same order."""
    values: dict[str, float] = {name: getattr(each, figure.attribute) for name, each in measured.items()}
    mine = values.pop("ours")
    return Row(
        f"{work}: {figure.name}",
        figure.shown(mine),
        ", ".join(f"{name} {figure.shown(value)}" for name, value in values.items()),
        ", ".join(f"{mine / value:.2f}" for value in values.values()),
        figure.target,
        figure.met(mine, values.get("Lucene")),
    )
