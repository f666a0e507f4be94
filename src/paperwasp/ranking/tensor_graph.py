"""Nodes of tensors: the computations of an expression on tensors, as a graph of functions of batches.

A `TensorGraph` makes nodes: the same operation on the same operands is the same node, and small ones that depend on
nothing but constants are computed at once. A number becomes a node by `number`; a node whose tensor is a number becomes
a value of the scalar program by `scalar`, as a feature of it. Nodes are immutable, but for what is remembered of a
constant; a graph may run in many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.core.budget import budget
from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.errors import PaperwaspError
from paperwasp.ranking.program import Feature, FindBest, Floats, Program, ProgramBuilder
from paperwasp.ranking.similarity import dot_product, greatest_similarity, max_similarity
from paperwasp.ranking.tensor_node import Block, Dependence, TensorNode, Work
from paperwasp.ranking.tensor_run import BoundNumber, InnerBlock, batch, levels_of, numbers, whole_column

OfBatches = Callable[..., TensorBatch]
NODE_BYTES: Final = 1500
"""About what a node takes."""


@dataclass(frozen=True, slots=True, eq=False)
class TensorFeature:
    """A tensor that is a number, as a feature of the scalar program."""

    node: TensorNode
    bm25_field: None = None
    query_name: str | None = None

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def levels(self) -> frozenset[int]:
        return self.node.levels

    @property
    def best(self) -> FindBest | None:
        return self.node.best

    def compute(self, context: Any) -> Floats:
        return algebra.numbers(batch(self.node, context))


def dependence_of(feature: Feature) -> Dependence:
    """The dependence of a feature of a scalar program."""
    if isinstance(feature, TensorFeature):
        return feature.node.dependence
    if isinstance(feature, BoundNumber):
        return Dependence.NOTHING
    return Dependence.QUERY if feature.query_name is not None else Dependence.HIT


class _ConstantBlock:
    """The block in which constants are computed: it has no hit."""

    def __init__(self, labels: Labels) -> None:
        self.hits = 1
        self.labels = labels
        self.known: dict[object, Any] = {}


class TensorGraph:
    """Makes the nodes of one profile. `labels` has those of its constants; `family` begins the names of its nodes;
    `folded_cells`: of the constants that are computed with the graph, all together."""

    def __init__(
        self,
        builder: ProgramBuilder,
        labels: Labels,
        family: str = "tensor",
        folded_cells: int = limits.TENSOR_FOLDED_TOGETHER_CELLS,
    ) -> None:
        self.builder = builder
        self.labels = labels
        self._family = family
        self._cells_to_fold = folded_cells
        self._folding_left = limits.TENSOR_FOLDING_CELLS
        self._bytes = 0
        self._nodes: dict[tuple[Any, ...], TensorNode] = {}
        self._numbers: dict[TensorNode, int] = {}

    @property
    def size_bytes(self) -> int:
        """About how much memory the nodes take, with their constants and the programs within them."""
        return self._bytes + NODE_BYTES * len(self._nodes)

    # Nodes

    def node(
        self,
        key: tuple[Any, ...],
        type_: TensorType,
        operands: Sequence[TensorNode],
        work: Work,
        *,
        dependence: Dependence = Dependence.NOTHING,
        levels: frozenset[int] = frozenset(),
        binds: int = 0,
        times: int = 1,
        beside: int = 0,
    ) -> TensorNode:
        """The node of an operation, which `key` and the operands define. `dependence`, `levels`: beyond the operands';
        `binds`: the level of the names that it binds for the last operand. `times`: how often the operands are computed
        for each hit, about; `beside`: the cells that are computed beside them."""
        whole = (*key, *operands)
        found = self._nodes.get(whole)
        if found is None:
            below = levels.union(*(operand.levels for operand in operands)) - {binds}
            most = max((dependence, *(operand.dependence for operand in operands)))
            name = f"{self._family}#{len(self._nodes)}"
            cells = _work_cells(type_, operands, times, beside)
            found = TensorNode(name, type_, whole, tuple(operands), work, most, below, cells)
            self._fold(found)
            self._nodes[whole] = found
        return found

    def apply(
        self, key: tuple[Any, ...], type_: TensorType, operands: Sequence[TensorNode], function: OfBatches
    ) -> TensorNode:
        """The node of a function of the batches of other nodes."""
        given = tuple(operands)
        return self.node(key, type_, given, lambda block: function(*(batch(operand, block) for operand in given)))

    def constant(self, key: tuple[Any, ...], constant: TensorBatch) -> TensorNode:
        node = self.node(key, constant.type, (), lambda block: constant)
        if node.folded is None:
            node.folded = constant
            self._bytes += constant.cells.nbytes + constant.labels.nbytes
        return node

    def _fold(self, node: TensorNode) -> None:
        """Works a constant now, if that is little."""
        if node.dependence or node.levels or not _is_little(node):
            return
        if self._cells_to_fold < 0 or self._folding_left < 0:
            return
        taken = budget.taken_bytes
        try:
            node.folded = batch(node, _ConstantBlock(self.labels))
        except PaperwaspError:
            return  # whoever needs its value gets the error
        finally:
            budget.give_back_to(taken)
        self._cells_to_fold -= node.folded.cells.size
        self._folding_left -= _cells_of(node)
        self._bytes += node.folded.cells.nbytes + node.folded.labels.nbytes

    # From numbers, and back

    def number(self, value: int) -> TensorNode:
        """A value of the scalar program as a tensor without dimensions."""
        program = self.builder.program(value)
        self._bytes += program.size_bytes
        most = max((dependence_of(feature) for feature in program.features), default=Dependence.NOTHING)
        levels = frozenset[int]().union(*(levels_of(feature) for feature in program.features))
        node = self.node(
            ("number", value),
            NUMBER,
            (),
            lambda block: algebra.number(numbers(program, block)),
            dependence=most,
            levels=levels,
            beside=cells_of(program),
        )
        self._numbers[node] = value
        return node

    def scalar(self, node: TensorNode) -> int:
        """A node whose tensor is a number as a value of the scalar program."""
        if node in self._numbers:
            return self._numbers[node]
        if node.folded is not None:
            return self.builder.constant(float(algebra.numbers(node.folded)[0]))
        return self.builder.feature(TensorFeature(node))

    # Operations that are more than one function of batches

    def reduce(self, node: TensorNode, aggregator: str, dimensions: tuple[str, ...], type_: TensorType) -> TensorNode:
        """A node that reduces `node`. Kernels compute sums of products, and the best of these for each label."""
        plain = self._reduce(node, aggregator, dimensions, type_)
        names = dimensions or tuple(d.name for d in node.type.dimensions)
        by_kernel: Callable[[Block], TensorBatch | None] | None = None
        if type_.is_number and aggregator == "sum":
            by_kernel = dot_product(node, names) or max_similarity(node, names)
        elif type_.is_number and aggregator == "max":
            by_kernel = greatest_similarity(node, names)
        if by_kernel is None:
            return plain
        fast = by_kernel

        def work(block: Block) -> TensorBatch:
            found = fast(block)
            return batch(plain, block) if found is None else found

        found = self.node(("kernel",), type_, (plain,), work)
        found.best = getattr(by_kernel, "best", None)
        return found

    def _reduce(self, node: TensorNode, aggregator: str, dimensions: tuple[str, ...], type_: TensorType) -> TensorNode:
        key = ("reduce", aggregator, tuple(sorted(dimensions)))
        if aggregator == "sum" and node.key[:2] == ("join", "multiply"):
            one, other = node.operands
            return self.apply(key, type_, (one, other), lambda a, b: algebra.summed_products(a, b, dimensions))
        return self.apply(key, type_, (node,), lambda t: algebra.reduced(t, aggregator, dimensions))

    def choose(self, condition: int, if_true: TensorNode, if_false: TensorNode, type_: TensorType) -> TensorNode:
        """A node that is for each hit the one or the other. A side that no hit needs is not computed."""
        sides = (if_false, if_true)
        truth = self.number(condition)

        def work(block: Block) -> TensorBatch:
            which = (algebra.numbers(batch(truth, block)) != 0.0).astype(np.int64)
            if len(which) and (which == which[0]).all():
                return algebra.retyped(batch(sides[int(which[0])], block), type_)
            found = [algebra.retyped(batch(side, block), type_) for side in sides]
            return algebra.chosen(which, found, type_)

        return self.node(("if",), type_, (truth, *sides), work)

    def generate(self, type_: TensorType, body: int, level: int) -> TensorNode:
        """A node of a dense tensor whose cells are the value of `body`; the names of `level` are its dimensions."""
        program = self.builder.program(body)
        self._bytes += program.size_bytes
        cell = self.number(body)
        cells = prod(type_.shape)

        def work(block: Block) -> TensorBatch:
            hits = block.hits if cell.dependence is Dependence.HIT or cell.levels - {level} else 1

            def values(first: int, count: int) -> Floats:
                columns = dict(enumerate(algebra.places_of(type_, first, count)))
                owners = np.arange(first, first + count, dtype=np.int64) // cells
                inner = InnerBlock(level, count, columns, block.labels, block, owners)
                return whole_column(program, inner)

            return algebra.filled(type_, hits, values)

        return self.node(("generate", type_), type_, (cell,), work, binds=level, times=cells)

    def literal(
        self, type_: TensorType, addresses: tuple[tuple[str, ...], ...], values: Sequence[TensorNode]
    ) -> TensorNode:
        """A tensor with one number for each address."""
        given = tuple(values)

        def work(block: Block) -> TensorBatch:
            columns = [algebra.numbers(batch(value, block)) for value in given]
            return algebra.literal(type_, addresses, columns, block.labels)

        return self.node(("literal", type_, addresses), type_, given, work)


def cells_of(value: RankValue) -> int:
    """About how many cells of tensors are computed for one hit."""
    if isinstance(value, TensorNode):
        return value.cells
    return sum(feature.node.cells for feature in value.features if isinstance(feature, TensorFeature))


def _work_cells(type_: TensorType, operands: Sequence[TensorNode], times: int, beside: int) -> int:
    """Those of the operands, and one for each combination of places in all dimensions."""
    sizes = {d.name: d.size or 1 for each in (type_, *(operand.type for operand in operands)) for d in each.dimensions}
    below = sum(operand.cells for operand in operands if operand.folded is None)
    return min(prod(sizes.values()) + times * (below + beside), _MOST_CELLS)


_MOST_CELLS: Final = 1 << 50


def _is_little(node: TensorNode) -> bool:
    if any(operand.folded is None and not operand.levels for operand in node.operands):
        return False
    return _cells_of(node) <= limits.TENSOR_FOLDED_CELLS


def _cells_of(node: TensorNode) -> int:
    """The cells of a constant and of its operands, multiplied."""
    folded = (operand.folded.cells.size for operand in node.operands if operand.folded is not None)
    return prod(node.type.shape) * prod(max(1, size) for size in folded)


Value = int | TensorNode
"""A number of the scalar program, or a tensor."""
RankValue = Program | TensorNode
"""A compiled expression: a program for a number, a node for a tensor."""
