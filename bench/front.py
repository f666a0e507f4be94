"""What HTTP itself costs: the CPU time of a server for each request whose handler does nothing, by protocol.

h2load (of nghttp2) asks, over eight connections; the servers take turns, round by round, and the least of the rounds
counts. granian is the server that was here before; an asyncio protocol that reads nothing is what Python and the system
take at least.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.java_program import NotInstalled
from bench.report import Report, Row
from bench.service import Running, process

CONNECTIONS = 8
BODY_BYTES = 1024
PATH = "/document/v1/ns/music/docid/1"


@dataclass(frozen=True)
class Options:
    requests_count: int = 40_000
    rounds: int = 5


@dataclass(frozen=True)
class Work:
    """A way to ask."""

    name: str
    arguments: tuple[str, ...]
    has_body: bool
    most_us: float
    servers: tuple[str, ...] = ("ours", "granian")


WORKS = (
    Work("HTTP/1.1, GET", ("--h1",), False, 15, ("ours", "granian", "protocol")),
    Work("HTTP/1.1, POST of 1 KB", ("--h1",), True, 20),
    Work("HTTP/2, POST of 1 KB, 16 streams", ("-m16",), True, 10),
)


def run(report: Report, options: Options) -> None:
    """One row for each way to ask. Errors: NotInstalled where there is no h2load."""
    if shutil.which("h2load") is None:
        raise NotInstalled("h2load, of nghttp2, is not installed")
    with tempfile.NamedTemporaryFile() as body, contextlib.ExitStack() as stack:
        body.write(b'{"fields":{"title":"%b"}}' % (b"x" * (BODY_BYTES - 22)))
        body.flush()
        servers = {name: stack.enter_context(_server(name)) for name in _installed(report)}
        for work in WORKS:
            arguments = (*work.arguments, *(("-d", body.name) if work.has_body else ()))
            names = [name for name in work.servers if name in servers]
            least = dict.fromkeys(names, float("inf"))
            for _ in range(options.rounds):
                for name in names:
                    least[name] = min(least[name], _request_us(servers[name], arguments, options.requests_count))
            report.add(_row(work, least))


def _installed(report: Report) -> Sequence[str]:
    try:
        import granian
    except ImportError:
        report.remark("front: granian is not installed (bench/requirements.txt)")
        return ("ours", "protocol")
    return ("ours", "protocol", granian.__name__)


def _server(name: str) -> contextlib.AbstractContextManager[Running]:
    script = Path(__file__).with_name("front_server.py")
    pinned = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    return process([*pinned, sys.executable, str(script), name])


def _request_us(server: Running, arguments: Sequence[str], count: int) -> float:
    """The server's CPU time for one request. Errors: AssertionError where not all are answered."""
    before = server.cpu_seconds()
    command = ["h2load", "-t1", f"-c{CONNECTIONS}", f"-n{count}", *arguments, server.url + PATH]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answered = re.search(r"(\d+) 2xx", said)
    if answered is None or int(answered[1]) != count:
        raise AssertionError(said)
    return (server.cpu_seconds() - before) / count * 1e6


def _row(work: Work, least: dict[str, float]) -> Row:
    ours, peers = least["ours"], {name: value for name, value in least.items() if name != "ours"}
    return Row(
        f"front: {work.name}, server CPU",
        f"{ours:.1f} µs",
        ", ".join(f"{name} {value:.1f} µs" for name, value in peers.items()),
        ", ".join(f"{ours / value:.2f}" for value in peers.values()),
        f"≤ {work.most_us:g} µs",
        ours <= work.most_us,
    )
