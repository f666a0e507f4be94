"""A content node to rank on, and what ranking costs on it: shared by the benchmarks of ranking."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Semaphore
from typing import Any

from bench.report import Row
from paperwasp.base.records import replace
from paperwasp.content.node import ContentNode
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.schema.files import PackageFiles
from paperwasp.search.query import Query
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas


def bound_row(work: str, ours: float, most: float, unit: str) -> Row:
    """A figure beside the most that it may be."""
    return Row(work, f"{ours:.3g} {unit}", target=f"≤ {most:g} {unit}", met=ours <= most)


def ratio_row(work: str, ours: float, theirs: float, most: float, peer: str) -> Row:
    told, shown = f"{ours * 1000:.2f} ms", f"{peer} {theirs * 1000:.2f} ms"
    return Row(work, told, shown, f"{ours / theirs:.2f} of it", f"≤ {most:.2f}", ours <= most * theirs)


def beyond_matching(node: ContentNode, request: Query, repeats: int) -> float:
    """CPU seconds of the query less those of one that ranks by nothing; the least of each."""
    profiles = ServedSchemas()
    asked = replace(request, show=replace(request.show, summary="nothing"))

    def seconds(profile: str) -> float:
        return least_seconds(
            lambda: search(node.reader.view(), replace(asked, rank=replace(asked.rank, profile=profile)), profiles),
            repeats,
        )

    return max(seconds(request.rank.profile) - seconds("nothing"), 1e-9)


def least_seconds(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        started = time.thread_time_ns()
        work()
        taken.append(time.thread_time_ns() - started)
    return min(taken) / 1e9


@contextmanager
def node_of(
    schema: str, fields: Callable[[int], Mapping[str, Any]], count: int, files: PackageFiles | None = None
) -> Iterator[ContentNode]:
    """A content node with `count` documents of type row, flushed to its index. `files`: those of the package."""
    schemas = {
        name: replace(each, files=files) for name, each in parse_schemas({"schemas/row.sd": schema}).schemas.items()
    }
    with TemporaryDirectory() as directory:
        log = FileOperationLog(Path(directory) / "log")
        node = ContentNode(Path(directory) / "node", log)
        try:
            node.configure(1, schemas)
            free = Semaphore(1000)
            for number in range(count):
                free.acquire()
                node.operations.submit(
                    Put(DocumentId("b", "row", str(number)), dict(fields(number))), lambda _: free.release()
                )
            for _ in range(1000):
                free.acquire()
            yield node
        finally:
            node.stop()
            log.close()
