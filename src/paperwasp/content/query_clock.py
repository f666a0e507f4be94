"""The time that one query has on a content node.

With a soft timeout, matching and ranking end when a share of it is used up, and what was found is the answer; the rest
is for summaries, and for the way back. Without one there is an answer only if all was searched in time.

Vespa: https://docs.vespa.ai/en/performance/graceful-degradation.html
"""

from __future__ import annotations

from typing import Final

from paperwasp.content.messages import SearchRequest
from paperwasp.env import Environment
from paperwasp.errors import Timeout
from paperwasp.operators.base import OutOfTime

HARD_FACTOR: Final = 0.95
"""The share of the time that is used where there is no soft timeout."""


class QueryClock:
    """Starts when a query is taken up. Raises Timeout if its deadline has passed by then."""

    def __init__(self, request: SearchRequest, env: Environment) -> None:
        self._env = env
        self._end_ns = 0
        if request.deadline_ns > 0:
            now_ns = env.monotonic_ns()
            left_ns = request.deadline_ns - now_ns
            if left_ns <= 0:
                raise Timeout("no time was left to search")
            self._end_ns = now_ns + int(
                left_ns * (request.soft_timeout_factor if request.soft_timeout else HARD_FACTOR)
            )

    @property
    def now_seconds(self) -> float:
        return self._env.now_seconds()

    def is_over(self) -> bool:
        return self._end_ns > 0 and self._env.monotonic_ns() > self._end_ns

    def check(self) -> None:
        """Raises OutOfTime if the time is over."""
        if self.is_over():
            raise OutOfTime
