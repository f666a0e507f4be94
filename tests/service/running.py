"""A service in a child process, on free ports, for as long as a test needs it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests import messengers, patience, replicas
from tests.service.warm import WarmProcess, can_be_warm

_READY = re.compile(r"Ready in ([0-9.]+) s: .* http://127\.0\.0\.1:(\d+), deployments on http://127\.0\.0\.1:(\d+)")


@dataclass
class RunningService:
    """Where a child listens, and how to end it."""

    process: subprocess.Popen[str]
    url: str
    config_url: str
    seconds_to_ready: float

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Sends the signal and waits; gives the exit code."""
        self.process.send_signal(signal_number)
        return self.process.wait(30)


def command(data_directory: Path, *arguments: str, first: str = "") -> list[str]:
    """The command line of a service. `first`: Python statements that are executed before it."""
    ports = ["--port", "0", "--config-port", "0", "--data-dir", str(data_directory)]
    program = ["-c", f"{first}\nfrom paperwasp.cli import app\napp()"] if first else ["-m", "paperwasp"]
    return [sys.executable, *program, "serve", *arguments, *ports]


@contextmanager
def running_service(data_directory: Path, *arguments: str, first: str = "") -> Iterator[RunningService]:
    """Starts a service, as `command` says, and waits until it is ready; ends it, whatever happened.

    Where nothing is executed first, it is forked from a process that has imported everything.
    """
    first = "".join(each.PRELUDE for each in (replicas, messengers) if each.ENABLED) + first
    first = first and f"{first}\n{patience.PRELUDE}"
    log = (data_directory.parent / f"{data_directory.name}.log").open("a+")
    kind = subprocess.Popen[Any] if first or not can_be_warm() else WarmProcess
    started = command(data_directory, *arguments, first=first)
    with log, kind(started, stdout=subprocess.PIPE, stderr=log, text=True) as child:
        try:
            yield _ready(child, log)
        finally:
            if child.poll() is None:
                child.terminate()
            child.wait(30)


def _ready(child: subprocess.Popen[str], log: IO[str]) -> RunningService:
    assert child.stdout is not None
    for line in child.stdout:
        if match := _READY.match(line):
            seconds, port, config_port = match.groups()
            urls = (f"http://127.0.0.1:{port}", f"http://127.0.0.1:{config_port}")
            return RunningService(child, *urls, float(seconds))
    log.seek(0)
    raise AssertionError(f"the service did not become ready: exit code {child.wait()}\n{log.read()}")
