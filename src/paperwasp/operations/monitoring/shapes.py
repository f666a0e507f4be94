"""A metric as `/state/v1/metrics` shows it: `{"name", "values", "dimensions"}`, and functions that make some.

Vespa: MetricSnapshot and StateHandler.java (container-disc): a count has `count` and `rate`, all else is a gauge.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
