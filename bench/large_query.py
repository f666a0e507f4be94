"""One large query by one thread and by two, as rank profiles say by `num-threads-per-search`: over HTTP, by the clock.

nativeRank over a tenth of the documents, grouping of all of them ranked by bm25, dot products with vectors. Requests of
one and of two threads take turns over one connection; a figure is the median of a round, and the least of the rounds
counts. Both answers must be the same. Where neighbours need the second core, only the CPU time beside it means much.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import paperwasp as library
from bench.connection import Connection
from bench.corpus import CACHE, SEED
from bench.grouping_http import TOP, made
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

APPLICATION: Final = Path(__file__).parent / "large_application"
THREADS: Final = (1, 2)
LEAST_RATIO: Final = 1.8
VECTOR_SIZE: Final = 128


@dataclass(frozen=True)
class Options:
    """A tenth of `documents_count` is ranked by nativeRank, and as many vectors are compared."""

    documents_count: int = 1_000_000
    queries_count: int = 15
    rounds: int = 3


@dataclass(frozen=True)
class Work:
    """A query: what it does, its YQL, its rank profile but for the number of threads, its other parameters."""

    name: str
    yql: str
    ranking: str
    parameters: dict[str, str]

    def path(self, threads: int) -> str:
        ranking = f"{self.ranking}_{threads}"
        given = {"ranking": ranking, "nocache": "true", "timeout": "60s"}
        return "/search/?" + urllib.parse.urlencode({"yql": self.yql, **self.parameters, **given})


def works(options: Options) -> list[Work]:
    groups = f"all(group(word) max({TOP}) precision({TOP}) order(-count()) each(output(count())))"
    vector = np.random.default_rng(SEED).normal(size=VECTOR_SIZE).astype(np.float32).tolist()
    tenth = options.documents_count // 10
    return [
        Work(
            f"nativeRank over {tenth:,} matches, of {options.documents_count:,} documents",
            'select * from entry where body contains "left"',
            "native",
            {},
        ),
        Work(
            f"grouping of {options.documents_count:,} documents ranked by bm25",
            f'select * from entry where body contains "common" | {groups}',
            "bm25",
            {"hits": "0"},
        ),
        Work(
            f"dot products with {tenth:,} vectors of {VECTOR_SIZE}",
            "select * from point where true",
            "dot",
            {"input.query(q)": json.dumps(vector)},
        ),
    ]


def run(report: Report, options: Options) -> None:
    with data_directory() as data:
        fill_large(data, options.documents_count)
        with paperwasp(data, None) as server:
            connection = Connection(server.port)
            for work in works(options):
                paths = [work.path(threads) for threads in THREADS]
                count = check([connection.answer(path) for path in paths])
                spent = [_Spent(*times) for times in zip(*_rounds(server, connection, paths, options), strict=True)]
                report.add(row(f"{work.name}, {count:,} found", spent))
            connection.close()


def fill_large(data: Path, count: int) -> None:
    """Entries, and a tenth as many points. Errors: AssertionError unless all are accepted."""
    documents = made(count)
    vectors = np.random.default_rng(SEED).normal(size=(count // 10, VECTOR_SIZE)).astype(np.float32)
    path = CACHE / "feed-large.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, (body, word) in enumerate(zip(documents.bodies, documents.words, strict=True)):
            file.write(_line("entry", number, {"body": body, "word": word}))
        for number, vector in enumerate(vectors.tolist()):
            file.write(_line("point", number, {"vector": {"values": vector}}))
    with library.Service(APPLICATION, data) as service:
        fed = service.feed(path)
    path.unlink()
    if fed.failed or fed.ok != count + len(vectors):
        raise AssertionError(f"the feed failed: {fed}")


def _line(kind: str, number: int, fields: dict[str, Any]) -> str:
    return json.dumps({"put": f"id:bench:{kind}::{number}", "fields": fields}) + "\n"


def check(answers: Sequence[bytes]) -> int:
    """How many documents all of the answers found. Errors: NothingMeasured, AssertionError where they differ."""
    first, *others = (json.loads(answer)["root"] for answer in answers)
    if not first["fields"]["totalCount"] or not first.get("children"):
        raise NothingMeasured("the query finds nothing")
    if any(each != first for each in others):
        raise AssertionError("the answers of one thread and of more differ")
    return int(first["fields"]["totalCount"])


@dataclass(frozen=True)
class _Spent:
    """Milliseconds of a request by the clock, and of the server's processor time."""

    clock_ms: float
    cpu_ms: float


def _rounds(
    server: Running, connection: Connection, paths: Sequence[str], options: Options
) -> tuple[list[float], list[float]]:
    """Of each path the least milliseconds by the clock and of CPU, of the rounds."""
    clock: list[list[float]] = [[] for _ in paths]
    cpu: list[list[float]] = [[] for _ in paths]
    for _ in range(options.rounds):
        for number, path in enumerate(paths):
            before, times = server.cpu_seconds(), []
            for _ in range(options.queries_count):
                begun = time.perf_counter()
                connection.answer(path)
                times.append((time.perf_counter() - begun) * 1e3)
            clock[number].append(statistics.median(times))
            cpu[number].append((server.cpu_seconds() - before) / options.queries_count * 1e3)
    return list(map(min, clock)), list(map(min, cpu))


def row(work: str, spent: Sequence[_Spent], cores: int | None = None) -> Row:
    """Two threads beside one. It is judged where there are two cores."""
    one, two = spent
    ratio = one.clock_ms / two.clock_ms
    has_two = (len(os.sched_getaffinity(0)) if cores is None else cores) >= len(spent)
    return Row(
        f"one query over HTTP with two threads: {work}",
        f"{two.clock_ms:.1f} ms (CPU {two.cpu_ms:.1f})",
        f"with one thread {one.clock_ms:.1f} ms (CPU {one.cpu_ms:.1f})",
        f"{ratio:.2f} times as fast",
        f"≥ {LEAST_RATIO} times",
        ratio >= LEAST_RATIO if has_two else None,
    )
