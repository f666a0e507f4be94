"""Counts the requests to a port, and shows the numbers in `/state/v1/metrics`. They count from the start.

Vespa: https://docs.vespa.ai/en/reference/operations/state-v1.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from paperwasp.http.messages import Request

_READS: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_LATENCY_NAMES: Final = ("jdisc.http.latency", "http.request.latency")
"""Vespa's name, and the one of the interface specification."""


@dataclass(slots=True)
class _Latency:
    count: int = 0
    total_ms: float = 0.0
    last_ms: float = 0.0
    max_ms: float = 0.0
    min_ms: float = float("inf")

    def add(self, elapsed_ms: float) -> None:
        self.count += 1
        self.total_ms += elapsed_ms
        self.last_ms = elapsed_ms
        if elapsed_ms > self.max_ms:
            self.max_ms = elapsed_ms
        if elapsed_ms < self.min_ms:
            self.min_ms = elapsed_ms


class HttpMetrics:
    """Counts answers by method and status. Only the event loop may be here."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, int], int] = {}
        self._latency = _Latency()

    def observe(self, request: Request, status: int, elapsed_ns: int) -> None:
        """One answer was sent."""
        kind = "read" if request.method in _READS or request.raw_path.startswith("/search") else "write"
        key = (request.method, kind, status)
        self._answers[key] = self._answers.get(key, 0) + 1
        self._latency.add(elapsed_ns / 1e6)

    def health(self, seconds: float) -> list[dict[str, Any]]:
        """The two metrics of `/state/v1/health`."""
        count, latency = sum(self._answers.values()), self._latency
        values = {
            "average": latency.total_ms / latency.count / 1000 if latency.count else 0.0,
            "sum": latency.total_ms / 1000,
            "count": latency.count,
            "last": latency.last_ms / 1000,
            "max": latency.max_ms / 1000,
            "min": latency.min_ms / 1000 if latency.count else 0.0,
            "rate": latency.count / seconds,
        }
        return [
            {"name": "requestsPerSecond", "values": {"count": count, "rate": count / seconds}},
            {"name": "latencySeconds", "values": values},
        ]

    def values(self, seconds: float) -> list[dict[str, Any]]:
        """Every metric, as in `metrics.values`; rates are over `seconds`."""
        return [*self._statuses(seconds), *self._latencies(seconds)]

    def _statuses(self, seconds: float) -> Iterator[dict[str, Any]]:
        for (method, kind, status), count in sorted(self._answers.items()):
            dimensions = {"httpMethod": method, "requestType": kind, "statusCode": str(status)}
            values = {"count": count, "rate": count / seconds}
            yield {"name": f"http.status.{status // 100}xx", "values": values, "dimensions": dimensions}

    def _latencies(self, seconds: float) -> Iterator[dict[str, Any]]:
        latency = self._latency
        if not latency.count:
            return
        values = {
            "average": latency.total_ms / latency.count,
            "sum": latency.total_ms,
            "count": latency.count,
            "last": latency.last_ms,
            "max": latency.max_ms,
            "min": latency.min_ms,
            "rate": latency.count / seconds,
        }
        for name in _LATENCY_NAMES:
            yield {"name": name, "values": values, "dimensions": {}}
