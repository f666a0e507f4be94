"""`vespa feed` of 1 KB documents: the service, with its log synced, beside a handler that only decodes the JSON.

Client and server share the machine's cores, as they would share a developer's. After the last acknowledgement one query
must find every document.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import socket
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpus import CACHE, SEED, records
from bench.report import Report, Row
from bench.service import APPLICATION, Running, data_directory, paperwasp, process

DOCUMENT_BYTES = 1024
LEAST_RATIO = 0.7
MOST_PUT_US, MOST_VECTOR_US = 60, 200
"""Processor time of the server for a document."""
VECTOR_SIZE = 384
VECTORS = Path(__file__).parent / "vector_application"
VECTOR_SHARE = 6
"""Of how many documents one has a vector: its JSON is many times as long."""


@dataclass(frozen=True)
class Options:
    documents_count: int = 60_000
    repeats: int = 2


@dataclass(frozen=True)
class Fed:
    """What one run took. CPU times are microseconds a document; the rate is documents a second of the client's time."""

    rate: float
    client_us: float
    server_us: float


def run(report: Report, options: Options) -> None:
    file = feed_file(options.documents_count)
    ours, most = beside_ceiling(file, options, APPLICATION)
    report.remark("feed: the first query after the last acknowledgement found every document")
    work = f"vespa feed, {options.documents_count:,} documents of 1 KB"
    report.add(ratio_row(work, ours, most, LEAST_RATIO))
    report.add(cpu_row(work, ours, most, MOST_PUT_US))
    with tempfile.TemporaryDirectory(dir=CACHE) as directory:
        count = options.documents_count // VECTOR_SHARE
        fed = beside_ceiling(_vector_file(Path(directory), count), replace(options, documents_count=count), VECTORS)
    report.add(cpu_row(f"vespa feed, {count:,} documents with a vector of {VECTOR_SIZE}", *fed, MOST_VECTOR_US))


def beside_ceiling(file: Path, options: Options, application: Path) -> tuple[list[Fed], list[Fed]]:
    """Runs of ours, and as many of the server that only decodes. Errors: AssertionError unless all is found."""
    ours, most = [], []
    for _ in range(options.repeats):
        with ceiling() as server:
            most.append(feed(server, file))
        with data_directory() as data, paperwasp(data, application) as server:
            ours.append(feed(server, file))
            found = server.count()
        if found != options.documents_count:
            raise AssertionError(f"{found} of {options.documents_count} documents found after the last acknowledgement")
    return ours, most


def ratio_row(work: str, ours: list[Fed], most: list[Fed], least: float) -> Row:
    """Documents a second beside the ceiling's."""
    rate, limit = (statistics.median(fed.rate for fed in runs) for runs in (ours, most))
    return Row(
        work,
        f"{rate:,.0f}/s, {_cpu(ours)}",
        f"JSON decoded only {limit:,.0f}/s, {_cpu(most)}",
        f"{rate / limit:.2f}",
        f"≥ {least} of the ceiling",
        rate / limit >= least,
    )


def cpu_row(work: str, ours: list[Fed], most: list[Fed], most_us: float) -> Row:
    """The server's processor time of a document."""
    spent_us, limit_us = (statistics.median(fed.server_us for fed in runs) for runs in (ours, most))
    return Row(
        f"{work}: server CPU each",
        f"{spent_us:.0f} µs",
        f"JSON decoded only {limit_us:.0f} µs",
        f"{spent_us / limit_us:.2f}",
        f"≤ {most_us:g} µs",
        spent_us <= most_us,
    )


@contextlib.contextmanager
def ceiling() -> Iterator[Running]:
    """The server that only decodes the JSON."""
    with process([sys.executable, str(Path(__file__).with_name("ceiling.py")), str(_free_port())]) as server:
        yield server


def _cpu(runs: list[Fed]) -> str:
    server, client = (
        statistics.median(times) for times in zip(*((f.server_us, f.client_us) for f in runs), strict=True)
    )
    return f"CPU {server:.0f} + {client:.0f} µs each"


def feed(server: Running, file: Path) -> Fed:
    """Feeds with `vespa feed`. Errors: AssertionError unless all documents are accepted."""
    return feed_by([str(vespa_cli()), "feed", "--target", server.url, "--progress", "0", str(file)], server)


def feed_by(command: list[str], server: Running) -> Fed:
    """Feeds with a command that prints the summary of `vespa feed`. Errors: as `feed`."""
    home = CACHE / "vespa-home"
    home.mkdir(exist_ok=True)
    environment = os.environ | {"VESPA_CLI_HOME": str(home), "VESPA_CLI_CACHE_DIR": str(home)}
    server_before, client_before = server.cpu_seconds(), children_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    server_spent, client_spent = server.cpu_seconds() - server_before, children_seconds() - client_before
    if done.returncode != 0:
        raise AssertionError(f"{Path(command[0]).name} feed failed: {done.stdout[-500:]} {done.stderr[-500:]}")
    summary: dict[str, Any] = json.loads(done.stdout)
    if summary.get("feeder.error.count", 0) or summary.get("http.response.error.count", 0):
        raise AssertionError(f"{Path(command[0]).name} feed met errors: {summary}")
    count = summary["feeder.ok.count"]
    return Fed(count / summary["feeder.seconds"], client_spent / count * 1e6, server_spent / count * 1e6)


def children_seconds() -> float:
    """CPU time of child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def vespa_cli() -> Path:
    """The Vespa CLI that the package vespacli brings."""
    folder = Path(sysconfig.get_path("purelib", vars={"base": str(CACHE / "peers")}))
    return next(folder.glob("vespacli/go-binaries/*linux_amd64/bin/vespa"))


def feed_file(documents_count: int) -> Path:
    """Documents of the corpus cut to 1 KB of JSON, over and over until there are enough."""
    source = os.environ.get("BENCH_CORPUS")
    name = Path(source).name.split(".")[0] if source else "pydoc"
    path = CACHE / f"feed-{name}-{documents_count}.jsonl"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        with path.open("w", encoding="utf-8") as file:
            for number, (title, body) in enumerate(islice(_endless(), documents_count)):
                file.write(document(number, title, body))
    return path


def _endless() -> Iterator[tuple[str, str]]:
    """Bodies go on with the next documents', so that all are long enough."""
    bodies: deque[str] = deque(maxlen=3)
    for title, body in cycle(records()):
        bodies.append(body)
        yield title, " ".join(bodies)


def document(number: int, title: str, body: str) -> str:
    """One line of Vespa's feed format, of 1 KB."""
    choice = random.Random(SEED + number)
    fields = {
        "title": title[:200], "body": "", "category": f"c{choice.randrange(200)}",
        "year": choice.randrange(1990, 2026), "percentile": choice.randrange(100),
    }  # fmt: skip
    line: dict[str, Any] = {"put": f"id:bench:article::{number}", "fields": fields}
    room = DOCUMENT_BYTES - len(json.dumps(line, ensure_ascii=False).encode())
    fields["body"] = body.encode()[:room].decode(errors="ignore")
    return json.dumps(line, ensure_ascii=False) + "\n"


def _vector_file(directory: Path, count: int) -> Path:
    """Documents with nothing but a vector."""
    path, vectors = directory / "vectors.jsonl", np.random.default_rng(SEED).normal(size=(count, VECTOR_SIZE))
    with path.open("w", encoding="utf-8") as file:
        for number, vector in enumerate(vectors.astype(np.float32).tolist()):
            operation = {"put": f"id:bench:point::{number}", "fields": {"vector": {"values": vector}}}
            file.write(json.dumps(operation) + "\n")
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
