"""Queries over HTTP: an OR of two words on one connection kept open, against documents that are flushed to disk.

In one field, ranked by bm25 of it; and in a fieldset of two, ranked by the sum. Ten hits with all their fields.
"""

from __future__ import annotations

import itertools
import json
import random
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass

from bench import corpus as corpora
from bench.connection import Connection
from bench.feed import feed, feed_file
from bench.layers import NothingMeasured, layers
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

MOST_P50_US = 1000
MOST_CPU_US = 450
LAYER_QUERIES = 500
FIELDS = (("body", "body"), ("default", "default"))
"""Where to search, and the rank profile."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 100_000
    queries_count: int = 3000


def run(report: Report, options: Options) -> None:
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, feed_file(options.documents_count))
        with paperwasp(data, None) as server:
            for names in FIELDS:
                _report(report, server, options, *names)
        for field, profile in FIELDS:
            stages = layers(data, list(itertools.islice(requests(field, profile), LAYER_QUERIES)))
            shares = ", ".join(f"{name} {spent_us:.0f}" for name, spent_us in stages.items())
            report.remark(f"a query in {field} without a compiled plan, in process, µs CPU: {shares}")


def _report(report: Report, server: Running, options: Options, field: str, profile: str) -> None:
    queries = list(itertools.islice(requests(field, profile), options.queries_count))
    connection = Connection(server.port)
    for query in queries[: options.queries_count // 4]:
        if not total_count(connection.answer(query)):
            raise NothingMeasured(f"the query finds nothing: {query}")
    times = []
    before = server.cpu_seconds_by_thread()
    for query in queries:
        start = time.perf_counter_ns()
        connection.answer(query)
        times.append((time.perf_counter_ns() - start) / 1e3)
    spent = {name: seconds - before.get(name, 0) for name, seconds in server.cpu_seconds_by_thread().items()}
    cpu_us = sum(spent.values()) / len(queries) * 1e6
    connection.close()
    times.sort()
    p50 = times[len(times) // 2]
    work = f"query over HTTP, OR of two words in {field}, {options.documents_count:,} documents"
    report.add(Row(f"{work}: p50", f"{p50:.0f} µs", target=f"≤ {MOST_P50_US} µs", met=p50 <= MOST_P50_US))
    report.add(Row(f"{work}: p99", f"{times[int(len(times) * 0.99)]:.0f} µs"))
    report.add(Row(f"{work}: server CPU", f"{cpu_us:.0f} µs", target=f"≤ {MOST_CPU_US} µs", met=cpu_us <= MOST_CPU_US))


def requests(field: str, profile: str) -> Iterator[str]:
    """Paths of queries made of two words of a title each, in an order that is always the same."""
    choice = random.Random(corpora.SEED)
    titles = [title.split() for title, _ in itertools.islice(corpora.records(), 1000)]
    pairs = [words for title in titles if len(words := [w for w in title if w.isalnum()]) > 1]
    while True:
        a, b = choice.sample(choice.choice(pairs), 2)
        yql = f'select * from article where {field} contains "{a}" or {field} contains "{b}"'
        yield "/search/?" + urllib.parse.urlencode({"yql": yql, "ranking": profile, "nocache": "true"})


def total_count(answer: bytes) -> int:
    """How many documents the query of this answer found."""
    return int(json.loads(answer)["root"]["fields"]["totalCount"])
