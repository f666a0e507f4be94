"""How long embedders take, in the whole process: for queries and for documents.

Vespa: `embedder.latency` and `embedder.request.count` of ContainerMetrics.java (metrics)
Differs: they are distinguished by what is embedded (`destination`), not by embedder and language.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from paperwasp.base.env import SYSTEM
from paperwasp.operations.monitoring.numbers import Latencies, Windows
from paperwasp.operations.monitoring.shapes import Metric, counted, metric


class EmbeddingMetrics:
    """The times of calls of embedders. Any threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows = Windows(SYSTEM)
        self._latencies = {"query": Latencies(), "document": Latencies()}

    @contextmanager
    def timed(self, *, is_query: bool) -> Iterator[None]:
        """Measures one call, also one that fails."""
        begun_ns = time.monotonic_ns()
        try:
            yield
        finally:
            with self._lock:
                self._latencies["query" if is_query else "document"].add((time.monotonic_ns() - begun_ns) / 1e6)

    def all(self) -> Iterator[Metric]:
        """The metrics; none before an embedder was called."""
        with self._lock:
            self._windows.turn_if_due(self._latencies.values())
            seconds = self._windows.seconds
            found = [(name, each, each.values(seconds)) for name, each in self._latencies.items() if each.count]
        for name, latency, values in found:
            yield metric("embedder.latency", values, destination=name)
            yield counted("embedder.request.count", latency.count, latency.recent_count, seconds, destination=name)

    def whole(self) -> Latencies:
        """The latencies of all calls, in milliseconds."""
        together = Latencies()
        with self._lock:
            for each in self._latencies.values():
                together.include(each)
        return together


EMBEDDING: Final = EmbeddingMetrics()
"""Of the process."""
