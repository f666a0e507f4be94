"""Observation of a query: its trace, profiles of its time, and the documents whose counters change.

Matching and ranking report to one `Observer` for each document type. A query that asks for nothing has `NO_OBSERVER`,
which takes no notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.content.log.records import Mutate
from paperwasp.core import _core
from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.ranking.program import Feature
from paperwasp.ranking.tensor_graph import TensorFeature
from paperwasp.ranking.tensor_run import TensorNode, batch, levels_of
from paperwasp.schema.model import Mutation
from paperwasp.search.features.block import Block
from paperwasp.search.mutations import Touched
from paperwasp.search.operators import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.query import Profiling

_NOTHING: Final = nullcontext()


class Observer:
    """Takes no notice of anything."""

    is_tracing: bool = False
    """Whether steps and tags are noted."""

    def profile(self, profile: CompiledProfile) -> CompiledProfile:
        """Return the rank profile to run: the same, or one whose features report the time that they take."""
        return profile

    def step(self, name: str, by: str) -> None:
        """Note whether a step of the query was done by a kernel, which is named, or by the general code."""

    def tag(self, name: str, **values: object) -> None:
        """Note the values of a phase that is over."""

    def task(self, phase: str, name: str, count: int = 1) -> AbstractContextManager[None]:
        """Return a context within which a task of a phase is done this number of times."""
        return _NOTHING

    def wants(self, *phases: str) -> bool:
        """Return whether it matters which documents reach any of these phases."""
        return False

    def reach(self, phase: str, lids: Iterable[Lids]) -> None:
        """Note the documents that reached a phase, in any number of arrays, instead of those noted of it before."""

    def begin(self, operator: Operator, space: SearchSpace, profile_name: str) -> None:
        """Note that the documents of a type are searched now."""

    def end(self, operator: Operator, space: SearchSpace) -> None:
        """Note that the documents of a type are ranked."""

    def mutations(self, document_type: str, gids: NDArray[np.uint8]) -> tuple[Mutate, ...]:
        """Return what the rank profile changes in the documents that reached its phases. `gids`: by lid."""
        return ()


NO_OBSERVER: Final = Observer()


def observer_of(trace: QueryTrace | None, profiling: Profiling, mutations: Sequence[Mutation]) -> Observer:
    """Return the observer of a query's documents of one type. `mutations`: of its rank profile."""
    if trace is None and not mutations:
        return NO_OBSERVER
    profilers = Profilers(trace.env, profiling) if trace is not None and profiling else None
    return TypeObserver(trace, profilers, Touched(mutations) if mutations else None)


class TypeObserver(Observer):
    """Notes what a query asks for, for the documents of one type. On one thread at a time."""

    def __init__(self, trace: QueryTrace | None, profilers: Profilers | None, touched: Touched | None) -> None:
        self._trace = trace
        self._profilers = profilers
        self._touched = touched
        self._steps: dict[str, str] = {}
        self.is_tracing = trace is not None

    def profile(self, profile: CompiledProfile) -> CompiledProfile:
        return profile if self._profilers is None else self._profilers.profile(profile)

    def step(self, name: str, by: str) -> None:
        self._steps[name] = by

    def tag(self, name: str, **values: object) -> None:
        if self._trace is not None:
            self._trace.tag(name, **values)

    def task(self, phase: str, name: str, count: int = 1) -> AbstractContextManager[None]:
        profiler = None if self._profilers is None else self._profilers.of(phase)
        return _NOTHING if profiler is None else profiler.task(name, count)

    def wants(self, *phases: str) -> bool:
        return self._touched is not None and self._touched.wants(*phases)

    def reach(self, phase: str, lids: Iterable[Lids]) -> None:
        if self._touched is not None and self._touched.wants(phase):
            self._touched.note(phase, np.concatenate([np.zeros(0, np.uint32), *lids]))

    def begin(self, operator: Operator, space: SearchSpace, profile_name: str) -> None:
        trace = self._trace
        if trace is None:
            return
        document_type = space.schema.document.name
        trace.begin(document_type, self._steps)
        trace.tag("query_setup", document_type=document_type, documents=space.documents, profile=profile_name)
        if trace.tells_plan:
            trace.tag("query_execution_plan", optimized=trace.explain(operator, space))

    def end(self, operator: Operator, space: SearchSpace) -> None:
        if self._trace is not None and self._profilers is not None:
            self._profilers.matching(operator, space)
            self._trace.tag("query_execution", threads=[{"traces": self._profilers.report()}])

    def mutations(self, document_type: str, gids: NDArray[np.uint8]) -> tuple[Mutate, ...]:
        return () if self._touched is None else tuple(self._touched.operations(document_type, gids))


