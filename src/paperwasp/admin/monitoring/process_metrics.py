"""Metrics of this process: memory, threads, descriptors, collections of garbage; by Vespa's names where it has some.

Vespa: ContainerMetrics.java (metrics); its heap is Java's: here it is what the process has allocated.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from paperwasp.base.measurements import Metric, gauge

_STATUS: Final = Path("/proc/self/status")
_MEMORY: Final = Path("/proc/meminfo")
_DESCRIPTORS: Final = Path("/proc/self/fd")


class Collections:
    """Counts collections of garbage and the time that they take. Made once for the process."""

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.longest_ms = 0.0
        self._begun_ns = 0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._begun_ns = time.monotonic_ns()
        elif self._begun_ns:
            elapsed_ms = (time.monotonic_ns() - self._begun_ns) / 1e6
            self.count += 1
            self.total_ms += elapsed_ms
            self.longest_ms = max(self.longest_ms, elapsed_ms)


COLLECTIONS: Final = Collections()


def process_metrics() -> Iterator[Metric]:
    """The metrics of the process. What the system does not say is left out."""
    own, all_memory = _numbers(_STATUS), _numbers(_MEMORY)
    if "RssAnon" in own and "MemAvailable" in all_memory:
        used, free = own["RssAnon"] * 1024.0, all_memory["MemAvailable"] * 1024.0
        yield gauge("mem.heap.used", used)
        yield gauge("mem.heap.free", free)
        yield gauge("mem.heap.total", used + free)
    if "VmRSS" in own:
        yield gauge("mem.native.used", own["VmRSS"] * 1024.0)
    with suppress(OSError):
        yield gauge("jdisc.open_file_descriptors", len(os.listdir(_DESCRIPTORS)))  # noqa: PTH208 — names are enough
    yield gauge("jdisc.thread_pool.size", threading.active_count(), threadpool="process")
    yield gauge("jdisc.gc.count", COLLECTIONS.count)
    yield gauge("jdisc.gc.ms", COLLECTIONS.total_ms)


def _numbers(file: Path) -> dict[str, int]:
    """The lines `name:  123 …` of a file of the system; none where it cannot be read."""
    found: dict[str, int] = {}
    with suppress(OSError):
        for line in file.read_text().splitlines():
            name, _, rest = line.partition(":")
            number = rest.split()[:1]
            if number and number[0].isdigit():
                found[name] = int(number[0])
    return found
