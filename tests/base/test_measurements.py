"""Counts, sums, extremes and percentiles of numbers, against lists of all of them; and what is recent."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence

import pytest

from paperwasp.admin.monitoring.exposition import BOUNDS_MS as SHOWN_BOUNDS_MS
from paperwasp.base.env import Environment
from paperwasp.base.measurements import BOUNDS_MS, Latencies, Numbers, Windows
from paperwasp.limits.monitoring import RECENT_SECONDS

SEED = 7


def _width_at(value: float) -> float:
    """How wide the bucket is that the value is in."""
    place = bisect.bisect_left(BOUNDS_MS, value)
    return BOUNDS_MS[place] - (BOUNDS_MS[place - 1] if place else 0.0)


def _rank(values: Sequence[float], percent: float) -> float:
    """The value of which `percent` of all are not larger."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * int(percent) // 100) - 1)]


def test_values_are_those_of_a_list() -> None:
    numbers = Numbers()
    for value in (3.0, 1.0, 8.0):
        numbers.add(value)
    assert numbers.values(2.0) == {
        "average": 4.0,
        "sum": 12.0,
        "count": 3,
        "last": 8.0,
        "max": 8.0,
        "min": 1.0,
        "rate": 1.5,
    }


def test_no_number_at_all() -> None:
    assert set(Latencies().values(1.0).values()) == {0.0}


def test_bounds_ascend_and_hold_those_that_are_shown() -> None:
    assert list(BOUNDS_MS) == sorted(set(BOUNDS_MS))
    assert set(SHOWN_BOUNDS_MS) <= set(BOUNDS_MS)


@pytest.mark.parametrize("scale", [0.5, 20.0, 3000.0])
def test_percentiles_are_as_exact_as_their_buckets(scale: float) -> None:
    choice = random.Random(SEED)
    values = [choice.expovariate(1 / scale) for _ in range(2000)]
    latencies = Latencies()
    for value in values:
        latencies.add(value)
    for percent in (1, 50, 95, 99, 100):
        expected = _rank(values, percent)
        assert abs(latencies.percentile(percent) - expected) <= _width_at(expected) + 1e-9
    assert latencies.percentile(100) == max(values)
    for bound, count in zip(SHOWN_BOUNDS_MS, latencies.cumulative(SHOWN_BOUNDS_MS), strict=True):
        assert count == sum(value <= bound for value in values)


def test_latencies_beyond_all_bounds() -> None:
    latencies = Latencies()
    latencies.add(1e9)
    assert latencies.buckets[-1] == 1
    assert 0 < latencies.percentile(50) <= 1e9
    assert latencies.cumulative(SHOWN_BOUNDS_MS)[-1] == 0


def test_two_together_are_as_one() -> None:
    choice = random.Random(SEED)
    first, second, whole = Latencies(), Latencies(), Latencies()
    for number in range(300):
        value = choice.random() * 100
        (first if number % 3 else second).add(value)
        whole.add(value)
        if number in (100, 200):
            for each in (first, second, whole):
                each.turn()
    first.include(second)
    first.last = whole.last
    assert first.values(1.0) == pytest.approx(whole.values(1.0))
    assert first.buckets == whole.buckets


def test_what_is_recent() -> None:
    now_s = [1000]
    windows = Windows(Environment(time_ns=lambda: now_s[0] * 10**9))
    numbers = Numbers()
    numbers.add(100.0)
    now_s[0] += RECENT_SECONDS - 1
    windows.turn_if_due([numbers])
    assert (numbers.values(windows.seconds)["max"], windows.seconds) == (100.0, RECENT_SECONDS - 1)
    now_s[0] += 1
    windows.turn_if_due([numbers])  # the first is recent still
    numbers.add(10.0)
    numbers.add(20.0)
    assert numbers.values(windows.seconds) == {
        "average": pytest.approx(130 / 3),
        "sum": 130.0,
        "count": 3,
        "last": 20.0,
        "max": 100.0,
        "min": 10.0,
        "rate": 3 / RECENT_SECONDS,
    }
    now_s[0] += RECENT_SECONDS
    windows.turn_if_due([numbers])  # now it is not
    shown = numbers.values(windows.seconds)
    assert (shown["count"], shown["sum"]) == (3, 130.0)
    assert (shown["average"], shown["max"], shown["min"], shown["rate"]) == (15.0, 20.0, 10.0, 2 / RECENT_SECONDS)
    now_s[0] += 2 * RECENT_SECONDS
    windows.turn_if_due([numbers])
    assert (numbers.recent_count, windows.seconds) == (0, 2 * RECENT_SECONDS)
    assert windows.snapshot() == {"from": 1000.0, "to": 1000.0 + 4 * RECENT_SECONDS}
