"""Work that the event loop leaves to a thread beside it, gathered so that the thread is woken seldom.

Adding costs the event loop a fraction of a microsecond and never waits. What finds the queue full is counted and left
out. The thread takes what has come a few times a second at most, and does nothing while nothing comes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from paperwasp.limits.monitoring import GATHERED_AT_ONCE, GATHERING_SECONDS

_LOG: Final = logging.getLogger("paperwasp.monitoring")
Item = TypeVar("Item")


class Gathering(Generic[Item]):
    """A bounded queue and the thread that empties it. `add` is the event loop's; any thread may `close` it."""

    def __init__(self, name: str, work: Callable[[Sequence[Item]], None], most: int) -> None:
        """`work` is called on the thread with some items at a time, and with none when all are done for now; `most` may
        wait."""
        self._work = work
        self._most = most
        self._queue: deque[Item] = deque()
        self._is_awake = False
        self._wake = threading.Event()
        self._is_closed = False
        self.dropped = 0
        """Items that found no room."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, item: Item) -> None:
        if len(self._queue) >= self._most:
            self.dropped += 1
            return
        self._queue.append(item)
        if not self._is_awake:
            self._is_awake = True
            self._wake.set()

    def __len__(self) -> int:
        return len(self._queue)

    def close(self) -> None:
        """Works off what was added, and ends the thread."""
        self._is_closed = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._wake.wait()
            self._wake.clear()
            if not self._is_closed:
                time.sleep(GATHERING_SECONDS)  # what comes meanwhile is done together
            self._is_awake = False
            self._work_off()
        self._work_off()

    def _work_off(self) -> None:
        queue = self._queue
        try:
            while queue:
                self._work([queue.popleft() for _ in range(min(len(queue), GATHERED_AT_ONCE))])
            self._work(())
        except Exception:  # a defect costs what it was about
            _LOG.exception("%s failed", self._thread.name)
