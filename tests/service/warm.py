"""Services and commands that begin with everything imported: half a second of processor time less for each.

A process of its own imports what a service may need, starts no thread of ours, and forks for each request. What it
forks is adopted by the process that asked, as a child that `subprocess` started would be. On Linux alone.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import paperwasp
from tests import patience

PAPERWASP: Final = (sys.executable, "-m", "paperwasp")
ROOT: Final = Path(__file__).parent.parent.parent
NOT_OF_A_SERVICE: Final = frozenset({"backup", "client", "doctor", "embedded", "relevance", "remote", "testing"})
REQUEST_BYTES: Final = 1 << 20
AT_START: Final = ("LD_", "MALLOC_", "OMP_", "OPENBLAS_", "PYTHON")
"""Beginnings of the names of variables that are read before any code of ours."""
MOST_DESCRIPTORS: Final = 8
ABOVE_ALL: Final = 500
"""No descriptor of these processes has so high a number."""
_SET_CHILD_SUBREAPER: Final = 36
_PASSED, _FOLDER, _ENVIRONMENT, _PIPES, _STDOUT, _STDERR = 4, 5, 6, 10, 13, 15
"""Places among what `_execute_child` is given; of pipes there are six, two for each of the standard ones."""


class WarmProcess(subprocess.Popen[Any]):
    """A module with arguments, as `python -m` runs it, in a process that was forked instead of executed."""

    def _execute_child(self, arguments: list[str], *given: Any) -> None:
        folder, environment = given[_FOLDER - 1], given[_ENVIRONMENT - 1]
        python, dash, *command = arguments
        assert (python, dash) == (sys.executable, "-m")
        request = {
            "command": command,
            "folder": str(folder or Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
        }
        # By the number that each has there; -1: that of this process.
        passed = {1: given[_STDOUT - 1], 2: given[_STDERR - 1], **{each: each for each in given[_PASSED - 1]}}
        request["numbers"] = [*passed]
        descriptors = array.array("i", [number if each < 0 else each for number, each in passed.items()])
        libc, (_, asking) = ctypes.CDLL(None), _forking()
        # Whoever forks twice leaves an orphan, which goes to the nearest process that takes orphans.
        libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            asking.sendmsg([json.dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            self.pid = int(asking.recv(32))
        finally:
            libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        self._child_created = True
        self._close_pipe_fds(*given[_PIPES - 1 : _STDERR])  # type: ignore[attr-defined]


def run_warm(
    arguments: Sequence[object],
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_seconds: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run `paperwasp` with these arguments to its end, and return what it says."""
    command = [*PAPERWASP, *map(str, arguments)]
    kind = WarmProcess if can_be_warm() else subprocess.Popen[Any]
    pipe = subprocess.PIPE
    with kind(command, stdout=pipe, stderr=pipe, text=True, cwd=folder, env=environment) as process:
        try:
            said, complaints = process.communicate(timeout=timeout_seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, said, complaints)


def can_be_warm() -> bool:
    """Whether a process that is forked is as one that is executed now."""
    return sys.platform == "linux" and _at_start() == _forking()[0]


def _at_start() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(AT_START)}


@cache
def _forking() -> tuple[dict[str, str], socket.socket]:
    """The variables that the forking process was started with, and the socket where it takes requests."""
    asking, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in (asking, answering):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
    command = [sys.executable, "-m", "tests.service.warm", str(answering.fileno())]
    process = subprocess.Popen(
        command, cwd=ROOT, pass_fds=[answering.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    answering.close()

    def end() -> None:
        asking.close()
        process.wait(30)

    atexit.register(end)
    return _at_start(), asking


def _import_all() -> None:
    for module in pkgutil.walk_packages(paperwasp.__path__, "paperwasp."):
        _, package, *_ = parts = module.name.split(".")
        if package not in NOT_OF_A_SERVICE and parts[-1] != "__main__":
            with contextlib.suppress(ImportError):  # of an extra that is not installed
                importlib.import_module(module.name)
    patience.begin()


def _fork_for(answering: socket.socket) -> dict[str, Any] | None:
    """Forks for each request until nobody asks any more; only what was forked gets its request back."""
    while True:
        content, descriptors, _, _ = socket.recv_fds(answering, REQUEST_BYTES, MOST_DESCRIPTORS)
        if not content:
            return None
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            if service := os.fork():
                os.write(writing, str(service).encode())
                os._exit(0)
            answering.close()
            request: dict[str, Any] = json.loads(content)
            high = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, ABOVE_ALL) for descriptor in descriptors]
            for descriptor in (*descriptors, reading, writing):
                os.close(descriptor)
            for descriptor, number in zip(high, request["numbers"], strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)
            return request
        os.waitpid(between, 0)
        answering.send(os.read(reading, 32))
        for descriptor in (*descriptors, reading, writing):
            os.close(descriptor)


def main() -> None:
    # Ctrl-C in a terminal goes to every process: what was forked has to hear of it, and this one ends with its socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _import_all()
    gc.collect()
    gc.freeze()
    if request := _fork_for(socket.socket(fileno=int(sys.argv[1]))):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        module, *arguments = request["command"]
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
