"""The background work of a content cluster: one thread that does its chores when they are due.

A chore does a bounded piece of work and returns how long to wait before the next, so that no chore delays another for
long. One that fails is logged and tried again later.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.content.layouts.selected import oldest_tombstone_us
from paperwasp.content.node import ContentNode
from paperwasp.content.views.reader import Reader
from paperwasp.errors import PaperwaspError

_LOG: Final = logging.getLogger("paperwasp.content")

Chore = Callable[[], float]
"""Does a piece of work; gives the seconds until it is due again."""


class Housekeeping:
    """Chores, each done when it is due, the first time at once. Without `start`, by whoever calls `run_due`."""

    def __init__(self, chores: Sequence[Chore], environment: Environment = SYSTEM) -> None:
        self._environment = environment
        now_ns = environment.monotonic_ns()
        self._due_ns: dict[Chore, int] = dict.fromkeys(chores, now_ns)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="content-housekeeping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return when the chore under way, if any, is done. Not to be started again."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def run_due(self) -> float:
        """Do what is due; return the seconds until something else is."""
        for chore, due_ns in self._due_ns.items():
            if self._stop.is_set():
                break
            if due_ns <= self._environment.monotonic_ns():
                seconds = self._done(chore)
                self._due_ns[chore] = self._environment.monotonic_ns() + round(seconds * 1e9)
        next_ns = min(self._due_ns.values(), default=self._environment.monotonic_ns() + 10**9)
        return max(0.0, (next_ns - self._environment.monotonic_ns()) / 1e9)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self.run_due())

    def _done(self, chore: Chore) -> float:
        try:
            return chore()
        except Exception:
            _LOG.exception("A chore of the content cluster failed, and is tried again later")
            return limits.CHORE_RETRY_SECONDS


def refresh_posting_lists(reader: Reader) -> float:
    """Rebuild the posting lists of one column that need it; return how long to wait before the next call."""
    is_done = any(column.prepare() for column in reader.view().columns.values())
    return 0.0 if is_done else limits.PREPARE_SECONDS


def recover(node: ContentNode) -> float:
    """The chore that ends a fault of the node when its cause is gone. Why it cannot is the node's to tell."""
    with suppress(PaperwaspError):
        node.recover_if_due()
    return limits.RECOVERY_FIRST_SECONDS


def prune(node: ContentNode, environment: Environment = SYSTEM) -> float:
    """The chore that forgets removals which are too old to be visited. Returns the seconds until the next time."""
    before_us = oldest_tombstone_us(environment.time_ns() // 1000)
    looked_at = node.prune(before_us, limits.PRUNE_TOMBSTONES)
    return limits.PRUNE_PAUSE_SECONDS if looked_at == limits.PRUNE_TOMBSTONES else limits.PRUNE_SECONDS
