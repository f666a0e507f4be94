"""Instruments of a warm query in process: how long it holds the interpreter's lock, and what it calls and makes.

The lock in process: the processor time of this process while queries are answered, eight at once as from as many
connections but without sockets, less what kernels and threads without the lock report as theirs (`core/unlocked.hpp`).
Reading the clocks is in it, and so is what other libraries do without the lock: it is held no longer than that.

The lock over HTTP, where requests have routes: the processor time of a server's threads, but for those of the core that
never take the lock. What the event loop's thread does without the lock, as reading sockets, is in it: an upper bound.

An instrument that has measured nothing fails.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from bench import http_kinds as kinds
from bench.calls import Calls, InProcess, get, in_process, opened
from bench.corpus import CACHE
from bench.feed import feed_file
from bench.filled import fill
from bench.layers import NothingMeasured
from bench.load import load
from bench.report import Report, Row
from bench.service import APPLICATION, Running, data_directory, paperwasp
from paperwasp.core import _core

CONNECTIONS: Final = 8
MOST_LOCK_US: Final = 30
MOST_PYTHON_CALLS: Final = 60
THREADS_WITHOUT_LOCK: Final = "core-queries"
"""The name that `core/plans/plan_pool.cpp` gives them."""
CALLS_DOCUMENTS, CALLS_QUERIES = 2000, 60
"""How many documents there are, and queries are asked, where calls are counted: they do not depend on the documents."""
_MUCH: Final = 1 << 22
"""Rows of a column whose filter is so much work that the lock is released for it."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    queries_count: int = 500
    rounds: int = 3


def run(report: Report, options: Options) -> None:
    file = feed_file(options.documents_count)
    work = f"warm OR in process, {options.documents_count:,} documents, {CONNECTIONS} at once"
    with data_directory() as data:
        fill(data, file)
        with opened(data / "content", APPLICATION, counts_calls=False) as service:
            paths = [kinds.patient_path(kinds.PLAIN, text) for text in _texts(file, options.queries_count)]
            cpu_us, held_us = lock_us(service, paths, options.rounds)
        with paperwasp(data, None) as server:
            http_cpu_us, http_held_us = lock_us_over_http(server, paths, options.rounds)
    _add_lock(report, work, cpu_us, held_us)
    _add_lock(report, work.replace("in process", "over HTTP"), http_cpu_us, http_held_us)
    calls = warm_calls(file)
    for name, value, most in (("Python calls", calls.python, MOST_PYTHON_CALLS),):
        report.add(Row(f"warm OR in process: {name}", f"{value:,}", target=f"≤ {most}", met=value <= most))
    report.remark(f"a warm query in process: {calls}")


def _add_lock(report: Report, work: str, cpu_us: float, held_us: float) -> None:
    shown, target = f"{held_us:.0f} µs of {cpu_us:.0f} µs CPU", f"≤ {MOST_LOCK_US} µs"
    report.add(Row(f"{work}: the lock is held", shown, target=target, met=held_us <= MOST_LOCK_US))


def _texts(file: Path, count: int) -> list[str]:
    return kinds.texts(kinds.PLAIN, file, count)


def lock_us(service: InProcess, paths: Sequence[str], rounds: int) -> tuple[float, float]:
    """Microseconds of processor time of a query, and of it with the lock held, of the round with the least of that.

    Errors: NothingMeasured where queries find nothing, or where the core does not count what it does without the lock.
    """
    requests = [get(path) for path in paths]
    found = sum(bool(kinds.our_hits(service.answer(request))) for request in requests)
    if found * 2 < len(requests) or not requests:
        raise NothingMeasured(f"{found} of {len(requests)} queries find something")
    check_unlocked()
    measured = []
    for _ in range(rounds):
        cpu_us, unlocked_us = spent_us(lambda: service.answer_all(requests, CONNECTIONS))
        measured.append((cpu_us / len(requests), held_us(cpu_us, unlocked_us) / len(requests)))
    return min(measured, key=lambda each: each[1])


def lock_us_over_http(server: Running, paths: Sequence[str], rounds: int) -> tuple[float, float]:
    """Microseconds of processor time of a query to a server that answers CONNECTIONS at once, and the most of it with
    the lock held.

    Errors: NothingMeasured where no query was answered by threads that never take the lock.
    """
    load(server.port, list(paths) * 4, CONNECTIONS)
    measured = []
    for _ in range(rounds):
        before = server.cpu_seconds_by_thread()
        load(server.port, paths, CONNECTIONS)
        spent = {each: seconds - before.get(each, 0) for each, seconds in server.cpu_seconds_by_thread().items()}
        free = sum(seconds for (_, name), seconds in spent.items() if name == THREADS_WITHOUT_LOCK)
        if free <= 0:
            raise NothingMeasured(f"no thread {THREADS_WITHOUT_LOCK!r} has answered a query")
        measured.append((sum(spent.values()) * 1e6 / len(paths), (sum(spent.values()) - free) * 1e6 / len(paths)))
    return min(measured, key=lambda each: each[1])


def spent_us(work: Callable[[], object]) -> tuple[float, float]:
    """Microseconds of processor time that some work takes of this process, and of it without the lock."""
    with _counting():
        cpu_ns, unlocked_ns = time.process_time_ns(), _core.unlocked_ns()
        work()
        return (time.process_time_ns() - cpu_ns) / 1e3, (_core.unlocked_ns() - unlocked_ns) / 1e3


@contextmanager
def _counting() -> Iterator[None]:
    _core.count_unlocked(True)
    try:
        yield
    finally:
        _core.count_unlocked(False)


def held_us(cpu_us: float, unlocked_us: float) -> float:
    """What is left. Errors: NothingMeasured where there was no time, or more was counted than there was."""
    if not 0 <= unlocked_us < cpu_us:
        raise NothingMeasured(f"{unlocked_us:.0f} µs without the lock are counted of {cpu_us:.0f} µs")
    return cpu_us - unlocked_us


def check_unlocked() -> None:
    """Errors: NothingMeasured where a kernel with much work to do is not counted."""
    column, bitmap = np.zeros(_MUCH, np.int32), np.zeros(_MUCH // 64, np.uint64)
    _, unlocked_us = spent_us(lambda: _core.range_bitmap(column, 0, 1, bitmap))
    if unlocked_us <= 0:
        raise NothingMeasured("what kernels do without the lock is not counted")


def warm_calls(file: Path) -> Calls:
    """The median query, by its Python calls, of a small index. Errors: NothingMeasured."""
    with file.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in islice(lines, CALLS_DOCUMENTS)]
    paths = [kinds.our_path(kinds.PLAIN, text) for text in _texts(file, CALLS_QUERIES)]
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as directory,
        in_process(Path(directory), APPLICATION, documents) as service,
    ):
        for path in (*paths, *paths):
            service.answer(get(path))
        return median_calls(service, paths)


def median_calls(service: InProcess, paths: Sequence[str]) -> Calls:
    """By Python calls, of the queries that find something. Errors: NothingMeasured where none does."""
    requests = [get(path) for path in paths]
    counted = [service.calls(request) for request in requests]
    found = [bool(kinds.our_hits(service.answer(request))) for request in requests]
    finding = sorted((calls for calls, has in zip(counted, found, strict=True) if has), key=lambda each: each.python)
    if not finding:
        raise NothingMeasured(f"none of {len(paths)} queries finds anything")
    return finding[len(finding) // 2]
