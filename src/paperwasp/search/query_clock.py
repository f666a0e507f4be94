"""The time and the memory that one query has on a content node.

With a soft timeout, matching and ranking end when a share of it is used up, and what was found is the answer; the rest
is for summaries, and for the way back. Without one there is an answer only if all was searched in time.

Kernels look at the machine's clock themselves, and end in the midst of their work: those that match and rank when
matching must end, those that write hits when nobody waits for the answer any more.

Vespa: https://docs.vespa.ai/en/performance/graceful-degradation.html
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final

from paperwasp.base.env import Environment
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.errors import Timeout
from paperwasp.search.query import Query

HARD_FACTOR: Final = 0.95
"""The share of the time that is used where there is no soft timeout."""


class QueryClock:
    """Starts when a query is taken up. Raises Timeout if its deadline has passed by then.

    As a context it bounds the kernels that its thread calls, and the memory that they take, and takes both bounds away
    again.
    """

    def __init__(self, query: Query, env: Environment) -> None:
        self._env = env
        self._end_ns = 0
        if query.deadline.at_ns > 0:
            now_ns = env.monotonic_ns()
            left_ns = query.deadline.at_ns - now_ns
            if left_ns <= 0:
                raise Timeout("no time was left to search")
            self._end_ns = now_ns + int(
                left_ns * (query.deadline.soft_share if query.deadline.is_soft else HARD_FACTOR)
            )
        # Where a test says what time it is, kernels would read another clock.
        self._bounds_kernels = query.deadline.at_ns > 0 and env.monotonic_ns is time.monotonic_ns
        self._deadline_ns = query.deadline.at_ns
        self._memory_bytes = query.memory_bytes

    def __enter__(self) -> QueryClock:
        budget.most_bytes, budget.taken_bytes = self._memory_bytes, 0  # no call: every query does it
        self.begin_matching()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        budget.most_bytes = budget.taken_bytes = 0
        if self._bounds_kernels:
            end_work_at(0)

    def begin_matching(self) -> None:
        """From now on kernels work for as long as matching may."""
        if self._bounds_kernels:
            end_work_at(self._end_ns)

    def begin_writing(self) -> None:
        """From now on kernels work for as long as somebody waits for the answer."""
        if self._bounds_kernels:
            end_work_at(self._deadline_ns)

    @property
    def now_seconds(self) -> float:
        return self._env.now_seconds()

    def now_ns(self) -> int:
        """The monotonic time."""
        return self._env.monotonic_ns()

    def is_over(self) -> bool:
        return self._end_ns > 0 and self._env.monotonic_ns() > self._end_ns

    def check(self) -> None:
        """Raises OutOfTime if the time is over."""
        if self._end_ns > 0 and self._env.monotonic_ns() > self._end_ns:
            raise OutOfTime
