"""Nodes of tensors: the computations of an expression on tensors, as a graph of functions of batches.

A `TensorGraph` makes nodes: the same operation on the same operands is the same node, and small ones that depend on
nothing but constants are computed at once. A number becomes a node by `number`; a node whose tensor is a number becomes
a value of the scalar program by `scalar`, as a feature of it. Nodes are immutable, but for what is remembered of a
constant; a plan may run in many threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from paperwasp import limits
from paperwasp.errors import PaperwaspError, TooLarge
from paperwasp.ranking.evaluation import BoundNumber, InnerBlock, batch, column, levels_of, numbers
from paperwasp.ranking.program import Feature, Floats, Program, ProgramBuilder
from paperwasp.ranking.similarity import dot_product, greatest_similarity, max_similarity
from paperwasp.ranking.tensor_node import Block, Dependence, TensorNode, Work
from paperwasp.records import dataclass
from paperwasp.tensor import algebra
from paperwasp.tensor.algebra.rows import check_size
from paperwasp.tensor.batch import Labels, TensorBatch
from paperwasp.tensor.types import NUMBER, TensorType

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


class TensorBounds(NamedTuple):
    """What the tensors of one graph may take together."""

    folded_cells: int
    """The cells of constants that are computed at once."""
    block_cells: int
    """The cells that are computed for the hits of one block."""


class TensorGraph:
    """Makes the nodes of one profile. `labels` has those of its constants; `family` begins the names of its nodes;
    `bounds` of all nodes together are there where not everybody may be trusted with the bounds of each."""

    def __init__(
        self, builder: ProgramBuilder, labels: Labels, family: str = "tensor", bounds: TensorBounds | None = None
    ) -> None:
        self.builder = builder
        self.labels = labels
        self._family = family
        self._bounds = bounds
        self._folded_cells = 0
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
    ) -> TensorNode:
        """The node of an operation, which `key` and the operands define. `dependence`, `levels`: beyond the operands';
        `binds`: the level of the names that it binds for the last operand."""
        whole = (*key, *operands)
        found = self._nodes.get(whole)
        if found is None:
            below = levels.union(*(operand.levels for operand in operands)) - {binds}
            most = max((dependence, *(operand.dependence for operand in operands)))
            if self._bounds is not None:
                work = _within(work, self._bounds.block_cells)
            found = TensorNode(f"{self._family}#{len(self._nodes)}", type_, whole, tuple(operands), work, most, below)
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
        if self._bounds is not None and self._folded_cells > self._bounds.folded_cells:
            return
        try:
            node.folded = batch(node, _ConstantBlock(self.labels))
        except PaperwaspError:
            return  # whoever needs its value gets the error
        self._folded_cells += node.folded.cells.size
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

        return self.node(("kernel",), type_, (plain,), work)

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
            check_size(hits, type_)
            columns: dict[int, Floats | TensorBatch] = {
                number: np.tile(places, hits) for number, places in enumerate(algebra.place_columns(type_).values())
            }
            inner = InnerBlock(level, hits * cells, columns, block.labels, block, cells)
            values = program.evaluate([column(feature, inner) for feature in program.features], hits * cells)
            return algebra.generated(type_, values)

        return self.node(("generate", type_), type_, (cell,), work, binds=level)

    def literal(
        self, type_: TensorType, addresses: tuple[tuple[str, ...], ...], values: Sequence[TensorNode]
    ) -> TensorNode:
        """A tensor with one number for each address."""
        given = tuple(values)

        def work(block: Block) -> TensorBatch:
            columns = [algebra.numbers(batch(value, block)) for value in given]
            return algebra.literal(type_, addresses, columns, block.labels)

        return self.node(("literal", type_, addresses), type_, given, work)


def _within(work: Work, most_cells: int) -> Work:
    """The same work, which counts its cells among those of all nodes for the hits of a block, functions within it
    included. Raises TooLarge where these are too many."""

    def counted(block: Block) -> TensorBatch:
        found = work(block)
        whole: Block = block
        while isinstance(whole, InnerBlock) and whole.outer is not None:
            whole = whole.outer
        cells = whole.known.get(_CELLS, 0) + found.cells.size + found.labels.size
        whole.known[_CELLS] = cells
        if cells > most_cells:
            raise TooLarge(f"the tensors of these hits together have more than {most_cells} cells")
        return found

    return counted


_CELLS: Final = object()
"""The key under which a block counts its cells."""


def _is_little(node: TensorNode) -> bool:
    cells = prod(node.type.shape)
    for operand in node.operands:
        if operand.folded is not None:
            cells *= max(1, operand.folded.cells.size)
        elif not operand.levels:
            return False
    return cells <= limits.TENSOR_FOLDED_CELLS


Value = int | TensorNode
"""A number of the scalar program, or a tensor."""
RankValue = Program | TensorNode
"""A compiled expression: a program for a number, a node for a tensor."""
