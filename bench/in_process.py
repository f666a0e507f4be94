"""The service as an object beside the service over HTTP: start, reset, queries and a feed of the same documents.

The processor time of a query over HTTP is that of both sides: pyvespa asks, as it would from a program in Python. What
the server takes of it is shown beside it. The feed is of an Arrow table, beside `vespa feed` of a file.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pyarrow
from vespa.application import Vespa

import paperwasp
from bench.feed import feed, feed_file
from bench.http_query import requests
from bench.layers import NothingMeasured
from bench.report import Report, Row
from bench.service import APPLICATION, data_directory
from bench.service import paperwasp as served
from paperwasp.embedded.temporary import TemporaryDirectory, memory_directory

Asked = TypeVar("Asked")
MOST_CPU_RATIO = 0.6
LEAST_FEED_RATIO = 2.0
MOST_START_SECONDS = 0.5
MOST_IMPORT_SECONDS = 0.1
MOST_CLEAR_SECONDS = 0.02
MOST_RESET_SECONDS = 0.05
_RESETS = 30
_RESET_DOCUMENTS = 100
_RESET_QUERIES = 10
_STARTS = 5
_FIRST_QUERY = """
import time
begun = time.perf_counter()
import paperwasp
imported = time.perf_counter()
with paperwasp.Service({application!r}) as service:
    rows = [{{"id": str(n), "title": "first words", "body": "and more", "year": n}} for n in range(4)]
    service.feed(rows, schema="article")
    assert service.query("words").total == 4
    print(imported - begun, time.perf_counter() - begun)
"""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    """Those that are searched."""
    fed_count: int = 200_000
    queries_count: int = 3000


def run(report: Report, options: Options) -> None:
    _start(report)
    _reset(report)
    _feed(report, options.fed_count)
    paths = list(islice(requests("default", "default"), options.queries_count))
    with data_directory() as data:
        with paperwasp.Service(APPLICATION, data) as service:
            service.feed(_table(feed_file(options.documents_count)))
        with paperwasp.Service(data_dir=data) as service:  # what is on disk, as the other one has it
            asked = [dict(urllib.parse.parse_qsl(path.partition("?")[2])) for path in paths]
            here_us = _queries(asked, lambda parameters: _hits(service, parameters), time.process_time)
        with served(data, None) as server, Vespa(url="http://127.0.0.1", port=server.port).syncio() as client:
            server_us = _queries(asked, lambda parameters: len(client.query(parameters).hits), server.cpu_seconds)
            client_us = _queries(asked, lambda parameters: len(client.query(parameters).hits), time.process_time)
    work = f"query in process, OR of two words, {options.documents_count:,} documents: CPU"
    ratio = here_us / (server_us + client_us)
    figures = (f"{here_us:.0f} µs", f"HTTP: server {server_us:.0f} + pyvespa {client_us:.0f} µs", f"{ratio:.2f}")
    report.add(Row(work, *figures, f"≤ {MOST_CPU_RATIO} of HTTP's", ratio <= MOST_CPU_RATIO))


def _start(report: Report) -> None:
    """Fresh processes, the first of which only writes the bytecode, as it does where people install the package."""
    program = _FIRST_QUERY.format(application=str(APPLICATION))
    times = []
    with tempfile.TemporaryDirectory() as bytecode:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(_STARTS + 1):
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            times.append([float(each) for each in done.stdout.split()])
    imported, answered = (statistics.median(each) for each in zip(*times[1:], strict=True))
    for work, seconds, most in (
        ("import paperwasp", imported, MOST_IMPORT_SECONDS),
        ("service in process: import, start, 4 documents, first answer", answered, MOST_START_SECONDS),
    ):
        report.add(Row(work, f"{seconds:.3f} s", target=f"≤ {most} s", met=seconds <= most))


def _reset(report: Report) -> None:
    """A test's work with the fixtures of the plugin: an empty service, documents, queries. Medians of many."""
    rows = [
        {"id": str(number), "title": f"first words {number}", "body": "and more", "year": 1990 + number % 30}
        for number in range(_RESET_DOCUMENTS)
    ]
    clears, wholes = [], []
    with (
        closing(TemporaryDirectory(memory_directory())) as directory,
        paperwasp.Service(APPLICATION, directory.path, port=0) as service,
    ):
        for _ in range(_RESETS + 3):
            begun = time.perf_counter()
            service.clear()
            clears.append(time.perf_counter() - begun)
            service.feed(rows)
            for number in range(_RESET_QUERIES):
                if not service.query("words", hits=number).total:
                    raise NothingMeasured("the documents are not found")
            wholes.append(time.perf_counter() - begun)
    for work, times, most in (
        ("clear() of an application with 100 documents", clears, MOST_CLEAR_SECONDS),
        ("clear(), feed of 100 documents, 10 queries", wholes, MOST_RESET_SECONDS),
    ):
        seconds = statistics.median(times[3:])
        report.add(Row(work, f"{seconds * 1e3:.1f} ms", target=f"≤ {most * 1e3:.0f} ms", met=seconds <= most))


def _feed(report: Report, count: int) -> None:
    """An Arrow table in process, and `vespa feed` of the same documents as a file."""
    file = feed_file(count)
    with data_directory() as data, served(data) as server:
        over_http = feed(server, file)
    table = _table(file)
    with data_directory() as data, paperwasp.Service(APPLICATION, data) as service:
        before = time.process_time()
        fed = service.feed(table)
        cpu_us = (time.process_time() - before) / count * 1e6
    if fed.ok != count:
        raise AssertionError(f"the feed failed: {fed}")
    rate = fed.ok / fed.seconds
    ratio = rate / over_http.rate
    there = f"vespa feed {over_http.rate:,.0f}/s, CPU {over_http.server_us:.0f} + {over_http.client_us:.0f} µs"
    work = f"feed of an Arrow table in process, {fed.ok:,} documents of 1 KB, synced"
    figures = (f"{rate:,.0f}/s, CPU {cpu_us:.0f} µs", there, f"{ratio:.2f}")
    report.add(Row(work, *figures, f"≥ {LEAST_FEED_RATIO} of vespa feed", ratio >= LEAST_FEED_RATIO))


def _table(file: Path) -> pyarrow.Table:
    with file.open(encoding="utf-8") as lines:
        operations = [json.loads(line) for line in lines]
    return pyarrow.Table.from_pylist([{"id": each["put"], **each["fields"]} for each in operations])


def _hits(service: paperwasp.Service, parameters: Mapping[str, object]) -> int:
    """How many hits are shown, as objects."""
    return len(service.query(parameters).hits)


def _queries(asked: Sequence[Asked], ask: Callable[[Asked], object], clock: Callable[[], float]) -> float:
    """CPU microseconds of a query, after a quarter of them to warm up. Errors: NothingMeasured."""
    for each in asked[: len(asked) // 4]:
        if not ask(each):
            raise NothingMeasured(f"the query finds nothing: {each}")
    before = clock()
    for each in asked:
        ask(each)
    return (clock() - before) / len(asked) * 1e6
