"""Counts the requests to the config port, and shows the numbers in `/state/v1`. They count from the start.

Vespa: https://docs.vespa.ai/en/reference/operations/metrics/configserver.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from paperwasp.env import Environment
from paperwasp.http.messages import Request
from paperwasp.http.prometheus import Sample

_NS_PER_MS: Final = 1e6
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE"))
_OTHER_METHOD: Final = "OTHER"
"""Whatever else a client calls a method: what is counted must not grow by that."""
Metric = dict[str, Any]


class RequestMetrics:
    """Counts answers by method and status, and their latency. Only the event loop may be here."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._started_ns = environment.time_ns()
        self._answers: Counter[tuple[str, int]] = Counter()
        self._latencies_ms = [0.0, 0.0, 0.0, 0.0]
        """Sum, last, least, greatest."""

    def observe(self, request: Request, status: int, elapsed_ns: int) -> None:
        """One answer was made."""
        elapsed_ms = elapsed_ns / _NS_PER_MS
        total, _, least, greatest = self._latencies_ms
        least = min(least, elapsed_ms) if self._answers else elapsed_ms
        self._latencies_ms = [total + elapsed_ms, elapsed_ms, least, max(greatest, elapsed_ms)]
        method = request.method if request.method in _METHODS else _OTHER_METHOD
        self._answers[method, status] += 1

    def snapshot(self, values: list[Metric]) -> dict[str, Any]:
        """Values with the time that they are of."""
        now_ns = self._environment.time_ns()
        return {"snapshot": {"from": self._started_ns // 10**9, "to": now_ns // 10**9}, "values": values}

    def health(self) -> list[Metric]:
        """The two metrics of `/state/v1/health`."""
        return [
            {"name": "requestsPerSecond", "values": self._with_rate(self._answers.total())},
            {"name": "latencySeconds", "values": self._latency(1000.0)},
        ]

    def all(self) -> list[Metric]:
        """Every metric, with its dimensions."""
        failed = sum(count for (_, status), count in self._answers.items() if status >= 400)
        own = [
            {"name": "configserver.requests", "values": self._with_rate(self._answers.total()), "dimensions": {}},
            {"name": "configserver.failedRequests", "values": self._with_rate(failed), "dimensions": {}},
            {"name": "configserver.latency", "values": self._latency(1.0), "dimensions": {}},
        ]
        return [*own, *self._statuses()]

    def _statuses(self) -> Iterator[Metric]:
        for (method, status), count in sorted(self._answers.items()):
            dimensions = {"httpMethod": method, "statusCode": str(status)}
            yield {"name": f"http.status.{status // 100}xx", "values": self._with_rate(count), "dimensions": dimensions}

    def _with_rate(self, count: int) -> dict[str, float]:
        return {"count": count, "rate": count / self._seconds()}

    def _latency(self, per_unit: float) -> dict[str, float]:
        count = self._answers.total()
        total, last, least, greatest = (value / per_unit for value in self._latencies_ms)
        average = total / count if count else 0.0
        extremes = {"last": last, "max": greatest, "min": least}
        return {"average": average, "sum": total, "count": count, **extremes, "rate": count / self._seconds()}

    def _seconds(self) -> float:
        return max((self._environment.time_ns() - self._started_ns) / 1e9, 1.0)


def gauge(name: str, value: float, **dimensions: str) -> Metric:
    """A metric that says how much there is of something."""
    values = dict.fromkeys(("average", "last", "max", "min"), value)
    return {"name": name, "values": {**values, "count": 1}, "dimensions": dimensions}


def samples(values: list[Metric], time_ms: int) -> Iterator[Sample]:
    """Every value of the metrics by itself, what kind it is at the end of its name."""
    for metric in values:
        labels = dict(sorted(metric["dimensions"].items()))
        for kind, value in metric["values"].items():
            yield Sample(f"{metric['name']}_{kind}", labels, value, time_ms)
