"""Numbers that are measured again and again, kept so that adding one costs a fraction of a microsecond.

Counts and sums are of all that was ever added: whoever compares two readings knows what came between them. Rates,
averages, extremes and percentiles are of recent values, which `Windows` divides off when somebody reads.

One thread adds to an object; any thread may read it.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.limits.monitoring import RECENT_SECONDS

# A metric as `/state/v1/metrics` shows it: `{"name", "values", "dimensions"}`, and functions that make some.
#
# Vespa: MetricSnapshot and StateHandler.java (container-disc): a count has `count` and `rate`, all else is a gauge.


Metric = dict[str, Any]


def metric(name: str, values: Mapping[str, float], **dimensions: str) -> Metric:
    return {"name": name, "values": values, "dimensions": dimensions}


def gauge(name: str, value: float, **dimensions: str) -> Metric:
    """A metric that says how much there is of something now."""
    values = {"average": value, "sum": value, "count": 1, "last": value, "max": value, "min": value}
    return metric(name, values, **dimensions)


def counted(name: str, count: int, recent: int, seconds: float, **dimensions: str) -> Metric:
    """A metric that counts: all that ever was, and per second what was in the last `seconds`."""
    return metric(name, {"count": count, "rate": recent / seconds}, **dimensions)


_STEPS: Final = (1, 1.2, 1.4, 1.7, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8.5)
BOUNDS_MS: Final = tuple(round(step * 10.0**power, 4) for power in range(-2, 5) for step in _STEPS)
"""The upper bounds of the buckets of latencies, from 10 µs to 85 s; the last bucket, without a bound, is not there."""
PERCENTILES: Final = (95, 99)
"""Vespa's."""
_INFINITE: Final = float("inf")


class Numbers:
    """How many numbers there were, none of them negative, their sum, the last one, and the extremes of recent ones."""

    __slots__ = ("_begun", "_earlier", "_max_earlier", "_min_earlier", "count", "last", "max", "min", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.last = 0.0
        self.max = 0.0
        self.min = _INFINITE
        self._max_earlier = 0.0
        self._min_earlier = _INFINITE
        self._begun = self._earlier = (0, 0.0)
        """Count and total when the present window began, and the one before."""

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.last = value
        if value > self.max:
            self.max = value
        if value < self.min:
            self.min = value

    def turn(self) -> None:
        """Begins another window. Of the one before the present one nothing is recent any more."""
        self._earlier, self._begun = self._begun, (self.count, self.total)
        self._max_earlier, self._min_earlier = self.max, self.min
        self.max, self.min = 0.0, _INFINITE

    def include(self, other: Numbers) -> None:
        """Adds the numbers of another object, of the same windows."""
        if other.count:
            self.last = other.last
        self.count += other.count
        self.total += other.total
        self.max, self.min = max(self.max, other.max), min(self.min, other.min)
        self._max_earlier = max(self._max_earlier, other._max_earlier)
        self._min_earlier = min(self._min_earlier, other._min_earlier)
        self._begun = _sum(self._begun, other._begun)
        self._earlier = _sum(self._earlier, other._earlier)

    @property
    def recent_count(self) -> int:
        return self.count - self._earlier[0]

    def values(self, seconds: float) -> dict[str, float]:
        """The values of a metric, by Vespa's names; the recent ones are of `seconds`."""
        count, total = self.recent_count, self.total - self._earlier[1]
        least = min(self.min, self._min_earlier)
        return {
            "average": total / count if count else 0.0,
            "sum": self.total,
            "count": self.count,
            "last": self.last,
            "max": max(self.max, self._max_earlier),
            "min": 0.0 if least == _INFINITE else least,
            "rate": count / seconds,
        }


class Latencies(Numbers):
    """Numbers of milliseconds, and how they are spread."""

    __slots__ = ("_buckets_begun", "_buckets_earlier", "buckets")

    def __init__(self) -> None:
        super().__init__()
        self.buckets = [0] * (len(BOUNDS_MS) + 1)
        """How many were at most as large as each bound, and larger than the one before."""
        self._buckets_begun = self._buckets_earlier = tuple(self.buckets)

    def add(self, value: float, times: int = 1) -> None:
        self.count += times
        self.total += value * times
        self.last = value
        if value > self.max:
            self.max = value
        if value < self.min:
            self.min = value
        self.buckets[bisect_left(BOUNDS_MS, value)] += times

    def turn(self) -> None:
        super().turn()
        self._buckets_earlier, self._buckets_begun = self._buckets_begun, tuple(self.buckets)

    def include(self, other: Numbers) -> None:
        super().include(other)
        if isinstance(other, Latencies):
            self.buckets = _added(self.buckets, other.buckets)
            self._buckets_begun = tuple(_added(self._buckets_begun, other._buckets_begun))
            self._buckets_earlier = tuple(_added(self._buckets_earlier, other._buckets_earlier))

    def values(self, seconds: float) -> dict[str, float]:
        shown = super().values(seconds)
        return {**shown, **{f"{percent}percentile": self.percentile(percent) for percent in PERCENTILES}}

    def percentile(self, percent: float) -> float:
        """The bound of that share of the recent values, in milliseconds, as exactly as its bucket is wide."""
        recent = [now - then for now, then in zip(self.buckets, self._buckets_earlier, strict=True)]
        wanted = sum(recent) * percent / 100
        least = 0.0
        for bound, count in zip((*BOUNDS_MS, _INFINITE), recent, strict=True):
            if count and wanted <= count:
                greatest = max(self.max, self._max_earlier)
                return min(least + (min(bound, greatest) - least) * wanted / count, greatest)
            wanted -= count
            least = bound
        return 0.0

    def cumulative(self, bounds_ms: Sequence[float]) -> list[int]:
        """How many were at most as large as each of `bounds_ms`, which are bounds of buckets."""
        places = [bisect_left(BOUNDS_MS, bound) + 1 for bound in bounds_ms]
        buckets = list(self.buckets)
        return [sum(buckets[:place]) for place in places]


class Windows:
    """Since when values are recent: for one to two minutes where somebody asks often, else since they asked last."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.started_ns = environment.time_ns()
        self._begun_ns = self._earlier_ns = self.started_ns

    def turn_if_due(self, numbers: Iterable[Numbers]) -> None:
        """Begins another window for all numbers where the present one is long enough."""
        now_ns = self._environment.time_ns()
        if now_ns - self._begun_ns >= RECENT_SECONDS * 10**9:
            for each in numbers:
                each.turn()
            self._earlier_ns, self._begun_ns = self._begun_ns, now_ns

    @property
    def seconds(self) -> float:
        """How long recent values are of; at least a second."""
        return max((self._environment.time_ns() - self._earlier_ns) / 1e9, 1.0)

    @property
    def age_seconds(self) -> float:
        """How long ago the start was."""
        return (self._environment.time_ns() - self.started_ns) / 1e9

    def snapshot(self) -> dict[str, float]:
        """From when to when counts are, in seconds since 1970: since the start."""
        return {"from": self.started_ns // 10**6 / 1000, "to": self._environment.time_ns() // 10**6 / 1000}


def _sum(left: tuple[int, float], right: tuple[int, float]) -> tuple[int, float]:
    return left[0] + right[0], left[1] + right[1]


def _added(left: Sequence[int], right: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(left, right, strict=True)]


# How long embedders take, in the whole process: for queries and for documents.
#
# Vespa: `embedder.latency` and `embedder.request.count` of ContainerMetrics.java (metrics)
# Differs: they are distinguished by what is embedded (`destination`), not by embedder and language.


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
