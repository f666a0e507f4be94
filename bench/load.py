"""Requests from several connections at once: `client.cpp`, compiled into bench/.cache when it is first needed."""

from __future__ import annotations

import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeVar

from bench.connection import request_of

SOURCE: Final = Path(__file__).with_name("client.cpp")
PROGRAM: Final = Path(__file__).parent / ".cache" / "client"
Result = TypeVar("Result")


@dataclass(frozen=True)
class Load:
    """What a load took: microseconds of each answer, in the order in which they came, seconds of the whole, and seconds
    of the client's CPU time."""

    times_us: Sequence[float]
    seconds: float
    client_seconds: float = 0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.times_us) / self.seconds

    def quantile_us(self, part: float) -> float:
        ordered = sorted(self.times_us)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def load(port: int, paths: Sequence[str | bytes], connections_count: int, cores: Collection[int] = ()) -> Load:
    """Asks for all paths once over several connections, each with the next path as soon as it has its answer.

    What is no path is a whole request. `cores`: where the client runs; without any, where this process does.
    Errors: AssertionError for another status than 200.
    """
    before = _seconds_of_children()
    with _client(port, connections_count) as client:
        if cores:
            os.sched_setaffinity(client.pid, cores)
        output, error = client.communicate(_input(paths))
    return replace(_taken(client, output, error), client_seconds=_seconds_of_children() - before)


def load_beside(
    work: Callable[[], Result], port: int, paths: Sequence[str], connections_count: int
) -> tuple[Result, Load]:
    """The same, over and over until some work is done; what that gives, too."""
    with _client(port, connections_count, "endless") as client:
        assert client.stdin is not None
        try:
            client.stdin.write(_input(paths))
            client.stdin.flush()
            result = work()
        finally:
            output, error = client.communicate()
    return result, _taken(client, output, error)


def _seconds_of_children() -> float:
    """CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _client(port: int, *arguments: object) -> subprocess.Popen[bytes]:
    command = [str(_built()), *map(str, (port, *arguments))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _input(paths: Sequence[str | bytes]) -> bytes:
    requests = [request_of(each) if isinstance(each, str) else each for each in paths]
    return struct.pack("<I", len(requests)) + b"".join(struct.pack("<I", len(each)) + each for each in requests)


def _taken(client: subprocess.Popen[bytes], output: bytes, error: bytes) -> Load:
    if client.returncode != 0:
        raise AssertionError(error.decode(errors="replace"))
    whole, *times = (nanoseconds for (nanoseconds,) in struct.iter_unpack("<q", output))
    return Load([each / 1e3 for each in times], whole / 1e9)


def _built() -> Path:
    """The program, compiled unless it is newer than its source."""
    if not PROGRAM.exists() or PROGRAM.stat().st_mtime < SOURCE.stat().st_mtime:
        PROGRAM.parent.mkdir(exist_ok=True)
        compiler = shutil.which(os.environ.get("CXX") or "c++")
        command = [compiler] if compiler else [sys.executable, "-m", "ziglang", "c++"]
        with tempfile.TemporaryDirectory(dir=PROGRAM.parent) as folder:
            unfinished = Path(folder) / "client"
            subprocess.run(
                [*command, "-std=c++20", "-O2", "-Wall", "-Wextra", "-o", str(unfinished), str(SOURCE)], check=True
            )
            unfinished.rename(PROGRAM)
    return PROGRAM
