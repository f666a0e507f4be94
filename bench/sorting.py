"""Sorting all documents of a content node by attributes: in process, CPU time of the whole query with ten summaries."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from bench.report import Report, Row, Times
from paperwasp.content.node import ContentNode
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.query import Match, Order, Query, Rank, SortKey
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas

SCHEMA = """
schema row { document row {
    field number type int { indexing: attribute | summary }
    field real type double { indexing: attribute }
    field group type int { indexing: attribute }
    field name type string { indexing: attribute } } }
"""
MOST_INT_MS = 10.0
SORTS: tuple[tuple[str, tuple[SortKey, ...], float | None], ...] = (
    ("an int, rising", (SortKey("number"),), MOST_INT_MS),
    ("an int, falling", (SortKey("number", True),), MOST_INT_MS),
    ("a double", (SortKey("real"),), None),
    ("100 groups, then an int", (SortKey("group"), SortKey("number")), None),
    ("a string of 10,000, lowercase", (SortKey("name"),), None),
    ("a string of 10,000, by uca", (SortKey("name", False, "uca", "nb_NO"),), None),
)


@dataclass(frozen=True)
class Options:
    documents_count: int = 1_000_000
    repeats: int = 21
    batch: int = 2_000


def run(report: Report, options: Options) -> None:
    """One row for each way to sort."""
    schemas = parse_schemas({"schemas/row.sd": SCHEMA}).schemas
    with TemporaryDirectory() as directory:
        log = FileOperationLog(Path(directory) / "log")
        node = ContentNode(Path(directory) / "node", log)
        try:
            node.configure(1, schemas)
            _fill(node, options)
            for name, keys, most_ms in SORTS:
                _sort(report, node, options, name, keys, most_ms)
        finally:
            node.stop()
            log.close()


def _fill(node: ContentNode, options: Options) -> None:
    values = random.Random(1)
    for start in range(0, options.documents_count, options.batch):
        count = min(options.batch, options.documents_count - start)
        done, left = Event(), [count]

        def answer(_: object, done: Event = done, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                done.set()

        for number in range(start, start + count):
            fields = {
                "number": values.getrandbits(30),
                "real": values.random(),
                "group": values.randrange(100),
                "name": f"Name {values.randrange(10_000)}",
            }
            node.operations.submit(Put(DocumentId("b", "row", str(number)), fields), answer)
        done.wait()


def _sort(
    report: Report, node: ContentNode, options: Options, name: str, keys: tuple[SortKey, ...], most_ms: float | None
) -> None:
    request, profiles = Query(Match(TrueItem()), Rank("unranked"), Order(keys=keys)), ServedSchemas()
    taken = []
    for _ in range(options.repeats + 1):
        started = time.thread_time_ns()
        answer = search(node.reader.view(), request, profiles)
        taken.append(time.thread_time_ns() - started)
    if answer.total_count != options.documents_count or len(answer.hits) != request.order.hits:
        raise AssertionError(f"{answer.total_count} documents match, {len(answer.hits)} are shown")
    times = Times(taken[1:])  # the first one orders the strings, for all that come
    met = None if most_ms is None else times.quantile_us(0.5) <= most_ms * 1000
    target = "" if most_ms is None else f"≤ {most_ms:g} ms"
    report.add(Row(f"sort {options.documents_count:,} matches by {name}", str(times), target=target, met=met))
