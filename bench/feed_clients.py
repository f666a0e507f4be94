"""Three clients that put documents at once: how many cores the server uses, if it may.

Clients are those of `bench.load`, which take next to nothing: each has connections of HTTP/1.1 and sends the next
document over one as soon as it has the answer. The server has two cores; the clients are on the others, if there are
any.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.feed import feed_file
from bench.layers import NothingMeasured
from bench.load import load
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

SERVER_CORES: Final = 2
LEAST_CORES: Final = 1.7


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    clients_count: int = 3
    connections: int = 64
    """Of each client."""


def run(report: Report, options: Options) -> None:
    requests = puts(feed_file(options.documents_count))
    cores = sorted(os.sched_getaffinity(0))
    with (
        data_directory() as data,
        paperwasp(data) as server,
        server.pinned(cores[:SERVER_CORES]),
    ):
        used, rate = measured(server, requests, cores[SERVER_CORES:], options)
        found = server.count()
    if found != options.documents_count:
        raise AssertionError(f"{found} of {options.documents_count} documents found after the last acknowledgement")
    work = f"put of {found:,} documents of 1 KB by {options.clients_count} clients: cores that the server uses"
    has_two = len(cores) >= SERVER_CORES
    report.add(
        Row(
            work,
            f"{used:.2f}, {rate:,.0f}/s",
            target=f"≥ {LEAST_CORES} of {SERVER_CORES}",
            met=used >= LEAST_CORES if has_two else None,
        )
    )
    if len(cores) <= SERVER_CORES:
        report.remark("feed_clients: the clients share the server's cores")


def measured(server: Running, requests: Sequence[bytes], cores: Sequence[int], options: Options) -> tuple[float, float]:
    """Cores that the server uses while all requests are sent by clients on `cores`, and how many a second there are."""
    if not requests:
        raise NothingMeasured("there is nothing to feed")
    parts = [requests[first :: options.clients_count] for first in range(options.clients_count)]
    begun, cpu_seconds = time.perf_counter(), server.cpu_seconds()
    with ThreadPoolExecutor(len(parts)) as pool:
        taken = list(pool.map(lambda part: load(server.port, part, options.connections, cores), filter(None, parts)))
    seconds = time.perf_counter() - begun
    if sum(len(each.times_us) for each in taken) != len(requests):
        raise AssertionError("not every document was answered")
    return (server.cpu_seconds() - cpu_seconds) / seconds, len(requests) / seconds


def puts(file: Path) -> list[bytes]:
    """The requests of HTTP/1.1 that put the documents of a feed file."""
    with file.open("rb") as lines:
        return [put(line) for line in lines]


def put(line: bytes) -> bytes:
    """The request of a line as `bench.feed.document` writes it: the fields are sent as they stand there."""
    head, separator, fields = line.rstrip().partition(b'", "fields": ')
    _, namespace, kind, _, name = head.removeprefix(b'{"put": "').split(b":", 4)
    if not separator:
        raise ValueError(f"no put: {line[:100]!r}")
    body = b'{"fields": ' + fields
    path = b"/document/v1/%s/%s/docid/%s" % (namespace, kind, name)
    lines = (b"POST %s HTTP/1.1" % path, b"Host: localhost", b"Content-Type: application/json")
    return b"\r\n".join((*lines, b"Content-Length: %d" % len(body), b"", b"")) + body
