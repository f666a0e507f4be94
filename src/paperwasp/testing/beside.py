"""A command beside a service that lasts as long: what `paperwasp run` does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from paperwasp.embedded.service import Service
from paperwasp.errors import InvalidInput

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128
"""Added to the number of a signal that has ended a command, as shells do."""


def run_beside(service: Service, command: Sequence[str], feed: Sequence[Path]) -> int:
    """Feeds the files, runs the command, and returns its exit status. Signals go to the command.

    Errors: InvalidInput where there is no such command, or a document is refused.
    """
    for file in feed:
        result = service.feed(file)
        if result.failed:
            first = result.problems[0]
            raise InvalidInput(
                f"{file}: {result.failed} documents are refused; the first is {first.id}: {first.message}"
            )
    try:
        child = subprocess.Popen(command, env={**os.environ, **environment_of(service)})
    except OSError as error:
        raise InvalidInput(f"The command '{command[0]}' could not be run: {error.strerror}") from None
    with _signals_to(child):
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


@contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Hands signals on. Ctrl-C reaches the command by itself, which decides what comes of it."""

    def hand_on(number: int, _: FrameType | None) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, hand_on) for number in _SIGNALS}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
