"""What a content node tells of one query: when its phases ended, and the plan with what each operator found.

It has the shape of the traces of Vespa's content nodes: for each document type `{start_time, distribution-key,
document-type, duration_ms, traces: […]}`, each of `traces` with a `timestamp_ms` and an `event`, or with a `tag` and
more below it. A query that asks for no trace has no `QueryTrace` at all.

Vespa: https://docs.vespa.ai/en/querying/query-api.html#query-tracing
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from paperwasp.base.env import Environment
from paperwasp.core import _core
from paperwasp.search.operators import Operator, SearchSpace, TermOperator

PLAN_LEVEL: Final = 6
"""Of the trace: from here on it shows the plan, also without an explain level."""
MOST_OPERATORS: Final = 500
"""The most that a plan shows."""


class QueryTrace:
    """Collects what one query did, on one thread."""

    def __init__(self, env: Environment, level: int, explain_level: int) -> None:
        self.env = env
        self.level = level
        self.explain_level = explain_level
        self._start_ns = env.monotonic_ns()
        self._start_seconds = env.now_seconds()
        self._traces: list[Any] = []
        self._by_type: dict[str, list[Any]] = {}

    @property
    def tells_plan(self) -> bool:
        return self.explain_level > 0 or self.level >= PLAN_LEVEL

    def begin(self, document_type: str, steps: Mapping[str, str]) -> None:
        """What comes now is about documents of this type. `steps`: filled later: whether each step of the query was
        done by a kernel, which is named, or by the general code."""
        self._traces = self._by_type.setdefault(document_type, self._traces if not self._by_type else [])
        self.tag("steps", steps=steps)

    def event(self, text: str) -> None:
        """Notes that something is done."""
        self._traces.append({"timestamp_ms": self._elapsed_ms(), "event": text})

    def tag(self, name: str, **values: Any) -> None:
        self._traces.append({"tag": name, "timestamp_ms": self._elapsed_ms(), **values})

    def finished(self) -> list[object]:
        """The trace as JSON can say it."""
        start = (
            datetime.fromtimestamp(self._start_seconds, UTC).isoformat(" ", "milliseconds").replace("+00:00", " UTC")
        )
        of_node: dict[str, Any] = {"start_time": start, "distribution-key": 0}
        if not self._by_type:
            return [of_node | {"duration_ms": self._elapsed_ms(), "traces": self._traces}]
        return [
            of_node | {"document-type": name, "duration_ms": self._elapsed_ms(), "traces": traces}
            for name, traces in self._by_type.items()
        ]

    def _elapsed_ms(self) -> float:
        return round((self.env.monotonic_ns() - self._start_ns) / 1e6, 3)

    def explain(self, operator: Operator, space: SearchSpace) -> dict[str, Any]:
        """The plan. From explain level 2 on each operator is run once more, alone, and its time is shown."""
        left = [MOST_OPERATORS]
        operator.bitmap()  # what looks for a number of hits tells how it did so within what the others leave
        details = dict(_details(operator))

        def describe(operator: Operator) -> dict[str, Any]:
            left[0] -= 1
            said = {**_said(operator), **details.get(id(operator), {})}
            shown: dict[str, Any] = {"operator": name_of(operator), **said, "estimate": operator.estimate()}
            started = self.env.monotonic_ns()
            shown["hits"] = _core.bitmap_count(operator.bitmap(space.accept), space.accept)
            if self.explain_level > 1:
                shown["time_us"] = (self.env.monotonic_ns() - started) // 1000
            below = operator.children_of()
            order = {id(child): place for place, child in enumerate(operator.order())}
            children = [_placed(describe(child), order.get(id(child))) for child in below if left[0] > 0]
            return shown | ({"children": children} if children else {})

        return describe(operator)


def _details(operator: Operator) -> Iterator[tuple[int, dict[str, Any]]]:
    """For each term of a plan, by its identity, how it found its documents."""
    waiting = [operator]
    while waiting:
        one = waiting.pop()
        waiting += one.children_of()
        if isinstance(one, TermOperator):
            yield id(one), {name: value for match in one.matches for name, value in match.details().items()}


def _placed(shown: dict[str, Any], place: int | None) -> dict[str, Any]:
    """With the place at which its parent looks at it; None: that never does."""
    return shown if place is None else {"order": place, **shown}


def name_of(operator: Operator) -> str:
    """What an operator is called in YQL, as far as it has a name there."""
    return _NAMES.get(type(operator).__name__, type(operator).__name__.removesuffix("Operator").lower())


_NAMES: Final[Mapping[str, str]] = {
    "TermOperator": "contains",
    "NotOperator": "andNot",
    "OrOperator": "or",
    "NearestNeighborOperator": "nearestNeighbor",
}


def _said(operator: Operator) -> dict[str, Any]:
    """What a leaf looks for."""
    if not isinstance(operator, TermOperator):
        return {}
    fields = [
        {"field": match.field, "by": type(match).__name__.removesuffix("Match").lower()} for match in operator.matches
    ]
    return {"fields": fields, **({"weight": operator.annotations.weight} if operator.annotations.weight != 100 else {})}