# The trace of one query on a content node: when its phases ended, and the plan with what each operator found.
#
# It has the shape of the traces of Vespa's content nodes: for each document type `{start_time, distribution-key,
# document-type, duration_ms, traces: […]}`, each of `traces` with a `timestamp_ms` and an `event`, or with a `tag` and
# more below it. A query that asks for no trace has no `QueryTrace` at all.
#
# Vespa: https://docs.vespa.ai/en/querying/query-api.html#query-tracing


PLAN_LEVEL: Final = 6
"""The level from which a trace shows the plan, also without an explain level."""
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
        """Begin the part of a document type. `steps` is filled later: whether each step of the query was
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
    """Return the name of an operator in YQL, as far as it has one."""
    return _NAMES.get(type(operator).__name__, type(operator).__name__.removesuffix("Operator").lower())


_NAMES: Final[Mapping[str, str]] = {
    "TermOperator": "contains",
    "NotOperator": "andNot",
    "OrOperator": "or",
    "NearestNeighborOperator": "nearestNeighbor",
}


def _said(operator: Operator) -> dict[str, Any]:
    """Describe the search of a leaf."""
    if not isinstance(operator, TermOperator):
        return {}
    fields = [
        {"field": match.field, "by": type(match).__name__.removesuffix("Match").lower()} for match in operator.matches
    ]
    return {"fields": fields, **({"weight": operator.annotations.weight} if operator.annotations.weight != 100 else {})}


# The profile of a query on a content node: its time in matching by operators, in ranking by rank features.
#
# Asked for by `trace.profileDepth` and `trace.profiling.*.depth` of a query that is traced. Above 0 a profile is a
# tree of that number of levels, with the whole time of each node and that of its own; below 0 a list of that number of
# tasks, those with the most time of their own. Both have the shape of the profiles of Vespa's content nodes.
#
# Vespa: https://docs.vespa.ai/en/reference/api/query.html#trace.profiledepth
# Differs: documents are ranked in blocks,
# so a feature is timed for a block and counted for each hit of it; operators are timed alone, each run once more over
# all documents, so that those below one may take longer than it does.


Report = dict[str, Any]


class _Task(Struct):
    """The time spent under one name below another, all times together."""

    name: str
    count: int = 0
    total_ns: int = 0
    below: dict[str, _Task] = field(default_factory=dict)

    @property
    def self_ns(self) -> int:
        return max(0, self.total_ns - sum(task.total_ns for task in self.below.values()))

    def walk(self) -> Iterator[_Task]:
        yield self
        for task in self.below.values():
            yield from task.walk()


class Profiler:
    """Collects the time of tasks within tasks, on one thread."""

    def __init__(self, env: Environment, depth: int) -> None:
        self._env = env
        self.depth = depth
        self._root = _Task("")
        self._open = [self._root]

    @contextmanager
    def task(self, name: str, count: int = 1) -> Iterator[None]:
        """Measure the block as work for `name`, `count` times."""
        task = self._open[-1].below.setdefault(name, _Task(name))
        self._open.append(task)
        begun_ns = self._env.monotonic_ns()
        try:
            yield
        finally:
            task.total_ns += self._env.monotonic_ns() - begun_ns
            task.count += count
            self._open.pop()

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """The tasks within are below `name`, beyond the time that it took."""
        self._open.append(self._open[-1].below[name])
        try:
            yield
        finally:
            self._open.pop()

    def report(self) -> Report:
        """Return the report as a trace shows it."""
        if self.depth > 0:
            roots = _sorted(self._root.below.values(), lambda task: task.total_ns)
            total_ns = sum(task.total_ns for task in roots)
            report: Report = {"profiler": "tree", "depth": self.depth, "total_time_ms": _ms(total_ns)}
            return report | {"roots": [_tree(task, self.depth) for task in roots]}
        together: dict[str, list[int]] = {}
        for task in self._root.walk():
            if task is not self._root:
                counted = together.setdefault(task.name, [0, 0])
                counted[0] += task.count
                counted[1] += task.self_ns
        report = {
            "profiler": "flat",
            "topn": -self.depth,
            "total_time_ms": _ms(sum(self_ns for _, self_ns in together.values())),
        }
        longest = sorted(together.items(), key=lambda item: -item[1][1])[: -self.depth]
        longest_tasks = [{"name": name, "count": count, "self_time_ms": _ms(ns)} for name, (count, ns) in longest]
        return report | {"roots": longest_tasks}


def _sorted(tasks: Any, key: Callable[[_Task], int]) -> list[_Task]:
    return sorted(tasks, key=key, reverse=True)


def _tree(task: _Task, depth: int) -> Report:
    report: Report = {"name": task.name, "count": task.count, "total_time_ms": _ms(task.total_ns)}
    if task.below and depth > 1:
        report["self_time_ms"] = _ms(task.self_ns)
        report["children"] = [_tree(below, depth - 1) for below in _sorted(task.below.values(), lambda t: t.total_ns)]
    return report


def _ms(time_ns: int) -> float:
    return time_ns / 1e6


FIRST_PHASE: Final = "first_phase_profiling"
SECOND_PHASE: Final = "second_phase_profiling"
_MATCHING: Final = "match_profiling"
EXPRESSION: Final = "rank expression"
"""The task of a whole phase: its own time is that of the arithmetic."""


class Profilers:
    """The profilers that a query asks for, by the tags of their reports."""

    def __init__(self, env: Environment, wanted: Profiling) -> None:
        depths = {_MATCHING: wanted.matching, FIRST_PHASE: wanted.first_phase, SECOND_PHASE: wanted.second_phase}
        self._by_tag = {tag: Profiler(env, depth) for tag, depth in depths.items() if depth}

    def of(self, tag: str) -> Profiler | None:
        return self._by_tag.get(tag)

    def matching(self, operator: Operator, space: SearchSpace) -> None:
        """Runs each operator alone."""
        profiler = self.of(_MATCHING)
        if profiler is not None:
            _time(operator, space, profiler, "", [MOST_OPERATORS])

    def profile(self, profile: CompiledProfile) -> CompiledProfile:
        """The profile, whose features tell what they take."""
        second = profile.second_phase
        return replace(
            profile,
            first_phase=_timed(profile.first_phase, self.of(FIRST_PHASE)),
            second_phase=None if second is None else _timed(second, self.of(SECOND_PHASE)),
        )

    def report(self) -> list[Report]:
        return [{"tag": tag, **profiler.report()} for tag, profiler in self._by_tag.items()]


def _time(operator: Operator, space: SearchSpace, profiler: Profiler, path: str, left: list[int]) -> None:
    left[0] -= 1
    fields = [match.field for match in operator.matches] if isinstance(operator, TermOperator) else []
    name = f"{path}/{name_of(operator)}" + (f"({','.join(fields)})" if fields else "")
    operator.estimate()
    with profiler.task(name):
        operator.bitmap(space.accept)
    with profiler.within(name):
        for place, child in enumerate(operator.children_of()):
            if left[0] > 0:
                _time(child, space, profiler, f"{path}/{place}", left)


def _timed(program: Program, profiler: Profiler | None) -> Program:
    if profiler is None:
        return program
    return replace(program, features=tuple(_TimedFeature(feature, profiler) for feature in program.features))


class _TimedFeature:
    """A rank feature that tells what it takes."""

    def __init__(self, feature: Feature, profiler: Profiler) -> None:
        self.name = feature.name
        self.bm25_field = feature.bm25_field
        self.query_name = feature.query_name
        self.levels = levels_of(feature)
        self._feature = feature
        self._profiler = profiler

    def compute(self, block: Block) -> Any:
        node = self._feature.node if isinstance(self._feature, TensorFeature) else None
        with self._profiler.task(self.name if node is None else _described(node), block.hits):
            if node is not None:
                self._operands(node, block)
            return self._feature.compute(block)

    def _operands(self, node: TensorNode, block: Block) -> None:
        """Computes what a tensor is made of before it, so that each is timed; of a choice, only its condition."""
        operands: Sequence[TensorNode] = node.operands[:1] if node.key[0] == "if" else node.operands
        for operand in operands:
            if operand.folded is None and not operand.levels and operand not in block.known:
                with self._profiler.task(_described(operand), block.hits):
                    self._operands(operand, block)
                    batch(operand, block)


def _described(node: TensorNode) -> str:
    """Describe a node of a tensor graph."""
    name, *given = (part for part in node.key if not isinstance(part, TensorNode))
    if name == "feature":
        return str(given[0])
    shown = [str(part) for part in _flat(given) if isinstance(part, str | TensorType)]
    return f"{name}({','.join(shown)})"


def _flat(parts: Sequence[Any]) -> Iterator[Any]:
    for part in parts:
        if isinstance(part, tuple | list):
            yield from _flat(part)
        else:
            yield part
