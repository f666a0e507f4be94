"""Counts what the feed client has done since it began, or since its statistics were reset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct


class FeedStatistics(Struct, frozen=True):
    """A moment's figures. Latencies are those of single attempts that were answered; None where there are none."""

    requests: int
    """Requests that were sent, each attempt of an operation by itself."""
    responses_by_code: Mapping[int, int]
    exceptions: int
    """Requests without an answer: connections that broke, resets, timeouts."""
    inflight: int
    """Requests that wait for their answers now."""
    min_inflight: int | None
    max_inflight: int | None
    """The fewest and most in flight, looked at whenever a request is sent."""
    average_latency_ms: float | None
    min_latency_ms: float | None
    max_latency_ms: float | None
    bytes_sent: int
    """Of bodies, compressed where they were."""
    bytes_received: int
    """Of bodies."""

    @property
    def responses(self) -> int:
        return sum(self.responses_by_code.values())

    @property
    def successes(self) -> int:
        """Answers with status 200."""
        return self.responses_by_code.get(200, 0)


class Counters:
    """Counts for `FeedStatistics`. On one thread."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.requests = self.exceptions = 0
        self.by_code: Counter[int] = Counter()
        self.bytes_sent = self.bytes_received = 0
        self.latency_seconds = self.max_latency_seconds = 0.0
        self.min_latency_seconds = float("inf")
        self.min_inflight: int | None = None
        self.max_inflight: int | None = None

    def sent(self, body_bytes: int, inflight: int) -> None:
        """A request was sent; `inflight` counts it."""
        self.requests += 1
        self.bytes_sent += body_bytes
        if self.min_inflight is None or inflight < self.min_inflight:
            self.min_inflight = inflight
        if self.max_inflight is None or inflight > self.max_inflight:
            self.max_inflight = inflight

    def answered(self, status: int, body_bytes: int, latency_seconds: float) -> None:
        self.by_code[status] += 1
        self.bytes_received += body_bytes
        self.latency_seconds += latency_seconds
        if latency_seconds < self.min_latency_seconds:
            self.min_latency_seconds = latency_seconds
        if latency_seconds > self.max_latency_seconds:
            self.max_latency_seconds = latency_seconds

    def snapshot(self, inflight: int) -> FeedStatistics:
        responses = sum(self.by_code.values())
        return FeedStatistics(
            self.requests,
            dict(self.by_code),
            self.exceptions,
            inflight,
            self.min_inflight,
            self.max_inflight,
            self.latency_seconds / responses * 1000 if responses else None,
            self.min_latency_seconds * 1000 if responses else None,
            self.max_latency_seconds * 1000 if responses else None,
            self.bytes_sent,
            self.bytes_received,
        )
