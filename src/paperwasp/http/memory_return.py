"""Gives back to the system what requests have freed: the C library keeps it for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from paperwasp import limits
from paperwasp.env import anonymous_bytes, release_memory, unused_bytes


class MemoryReturn:
    """Gives free memory back after large requests, when no other comes meanwhile, and when much has been freed.

    A small request may take much: what counts there is by how much the free memory has grown since it was least, and
    the process since then: what was given back counts as free still, and work takes it again.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        unused: Callable[[], int] = unused_bytes,
        release: Callable[[], None] = release_memory,
        resident: Callable[[], int] = anonymous_bytes,
    ) -> None:
        self._loop = loop
        self._unused = unused
        self._release = release
        self._resident = resident
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Future[None] | None = None
        self._least = unused()
        """Free bytes after the last release, or the fewest that were seen since."""
        self._least_resident = resident()
        """The same of the memory of the process."""
        self._lock = Lock()
        """Of what is done on threads."""

    def return_soon(self) -> None:
        """After a large request."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(limits.MEMORY_RETURN_SECONDS, self._return)

    def look(self) -> None:
        """Now and then, in the event loop: on a thread gives back what has been freed, if it is much."""
        if self._looking is None or self._looking.done():
            self._looking = self._loop.run_in_executor(None, self.return_freed)

    def return_freed(self) -> None:
        """Gives back what has been freed, if it is much. Any thread."""
        with self._lock:
            unused, resident = self._unused(), self._resident()
            much = max(limits.MEMORY_FREED_BYTES, int(resident * limits.MEMORY_FREED_SHARE))
            if unused >= much and max(unused - self._least, resident - self._least_resident) >= much:
                self._release()
                self._least, self._least_resident = self._unused(), self._resident()
            self._least = min(self._least, unused)
            self._least_resident = min(self._least_resident, resident)

    def _return(self) -> None:
        self._loop.run_in_executor(None, self._release)
