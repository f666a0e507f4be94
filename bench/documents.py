"""Documents one at a time and all of them: updates in place, gets by id, a streamed visit, memory for each.

The documents are those of the feed benchmark, 1 KB each, in two indexed strings and three attributes.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

from bench.connection import Connection
from bench.corpus import CACHE, SEED
from bench.feed import ceiling, cpu_row, feed, feed_file, ratio_row
from bench.report import Report, Row, Times
from bench.service import Running, data_directory, paperwasp
from paperwasp import limits

LEAST_UPDATE_RATIO = 0.7
MOST_UPDATE_US = 25
MOST_GROWTH_BYTES = 1_000_000
"""What logs of the store itself may take."""
MOST_GET_P50_US = 600
LEAST_VISIT_MB = 40.0
MOST_VISIT_GROWTH_MB = 100.0
MOST_DOCUMENT_BYTES = 400
DOCUMENT_PATH = "/document/v1/bench/article/docid/"
VISIT_PATH = DOCUMENT_PATH + "?cluster=articles&stream=true&timeout=600s"
_PUT = b'\n{"put":'
"""How the line of a document begins."""
GROWN = {"index": "node/index-*", "store": "node/store"}
"""What an update of an attribute must leave alone, and its directories in that of a content cluster."""
ROWS = "node/index-*/rows/*.rows"
"""The files of the row store, which say in their names of which rows they are."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    gets_count: int = 3000
    repeats: int = 2


def run_update(report: Report, options: Options) -> None:
    """Updates of one int attribute with `vespa feed`, beside the handler that only decodes the JSON."""
    updates, ours, most = update_file(options.documents_count), [], []
    with data_directory() as data:
        with paperwasp(data) as server:
            feed(server, feed_file(options.documents_count))
            _wait_for_rows(data)
        before = _sizes(data)
        for _ in range(options.repeats):
            with paperwasp(data, None) as server:
                ours.append(feed(server, updates))
            with ceiling() as server:
                most.append(feed(server, updates))
        grown = {name: size - before[name] for name, size in _sizes(data).items()}
    work = f"vespa feed, {options.documents_count:,} updates of one int attribute"
    report.add(ratio_row(work, ours, most, LEAST_UPDATE_RATIO))
    report.add(cpu_row(work, ours, most, MOST_UPDATE_US))
    shown, met = ", ".join(f"{name} {size / 1e6:+.1f} MB" for name, size in grown.items()), max(grown.values())
    report.add(Row(f"{work}: growth", shown, target="≤ 1 MB each", met=met <= MOST_GROWTH_BYTES))


def run_read(report: Report, options: Options) -> None:
    """Gets by id, a streamed visit of everything, and the memory that the documents take."""
    with data_directory() as data:
        with paperwasp(data) as server:
            empty_mb = anonymous_mb(server)
            feed(server, feed_file(options.documents_count))
        with paperwasp(data, None) as server:
            _memory(report, server, empty_mb, options)
            _gets(report, server, options)
            _visit(report, server, options)


def _memory(report: Report, server: Running, empty_mb: float, options: Options) -> None:
    """After a start: what feeding needed meanwhile is gone, and the index is mapped."""
    spent_bytes = (anonymous_mb(server) - empty_mb) * 1e6 / options.documents_count
    work = f"memory beside the mapped index, of each of {options.documents_count:,} documents"
    row = Row(work, f"{spent_bytes:.0f} B", target=f"≤ {MOST_DOCUMENT_BYTES} B", met=spent_bytes <= MOST_DOCUMENT_BYTES)
    report.add(row)


