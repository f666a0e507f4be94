"""Why a hit scores what it does: the tree of an expression, with the value of each of its nodes.

An `Explanation` is made of an expression once (`ranking.explaining_compiler`): its nodes are those of the text, with
functions put in their places, and each knows the value that it was compiled to. What the values are for a hit is asked
of whoever has the hit (`ValueOf`); `rendered` makes both a tree that JSON can say, within bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from paperwasp import limits
from paperwasp.document.tensor.value import Tensor
from paperwasp.ranking.program import Feature, Floats, ProgramBuilder, Step, apply_operation
from paperwasp.ranking.tensor_graph import Value

Json = dict[str, Any]


class Explained(Struct, frozen=True, eq=False):
    """One node of an expression."""

    number: int
    """Its place among the nodes of the explanation."""
    kind: str
    """`constant`, `operation`, `function`, `feature`, …"""
    text: str
    value: Value
    operator: str = ""
    children: tuple[Explained, ...] = ()
    choices: tuple[tuple[int | None, int], ...] = ()
    """For a choice: (the value that says whether it is taken, the place of the child that is then its value). The first
    that holds is taken; None always holds."""
    feature: Feature | None = None
    """The rank feature that the node reads; None: the node is none."""
    is_cut: bool = False
    """True where children were left out."""

    def __repr__(self) -> str:
        """Without the children, which nodes share."""
        return f"<{self.kind} {self.text}>"

    @property
    def outcomes(self) -> frozenset[int]:
        """The places of the children of which one is taken."""
        return frozenset(place for _, place in self.choices)


class Explanation(Struct, frozen=True, eq=False):
    """An expression of a rank profile. `nodes`: all there are, each once, by their numbers; the root is the last."""

    nodes: tuple[Explained, ...]
    builder: ProgramBuilder
    """The builder that has the values that are numbers."""

    @property
    def root(self) -> Explained:
        return self.nodes[-1]


class PartValue(NamedTuple):
    """A part that a rank feature is computed from, and its value for one hit."""

    text: str
    value: float
    parts: tuple[PartValue, ...] = ()


class NodeValue(NamedTuple):
    """The value of a node for one hit."""

    value: float | str | None = None
    """A number, or a tensor as its literal; None: it is not known."""
    taken: int | None = None
    """For a choice: the place of the child that is its value."""
    parts: tuple[PartValue, ...] = ()


ValueOf = Callable[[Explained], NodeValue]


class Columns:
    """The values of a builder for some hits: each computed when it is first needed, as the kernel computes it within a
    program. `of_feature`: one float64 for each hit, or a single one; None: it is not known here."""

    def __init__(self, builder: ProgramBuilder, of_feature: Callable[[Feature], Floats | None]) -> None:
        self._builder = builder
        self._of_feature = of_feature
        self._columns: dict[int, Floats | None] = {}

    def of(self, number: int) -> Floats | None:
        """The value with this number; None where it depends on what is not known."""
        if number not in self._columns:
            for each, step in self._builder.steps(number):
                if each not in self._columns:
                    self._columns[each] = self._compute(step)
        return self._columns[number]

    def at(self, number: int, hit: int) -> float | None:
        """The same, of one hit."""
        column = self.of(number)
        return None if column is None else float(column[hit if len(column) > 1 else 0])

    def _compute(self, step: Step) -> Floats | None:
        if step.constant is not None:
            return np.array([step.constant])
        if step.feature is not None:
            return self._of_feature(step.feature)
        operands = [self._columns[operand] for operand in step.operands]
        known = [operand for operand in operands if operand is not None]
        return apply_operation(step.operation, known) if len(known) == len(operands) else None

    def taken(self, node: Explained, hit: int) -> int | None:
        """Which outcome of a choice one hit has; None where that is not known, or there is no choice."""
        for condition, place in node.choices:
            truth = 1.0 if condition is None else self.at(condition, hit)
            if truth is None:
                return None
            if truth != 0.0:
                return place
        return None


def rendered(explanation: Explanation, value_of: ValueOf) -> Json:
    """The tree of an expression for one hit."""
    return _Renderer(value_of).node(explanation.root, limits.EXPLAINED_DEPTH)


class _Renderer:
    """Renders one tree. What has children is shown once: where it comes again, it says that it is shown above."""

    def __init__(self, value_of: ValueOf) -> None:
        self._value_of = value_of
        self._left = limits.EXPLAINED_NODES
        self._shown: set[tuple[str, Value]] = set()

    def node(self, node: Explained, depth: int, **taken: bool) -> Json:
        self._left -= 1
        value = self._value_of(node)
        shown_node: Json = {"expression": node.text, "kind": node.kind, **taken}
        if node.feature is not None and node.feature.name != node.text:
            shown_node["feature"] = node.feature.name
        if node.operator:
            shown_node["operator"] = node.operator
        shown_node["value"] = shown_number(value.value) if isinstance(value.value, float) else value.value
        if not (node.children or value.parts):
            return shown_node | ({"cut": _MANY} if node.is_cut else {})
        if (node.text, node.value) in self._shown:
            return shown_node | {"shown": "above"}
        if depth <= 1:
            return shown_node | {"cut": f"more than {limits.EXPLAINED_DEPTH} levels"}
        self._shown.add((node.text, node.value))
        children = self._children(node, value, depth - 1) + self._parts(value.parts, depth - 1)
        is_whole = len(children) == len(node.children) + len(value.parts) and not node.is_cut
        return shown_node | ({} if is_whole else {"cut": _MANY}) | {"children": children}

    def _children(self, node: Explained, value: NodeValue, depth: int) -> list[Json]:
        outcomes = node.outcomes
        children: list[Json] = []
        for place, child in enumerate(node.children):
            if self._left <= 0:
                break
            if place not in outcomes:
                children.append(self.node(child, depth))
            elif place == value.taken:
                children.append(self.node(child, depth, taken=True))
            else:
                self._left -= 1
                children.append({"expression": child.text, "kind": child.kind, "taken": False})
        return children

    def _parts(self, parts: Sequence[PartValue], depth: int) -> list[Json]:
        shown_parts: list[Json] = []
        for part in parts:
            if self._left <= 0:
                break
            self._left -= 1
            shown: Json = {"expression": part.text, "kind": "part", "value": shown_number(part.value)}
            if part.parts:
                below = self._parts(part.parts, depth - 1) if depth > 1 else []
                shown |= {} if len(below) == len(part.parts) else {"cut": _MANY}
                shown["children"] = below
            shown_parts.append(shown)
        return shown_parts


_MANY: Final = "there are more: too many to show"


def shown_number(value: float) -> float | str:
    """As JSON can say it: what is no finite number by its name."""
    if isfinite(value):
        return value
    return "NaN" if value != value else ("Infinity" if value > 0 else "-Infinity")


def shown_tensor(tensor: Tensor) -> str:
    """A tensor as its literal; the type and the first cells of a large one."""
    cells = tensor.cells.size
    if cells <= limits.EXPLAINED_TENSOR_CELLS:
        return str(tensor)
    per_row = cells // len(tensor.cells)
    rows = limits.EXPLAINED_TENSOR_CELLS // per_row
    if not rows:
        first = ",".join(map(repr, tensor.cells.reshape(-1)[: limits.EXPLAINED_TENSOR_CELLS].astype(float).tolist()))
        return f"{tensor.type}: {first}, … ({cells} cells)"
    part = Tensor(tensor.type, tensor.labels[:rows], tensor.cells[:rows])
    return f"{str(part)[:-1]}, …}} ({cells} cells)"
