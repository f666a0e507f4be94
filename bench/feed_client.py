"""The feed client, and the command that uses it, beside `vespa feed`: the same file, each client on one core by itself.

Clients take turns, each into a service that was just started, whose threads have the other cores. The rate is by the
client's own clock, from its first operation to its last answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import orjson

from bench import feed
from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp
from paperwasp.client import AsyncFeedClient, FeedClient, FeedOperation, OperationType, Result
from paperwasp.document.ids import DocumentId

LEAST_RATIO = 0.8


@dataclass(frozen=True)
class Options:
    documents_count: int = 40_000
    rounds: int = 3


def run(report: Report, options: Options) -> None:
    file = feed.feed_file(options.documents_count)
    clients: dict[str, Callable[[Running], feed.Fed]] = {
        "vespa feed": lambda server: feed.feed(server, file),
        "paperwasp feed": lambda server: feed.feed_by(_command(server, file), server),
        "FeedClient": lambda server: _feed(server, file, "blocking"),
        "AsyncFeedClient": lambda server: _feed(server, file, "asyncio"),
    }
    runs: dict[str, list[feed.Fed]] = {name: [] for name in clients}
    for _ in range(options.rounds):
        for name, client in clients.items():
            runs[name].append(_fed_from_one_core(client, options.documents_count))
    peer = statistics.median(fed.rate for fed in runs["vespa feed"])
    for name in ("paperwasp feed", "FeedClient", "AsyncFeedClient"):
        rate = statistics.median(fed.rate for fed in runs[name])
        report.add(
            Row(
                f"{name}, {options.documents_count:,} documents of 1 KB, client on one core",
                f"{rate:,.0f}/s, {_cpu(runs[name])}",
                f"vespa feed {peer:,.0f}/s, {_cpu(runs['vespa feed'])}",
                f"{rate / peer:.2f}",
                f"≥ {LEAST_RATIO} of vespa feed",
                rate / peer >= LEAST_RATIO,
            )
        )


def _cpu(runs: list[feed.Fed]) -> str:
    """The least of the rounds: other work on the machine only adds to it."""
    return f"CPU of the client {min(fed.client_us for fed in runs):.0f} µs each"


def _fed_from_one_core(client: Callable[[Running], feed.Fed], documents_count: int) -> feed.Fed:
    with data_directory() as data, paperwasp(data) as server, _apart(server):
        fed = client(server)
        found = server.count()
    if found != documents_count:
        raise AssertionError(f"{found} of {documents_count} documents found after the last acknowledgement")
    return fed


@contextlib.contextmanager
def _apart(server: Running) -> Iterator[None]:
    """This process and its children have the first core, the server the others, if there are any."""
    cores = os.sched_getaffinity(0)
    first = min(cores)
    with server.pinned(cores - {first} or cores):
        os.sched_setaffinity(0, {first})
        try:
            yield
        finally:
            os.sched_setaffinity(0, cores)


def _command(server: Running, file: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("paperwasp")), "feed", "--url", server.url, "--json", str(file)]


def _feed(server: Running, file: Path, face: str) -> feed.Fed:
    """Feeds with a process of this module."""
    command = [sys.executable, "-m", "bench.feed_client", server.url, str(file), face]
    server_before, client_before = server.cpu_seconds(), feed.children_seconds()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    server_spent, client_spent = server.cpu_seconds() - server_before, feed.children_seconds() - client_before
    if done.returncode != 0:
        raise AssertionError(f"the feed client failed: {done.stderr[-1000:]}")
    count, seconds = json.loads(done.stdout)
    return feed.Fed(count / seconds, client_spent / count * 1e6, server_spent / count * 1e6)


def _child(url: str, file: Path, face: str) -> None:
    """Feeds a file, and prints how many operations there were and how long they took."""
    begin = time.perf_counter()
    count = asyncio.run(_feed_asynchronously(url, file)) if face == "asyncio" else _feed_blocking(url, file)
    print(json.dumps([count, time.perf_counter() - begin]))


def _feed_blocking(url: str, file: Path) -> int:
    failed: list[BaseException] = []

    def look(future: Future[Result]) -> None:
        if (error := future.exception()) is not None:
            failed.append(error)

    with FeedClient(url) as client:
        for operation in _operations(file):
            client.submit(operation).add_done_callback(look)
    if failed:
        raise failed[0]
    return client.statistics().successes - 1


async def _feed_asynchronously(url: str, file: Path) -> int:
    failed: list[BaseException] = []

    def look(future: asyncio.Future[Result]) -> None:
        if (error := future.exception()) is not None:
            failed.append(error)

    async with AsyncFeedClient(url) as client:
        for operation in _operations(file):
            (await client.submit(operation)).add_done_callback(look)
    if failed:
        raise failed[0]
    return client.statistics().successes - 1


def _operations(file: Path) -> Iterator[FeedOperation]:
    with file.open("rb") as lines:
        for line in lines:
            content = orjson.loads(line)
            body = orjson.dumps({"fields": content["fields"]})
            yield FeedOperation(OperationType.PUT, DocumentId.parse(content["put"]), body)


if __name__ == "__main__":
    _child(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