def anonymous_mb(server: Running) -> float:
    """Resident memory that is no file's."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) * 1024 / 1e6


def _gets(report: Report, server: Running, options: Options) -> None:
    choice = random.Random(SEED)
    paths = [f"{DOCUMENT_PATH}{choice.randrange(options.documents_count)}" for _ in range(options.gets_count)]
    connection = Connection(server.port)
    for path in paths[: len(paths) // 4]:
        connection.answer(path)
    times = Times([_spent_ns(connection.answer, path) for path in paths])
    connection.close()
    p50 = times.quantile_us(0.5)
    work = f"get by id, {options.documents_count:,} documents, one connection"
    report.add(Row(f"{work}: p50", f"{p50:.0f} µs", target=f"≤ {MOST_GET_P50_US} µs", met=p50 <= MOST_GET_P50_US))
    report.add(Row(f"{work}: p99", f"{times.quantile_us(0.99):.0f} µs"))


def _spent_ns(work: Callable[[str], bytes], path: str) -> int:
    start = time.perf_counter_ns()
    work(path)
    return time.perf_counter_ns() - start


def _visit(report: Report, server: Running, options: Options) -> None:
    before_mb, start = anonymous_mb(server), time.perf_counter()
    size_bytes, visited, most_mb = visit(server)
    seconds = time.perf_counter() - start
    if visited != options.documents_count:
        raise AssertionError(f"{visited} of {options.documents_count} documents were visited")
    rate, grown = size_bytes / 1e6 / seconds, most_mb - before_mb
    work = f"streamed visit of {options.documents_count:,} documents of 1 KB"
    report.add(Row(work, f"{rate:.0f} MB/s", target=f"≥ {LEAST_VISIT_MB:.0f} MB/s", met=rate >= LEAST_VISIT_MB))
    target = f"≤ {MOST_VISIT_GROWTH_MB:.0f} MB"
    report.add(Row(f"{work}: memory grows by", f"{grown:.0f} MB", target=target, met=grown <= MOST_VISIT_GROWTH_MB))


def visit(server: Running) -> tuple[int, int, float]:
    """Bytes and documents of a streamed visit, and the most memory that the server had meanwhile."""
    size_bytes, documents_count, most_mb, tail = 0, 0, 0.0, b"\n"
    connection = HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", VISIT_PATH)
    response = connection.getresponse()
    while data := response.read1(1 << 20):
        if size_bytes >> 24 != (size_bytes + len(data)) >> 24 or not size_bytes:
            most_mb = max(most_mb, anonymous_mb(server))
        size_bytes += len(data)
        documents_count += (tail + data).count(_PUT)
        tail = (tail + data)[1 - len(_PUT) :]
    connection.close()
    return size_bytes, documents_count, most_mb


def _wait_for_rows(data: Path) -> None:
    """Until the row store has what was put: it is filled behind the writer, and would else grow beside the updates."""
    last, since = sorted(data.rglob(ROWS)), time.monotonic()
    while time.monotonic() < since + 3 * limits.ROW_SECONDS:
        time.sleep(0.1)
        found = sorted(data.rglob(ROWS))
        if found != last:
            last, since = found, time.monotonic()


def _sizes(data: Path) -> dict[str, int]:
    """Bytes of the parts of the content nodes that `GROWN` names."""
    sizes = {
        name: sum(file.stat().st_size for folder in data.rglob(place) for file in folder.rglob("*") if file.is_file())
        for name, place in GROWN.items()
    }
    if not all(sizes.values()):
        raise AssertionError(f"there should be files of each: {sizes}")
    return sizes


def update_file(documents_count: int) -> Path:
    """An update of each document of the feed file, in another order."""
    path = CACHE / f"update-{documents_count}.jsonl"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        numbers = list(range(documents_count))
        random.Random(SEED).shuffle(numbers)
        with path.open("w", encoding="utf-8") as file:
            file.writelines(update(number) for number in numbers)
    return path


def update(number: int) -> str:
    """One line of Vespa's feed format that changes one attribute."""
    year = random.Random(SEED - number).randrange(1990, 2026)
    fields = {"year": {"assign": year}}
    return json.dumps({"update": f"id:bench:article::{number}", "fields": fields}) + "\n"
