"""Metrics in the text form that Prometheus reads, by prometheus-client.

    Vespa's metrics      one value a name (`http_status_2xx_rate`), untyped, as Vespa's metrics proxy shows them
    histograms           `paperwasp_request_duration_seconds`, by kind of request: for percentiles over several services
    of the process       prometheus-client's own `process_…` and `python_gc_…`

Nothing is kept between two readings: every one makes families of the numbers that there are.
Vespa: https://docs.vespa.ai/en/reference/api/prometheus-v1.html, PrometheusUtil.java (metrics-proxy)
Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from paperwasp.base.patterns import compile_later
from paperwasp.operations.monitoring.descriptions import described
from paperwasp.operations.monitoring.numbers import Latencies

_NOT_IN_NAMES: Final = compile_later("[^a-zA-Z0-9_]")
BOUNDS_MS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000)
"""Of the buckets of histograms; a part of those of `numbers`."""
HISTOGRAM: Final = "paperwasp_request_duration_seconds"

Sample = tuple[str, Mapping[str, str], float]
"""A name, which may hold dots and hyphens, labels, which may too, and the value."""


class _Families(Collector):
    """Families that are there already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


_PROCESS: Final = (ProcessCollector(registry=None), GCCollector(registry=CollectorRegistry()))


def exposition(
    samples: Iterable[Sample], time_seconds: int | None, histograms: Mapping[str, Latencies] | None = None
) -> bytes:
    """The samples with the time that they are of, and where `histograms` are given (by kind of request), these and the
    metrics of the process."""
    return generate_latest(_Families(list(_families(samples, time_seconds, histograms))))


def _families(
    samples: Iterable[Sample], time_seconds: int | None, histograms: Mapping[str, Latencies] | None
) -> Iterator[Metric]:
    untyped: dict[str, Metric] = {}
    for name, labels, value in samples:
        shown = sanitized(name)
        family = untyped.get(shown) or untyped.setdefault(shown, Metric(shown, described(shown), "unknown"))
        family.add_sample(shown, {sanitized(key): text for key, text in labels.items()}, value, time_seconds)
    yield from untyped.values()
    if histograms is None:
        return
    yield histogram_family(histograms)
    for collector in _PROCESS:
        yield from collector.collect()


def histogram_family(histograms: Mapping[str, Latencies]) -> Metric:
    """The latencies of the kinds of requests, in seconds."""
    family = HistogramMetricFamily(HISTOGRAM, "Time from the head of a request to its whole answer", labels=["kind"])
    for kind, latencies in histograms.items():
        counts = latencies.cumulative(BOUNDS_MS)
        buckets = [(str(bound / 1000), count) for bound, count in zip(BOUNDS_MS, counts, strict=True)]
        family.add_metric([kind], [*buckets, ("+Inf", sum(latencies.buckets))], latencies.total / 1000)
    return family


def sanitized(name: str) -> str:
    """The name as Prometheus takes it: all but letters, digits and `_` become `_`."""
    return _NOT_IN_NAMES.sub("_", name)
