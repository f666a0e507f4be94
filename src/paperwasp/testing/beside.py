"""A command beside a service that lasts as long: what `paperwasp run` does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

from paperwasp.embedded.service import Service
from paperwasp.errors import InvalidInput

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128
"""Added to the number of a signal that has ended a command, as shells do."""
_END: Final = 'trap "" INT TERM HUP; read -r _ || kill -s TERM -- "$1"'
"""Ends a process, or with a minus before it a group of them, where the pipe ends before something is written to it."""


def run_beside(service: Service, command: Sequence[str], feed: Sequence[Path]) -> int:
    """Feeds the files, runs the command, and returns its exit status. Signals go to the command and its children.

    Errors: InvalidInput where there is no such command, or a document is refused.
    """
    for file in feed:
        result = service.feed(file)
        if result.failed:
            first = result.problems[0]
            raise InvalidInput(
                f"{file}: {result.failed} documents are refused; the first is {first.id}: {first.message}"
            )
    # With a terminal it stays in the group that Ctrl-C reaches and that may read what is typed.
    has_group = sys.stdin is None or not sys.stdin.isatty()
    environment = {**os.environ, **environment_of(service)}
    relay = _Relay(has_group)
    with relay.signals_taken():
        try:
            child = subprocess.Popen(command, env=environment, process_group=0 if has_group else None)
        except OSError as error:
            raise InvalidInput(f"The command '{command[0]}' could not be run: {error.strerror}") from None
        relay.begin(child)
        with _ended_with_this_process(-child.pid if has_group else child.pid):
            status = child.wait()
    return status if status >= 0 else _BY_SIGNAL - status


def environment_of(service: Service) -> dict[str, str]:
    """The variables by which a command finds the service. Errors: Conflict where it has no ports."""
    return {
        "PAPERWASP_URL": service.url,
        "PAPERWASP_CONFIG_URL": service.config_url,
        "VESPA_URL": service.url,
        "VESPA_CONFIG_URL": service.config_url,
        "VESPA_PORT": str(service.port),
        "VESPA_CONFIG_PORT": str(service.config_port),
    }


class _Relay:
    """Hands signals on to a command: those that come before it runs as soon as it does."""

    def __init__(self, has_group: bool) -> None:
        self._has_group = has_group
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    @contextmanager
    def signals_taken(self) -> Iterator[None]:
        """Takes the signals of this process, but those that it ignores, as `nohup` has it: so does the command then."""
        taken = [number for number in _SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
        before = {number: signal.signal(number, self._take) for number in taken}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def begin(self, child: subprocess.Popen[bytes]) -> None:
        """The command runs."""
        self._child = child
        for number in self._early:
            self._hand_on(child, number)

    def _take(self, number: int, _: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        elif self._has_group or number != signal.SIGINT:  # without a group Ctrl-C reaches the command by itself
            self._hand_on(self._child, number)

    def _hand_on(self, child: subprocess.Popen[bytes], number: int) -> None:
        if not self._has_group:
            child.send_signal(number)
        else:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)


@contextmanager
def _ended_with_this_process(process: int) -> Iterator[None]:
    """Sees to it that a process, or a group by its number with a minus, ends when this process is killed: a shell
    waits for the end of a pipe that only this process holds."""
    reading, writing = os.pipe()
    try:
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _END, "sh", str(process)],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(reading)
    try:
        yield
    finally:
        with suppress(OSError):
            os.write(writing, b"\n")
        os.close(writing)
        shell.wait()
