"""Chooses how many operations are in flight: as many as the service works on best.

Throughput is sampled for each number in flight, on a logarithmic scale, and the number is taken that is best by
throughput^0.7 and latency^0.3; from there it moves by a random step, rather up than down, and up where the best
number is the highest that was tried. Status 429 halves the number at once; each success raises it by a tenth.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Final

_SCALE: Final = 256
"""The most in flight, by the least."""
_BUCKETS: Final = 128
_THROUGHPUT_WEIGHT: Final = 0.7
_LEAST_OF_A_CONNECTION: Final = 2


class Throttler:
    """Chooses the number in flight. On one thread."""

    def __init__(
        self,
        connections: int,
        capacity: int,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        """`connections` of all endpoints; `capacity`, the requests that fit on all of them, is never exceeded."""
        self.least = min(_LEAST_OF_A_CONNECTION * connections, capacity)
        self.most = min(_SCALE * self.least, capacity)
        self._limit_of_refusals = 10 * self.most
        """Ten times the number that 429 allows."""
        self._best = self.least
        self._throughputs = [0.0] * _BUCKETS
        self._sent = 0
        self._succeeded = 0
        self._clock = clock
        self._sampled_at = clock()
        self._chance = chance or random.Random()
        self.target = self.least
        """The number in flight that is wanted now."""

    def sent(self) -> None:
        """An operation was accepted. Takes a sample after enough of them."""
        self._sent += 1
        if self._sent**3 >= 1000 * self.target * self.target:
            self._sample()

    def success(self) -> None:
        """An operation was answered."""
        self._succeeded += 1
        if self._limit_of_refusals < 10 * self.most:
            self._limit_of_refusals += 1
            self._choose()

    def throttled(self, in_flight: int) -> None:
        """The service has answered 429 while `in_flight` operations were in flight."""
        self._limit_of_refusals = max(5 * in_flight, 10 * self.least)
        self._choose()

    def _choose(self) -> None:
        self.target = min(self._best, self._limit_of_refusals // 10)

    def _sample(self) -> None:
        now = self._clock()
        seconds = max(now - self._sampled_at, 1e-9)
        self._sampled_at = now
        ratio = max(1.0, min(_SCALE - 1.0, self.target / self.least))
        self._throughputs[int(_BUCKETS * math.log(ratio) / math.log(_SCALE))] = self._succeeded / seconds
        self._sent = self._succeeded = 0
        best, is_highest_known = self._find_best()
        middle = self._in_flight(best + 0.5)
        target = (self._chance.random() * 0.40 + 0.84) * middle + self._chance.random() * 4 - 1
        if is_highest_known and best + 1 < _BUCKETS:
            target = 1 + self._in_flight(best + 1.5)
        self._best = max(self.least, min(self.most, int(target)))
        self._choose()

    def _find_best(self) -> tuple[int, bool]:
        """The best bucket, and whether none above it is known. Smooths the samples on the way."""
        known = [bucket for bucket, throughput in enumerate(self._throughputs) if throughput > 0]
        if not known:
            return int(_BUCKETS * math.log(max(1.0, self.target / self.least)) / math.log(_SCALE)), False
        best = max(known, key=self._objective)
        raw = [self._throughputs[bucket] for bucket in known]
        for place in range(1, len(known) - 1):
            self._throughputs[known[place]] = (18 * raw[place] + raw[place - 1] + raw[place + 1]) / 20
        return best, best == known[-1]

    def _objective(self, bucket: int) -> float:
        throughput = self._throughputs[bucket]
        return float(throughput * self._in_flight(bucket + 0.5) ** (_THROUGHPUT_WEIGHT - 1))

    def _in_flight(self, bucket: float) -> float:
        return float(self.least * _SCALE ** (bucket / _BUCKETS))
