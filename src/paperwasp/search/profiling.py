"""Where the time of a query goes on a content node: in matching by operators, in ranking by rank features.

Asked for by `trace.profileDepth` and `trace.profiling.*.depth` of a query that is traced. Above 0 a profile is a tree
of that number of levels, with the whole time of each node and that of its own; below 0 a list of that number of tasks,
those with the most time of their own. Both have the shape of the profiles of Vespa's content nodes.

Vespa: https://docs.vespa.ai/en/reference/api/query.html#trace.profiledepth
Differs: documents are ranked in blocks, so a feature is timed for a block and counted for each hit of it; operators are
timed alone, each run once more over all documents, so that those below one may take longer than it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, Final

from paperwasp.base.env import Environment
from paperwasp.base.records import dataclass
from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking import CompiledProfile, Program
from paperwasp.ranking.program import Feature
from paperwasp.ranking.tensor_graph import TensorFeature
from paperwasp.ranking.tensor_run import TensorNode, batch, levels_of
from paperwasp.search.features.block import Block
from paperwasp.search.operators import Operator, SearchSpace, TermOperator
from paperwasp.search.query import Profiling
from paperwasp.search.trace import MOST_OPERATORS, name_of

Report = dict[str, Any]


@dataclass(slots=True)
class _Task:
    """What was done by one name below one other, all times together."""

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
        """What is done within is done for `name`, `count` times."""
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
        """As a trace shows it."""
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
    """Those that a query asks for, by the tags of their reports."""

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
    """What a node of tensors does."""
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
