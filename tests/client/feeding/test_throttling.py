"""How many operations the feed client has in flight: bounds, 429, and the search for the best number."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.feeding.throttling import Throttler
from tests.chance import SEED


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def throttler(connections: int = 8, capacity: int = 1024, clock: Clock | None = None) -> Throttler:
    return Throttler(connections, capacity, clock or Clock(), random.Random(SEED))


@given(
    st.integers(1, 50),
    st.integers(1, 10_000),
    st.lists(st.tuples(st.sampled_from(["sent", "success", "throttled"]), st.integers(0, 3000)), max_size=300),
)
def test_the_number_stays_within_its_bounds(connections: int, capacity: int, steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    made = throttler(connections, capacity, clock)
    least = min(2 * connections, capacity)
    for step, number in steps:
        clock.now += number / 1e4
        if step == "throttled":
            made.throttled(number)
            assert made.target <= max(least, number // 2)
        elif step == "sent":
            made.sent()
        else:
            made.success()
        assert least <= made.target <= min(256 * least, capacity)


def test_it_begins_with_two_a_connection() -> None:
    assert throttler(8).target == 16
    assert throttler(8, 5).target == 5


def test_429_halves_the_number_and_ten_successes_raise_it_by_one() -> None:
    clock = Clock()
    made = throttler(clock=clock)
    climb(made, clock, lambda in_flight: float(in_flight))
    assert made.target > 200
    made.throttled(200)
    assert made.target == 100
    for _ in range(10):
        made.success()
    assert made.target == 101
    made.throttled(4)
    assert made.target == 16


def climb(made: Throttler, clock: Clock, throughput: object, steps: int = 60_000) -> list[int]:
    """Has a service answer with a throughput that depends on the number in flight."""
    targets = []
    for _ in range(steps):
        clock.now += 1 / throughput(made.target)  # type: ignore[operator]
        made.sent()
        made.success()
        targets.append(made.target)
    return targets


@pytest.mark.parametrize("knee", [30, 100, 400])
def test_it_finds_the_number_from_which_on_throughput_does_not_grow(knee: int) -> None:
    """Throughput grows up to the knee and stays: by throughput^0.7 · latency^-0.3 the knee is best."""
    clock = Clock()
    targets = climb(throttler(clock=clock), clock, lambda in_flight: 1000.0 * min(in_flight, knee))
    late = sorted(targets[-20_000:])
    median = late[len(late) // 2]
    assert knee / 1.6 < median < knee * 1.6


def test_samples_follow_their_definition() -> None:
    """The next number from the first sample, computed by hand: one bucket is known, so the next one is tried."""
    clock = Clock()
    made = throttler(clock=clock)
    count = math.ceil((1000 * 16 * 16) ** (1 / 3))
    for _ in range(count - 1):
        made.sent()
        made.success()
    assert made.target == 16
    clock.now += 1
    made.sent()
    assert made.target == int(1 + 16 * 256 ** (1.5 / 128))
