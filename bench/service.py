"""`paperwasp serve` as a process to be measured, from outside only: ports, files under /proc, standard output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.corpus import CACHE

APPLICATION = Path(__file__).parent / "application"
_SCHEDULED_TIME = 2
"""The number that Linux gives the clock of a process that tells the nanoseconds for which it ran."""
_SWITCHES = re.compile(r"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)
STOP_SECONDS = 60


@dataclass(frozen=True)
class Running:
    """A server process that is ready, and how long that took from its start."""

    process: subprocess.Popen[str]
    port: int
    ready_seconds: float
    config_port: int | None = None
    """Where deployments go, if the process says so."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """User and system time of all its threads, also of those that have ended."""
        return time.clock_gettime(~self.process.pid << 3 | _SCHEDULED_TIME)

    def context_switches(self) -> int:
        """How often its threads have waited, or made way for others."""
        statuses = (task.joinpath("status").read_text() for task in self._tasks())
        return sum(int(count) for status in statuses for count in _SWITCHES.findall(status))

    @contextlib.contextmanager
    def pinned(self, cores: Collection[int] = ()) -> Iterator[None]:
        """Meanwhile its threads run on these cores only; without any, on the first one that this process has."""
        before = os.sched_getaffinity(self.process.pid)
        self._pin(cores or {min(os.sched_getaffinity(0))})
        try:
            yield
        finally:
            self._pin(before)

    def _pin(self, cores: Collection[int]) -> None:
        for task in self._tasks():
            with contextlib.suppress(ProcessLookupError):  # the thread has ended
                os.sched_setaffinity(int(task.name), cores)

    def _tasks(self) -> Iterator[Path]:
        return Path(f"/proc/{self.process.pid}/task").iterdir()

    def cpu_seconds_by_thread(self) -> dict[tuple[int, str], float]:
        """User and system time by (thread, name); the first thread runs the event loop."""
        times = {}
        for task in self._tasks():
            nanoseconds = (task / "schedstat").read_text().split()[0]
            times[int(task.name), (task / "comm").read_text().strip()] = int(nanoseconds) / 1e9
        return times

    def resident_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1000

    def search(self, **parameters: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/search/?{query}") as answer:
            result: dict[str, Any] = json.load(answer)
        return result

    def count(self) -> int:
        """Documents that a query finds now."""
        root = self.search(yql="select * from sources * where true", hits="0", timeout="20s")["root"]
        return int(root.get("fields", {}).get("totalCount", -1))


@contextlib.contextmanager
def data_directory() -> Iterator[Path]:
    """An empty one, deleted afterwards, on the disk where the benchmarks' cache is."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="data-") as path:
        yield Path(path)


@contextlib.contextmanager
def paperwasp(data: Path, application: Path | None = APPLICATION) -> Iterator[Running]:
    """The service on free ports, stopped cleanly at the end."""
    given = [str(application)] if application else []
    options = ["--data-dir", str(data), "--port", "0", "--config-port", "0"]
    with process([str(Path(sys.executable).with_name("paperwasp")), "serve", *given, *options]) as running:
        yield running


@contextlib.contextmanager
def process(command: list[str]) -> Iterator[Running]:
    """A process that prints one line with its URL when it is ready."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        ready_seconds = time.perf_counter() - start
        if "127.0.0.1:" not in line:
            raise RuntimeError(f"{command[0]} did not start: {line!r}")
        ports = [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", line)]
        yield Running(child, ports[0], ready_seconds, ports[1] if len(ports) > 1 else None)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(STOP_SECONDS)
        child.stdout.close()
