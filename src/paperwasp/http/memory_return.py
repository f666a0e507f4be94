"""Gives back to the system what requests have freed: the C library keeps it for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from paperwasp import limits
from paperwasp.base.env import anonymous_bytes, release_memory, unused_bytes


class MemoryReturn:
    """Gives free memory back soon after large requests, when much has been freed, and when work rests.

    A small request may take much: what counts there is by how much the free memory has grown since it was least, and
    the process since then: what was given back counts as free still, and work takes it again. Work rests when the
    process is as large as at the look before; then less is worth it, once.
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
        self._last_resident = self._least_resident
        """The same at the last look."""
        self._rested = 0
        """How large the process was when work last rested: not yet, so that what the start has freed is given back."""
        self._lock = Lock()
        """Of what is done on threads."""

    def return_soon(self) -> None:
        """After a large request. Where others follow, it is given back between them."""
        if self._timer is None:
            self._timer = self._loop.call_later(limits.MEMORY_RETURN_SECONDS, self._return)

    def look(self) -> None:
        """Now and then, in the event loop: on a thread gives back what has been freed, if it is much."""
        if self._looking is None or self._looking.done():
            self._looking = self._loop.run_in_executor(None, self.return_freed)

    def return_freed(self) -> None:
        """Gives back what has been freed, if it is much, or work rests. Any thread."""
        with self._lock:
            unused, resident = self._unused(), self._resident()
            much = max(limits.MEMORY_FREED_BYTES, int(resident * limits.MEMORY_FREED_SHARE))
            is_much = unused >= much and max(unused - self._least, resident - self._least_resident) >= much
            if is_much or self._rests(resident, unused):
                self._release()
                self._least, self._least_resident = self._unused(), self._resident()
                self._rested = self._least_resident
            self._least = min(self._least, unused)
            self._least_resident = min(self._least_resident, resident)
            self._last_resident = resident

    def _rests(self, resident: int, unused: int) -> bool:
        """Whether the process has changed by some memory, and has come to rest since."""
        least = limits.MEMORY_RESTING_BYTES
        is_still = abs(resident - self._last_resident) < least // 4
        return is_still and unused >= least and abs(resident - self._rested) >= least

    def _return(self) -> None:
        self._timer = None
        self._loop.run_in_executor(None, self._release)
