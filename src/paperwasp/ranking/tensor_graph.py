"""Nodes of tensors: the computations of an expression on tensors, as a graph of functions of batches.

A `TensorGraph` makes nodes: the same operation on the same operands is the same node, and small ones that depend on
nothing but constants are computed at once. A number becomes a node by `number`; a node whose tensor is a number becomes
a value of the scalar program by `scalar`, as a feature of it. Nodes are immutable, but for what is remembered of a
constant; a graph may run in many threads.

Dot products, and the forms of MaxSim, have a kernel that computes them where the vectors of documents stand. When an
expression is compiled, its types tell whether it is one. The vectors of the query must be the same for all hits, which
blocks tell: where they are not, the nodes are computed one by one.
Vespa: https://docs.vespa.ai/en/ranking/tensor-examples.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.budget import budget
from paperwasp.core.rank.best_parts import BestHits
from paperwasp.core.together import Together
from paperwasp.document.tensor import algebra, products
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.errors import PaperwaspError, TooLarge
from paperwasp.ranking.program import Feature, FindBest, Floats, Program, ProgramBuilder
from paperwasp.ranking.tensor_run import (
    Block,
    BoundNumber,
    Dependence,
    InnerBlock,
    TensorNode,
    Work,
    batch,
    kept,
    levels_of,
    numbers,
    whole_column,
)

OfBatches = Callable[..., TensorBatch]
NODE_BYTES: Final = 1500
"""About what a node takes."""


class TensorFeature(Struct, frozen=True, eq=False):
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
    """Estimate the cells of tensors that are computed for one hit."""
    if isinstance(value, TensorNode):
        return value.cells
    return sum(feature.node.cells for feature in value.features if isinstance(feature, TensorFeature))


def _work_cells(type_: TensorType, operands: Sequence[TensorNode], times: int, beside: int) -> int:
    """Count the cells of the operands, and one for each combination of places in all dimensions."""
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


# Dot products, and the forms of MaxSim, computed by a kernel where the vectors of documents stand


class Similarity(Struct, frozen=True, eq=False):
    """The sum over one dimension of the query of the greatest, over the mapped one of documents, of products."""

    query: TensorNode
    documents: TensorNode
    nearest: products.Nearest
    summed: str
    """Empty: the query is one vector."""

    def __call__(self, block: Block) -> TensorBatch | None:
        """None: the query has other vectors for other hits."""
        query = batch(self.query, block)
        if not query.is_single:
            return None
        return products.max_similarity(self.nearest, query, kept(self.documents, block), self.summed)


class DotProduct(Struct, frozen=True, eq=False):
    """The sum of the products of a dense tensor of the query and one of documents."""

    query: TensorNode
    documents: TensorNode

    def __call__(self, block: Block) -> TensorBatch | None:
        """None: the query has other cells for other hits, or the cells of documents are of another type."""
        query = batch(self.query, block)
        return products.dots(query, kept(self.documents, block)) if query.is_single else None

    def best(
        self, block: Block, hits: NDArray[np.uint64], count: int, threads: int = 1, together: Together | None = None
    ) -> BestHits | None:
        """The best by the dot product alone: a `FindBest`."""
        if self.documents.stored is None or self.query.dependence is Dependence.HIT or self.query.levels:
            return None
        stored = self.documents.stored(block)
        if stored is None:
            return None
        taken = budget.taken_bytes
        try:
            query = batch(self.query, block)
        except TooLarge:  # as scoring a hit then says
            return None
        finally:
            budget.taken_bytes = taken
        return products.best_dots(query, stored, hits, count, threads, together) if query.is_single else None


def dot_product(node: TensorNode, names: tuple[str, ...]) -> DotProduct | None:
    """The kernel form of the sum of `node` over dimensions; None unless it is a dot product over all its dimensions."""
    if node.key[:2] != ("join", "multiply") or len(names) != len(node.type.dimensions):
        return None
    for query, documents in (node.operands, node.operands[::-1]):
        if documents.kept is not None and query.type.dimensions == documents.type.dimensions == node.type.indexed:
            return DotProduct(query, documents)
    return None


def max_similarity(node: TensorNode, names: tuple[str, ...]) -> Similarity | None:
    """The kernel form of the sum of `node` over dimensions; None unless it is a sum of greatest similarities."""
    is_greatest = node.key[:2] == ("reduce", "max")
    return _nearest_of(node.operands[0], node.key[2], names[0]) if is_greatest and len(names) == 1 else None


def greatest_similarity(node: TensorNode, names: tuple[str, ...]) -> Similarity | None:
    """The kernel form of the greatest cell of `node`; None unless its cells are similarities to one query vector."""
    return _nearest_of(node, names, "")


def _nearest_of(node: TensorNode, best: tuple[str, ...], summed: str) -> Similarity | None:
    """The kernel form for a node with a number for each vector of the query and of the document; None: it has none."""
    if len(best) != 1 or {d.name for d in node.type.dimensions} != {best[0], summed} - {""}:
        return None
    inverse = _inverse(node)
    if inverse is None:
        return _by_dots(node, best[0], summed)
    numerator, added, bits = inverse
    sides = _sides(bits.operands[0], bits, best[0], summed) if bits.operands else None
    if sides is None or any(side.type.cell_type != "int8" for side in sides):
        return None
    return Similarity(*sides, products.greatest_by_hamming(numerator, added, node.type.cell_type), summed)


def _by_dots(node: TensorNode, best: str, summed: str) -> Similarity | None:
    """Sums of products. A factor of bits that are unpacked is not unpacked."""
    if node.key[:2] != ("reduce", "sum") or len(node.operands) != 2:
        return None
    sides = _sides(node, node, best, summed)
    if sides is None:
        return None
    query, documents = sides
    if documents.key[0] != "unpack_bits" or len(documents.type.indexed) != 1:
        return Similarity(query, documents, products.greatest_dots, summed)
    words = documents.key[1]
    nearest = products.greatest_dots_with_bits(documents.type, words[1] if len(words) > 1 else "big")
    return Similarity(query, documents.operands[0], nearest, summed)


def _sides(joined: TensorNode, reduced: TensorNode, best: str, summed: str) -> tuple[TensorNode, TensorNode] | None:
    """The query and the documents of what is joined and summed, where each vector of one meets each of the other."""
    if len(joined.operands) != 2:
        return None
    for query, documents in (joined.operands, joined.operands[::-1]):
        inner = documents.type.indexed
        rest = tuple(d for d in query.type.dimensions if d.name != summed)
        within = set(reduced.key[2]) or {d.name for d in inner}
        is_matrix = [d.name for d in documents.type.mapped] == [best] and within == {d.name for d in inner}
        if is_matrix and rest == inner and len(query.type.dimensions) == len(rest) + bool(summed):
            return query, documents
    return None


def _inverse(node: TensorNode) -> tuple[float, float, TensorNode] | None:
    """a, b and the sum of bits that differ, of `a / (b + sum(hamming(…)))` where a and b are above 0."""
    if node.key[:2] != ("join", "divide") or (numerator := _number(node.operands[0])) is None:
        return None
    below = node.operands[1]
    if below.key[:2] != ("join", "add"):
        return None
    for one, other in (below.operands, below.operands[::-1]):
        added = _number(one)
        is_sum = other.key[:2] == ("reduce", "sum") and len(other.operands) == 1
        if added is not None and is_sum and other.operands[0].key[:2] == ("join", "hamming"):
            return (numerator, added, other) if numerator > 0 and added > 0 else None
    return None


def _number(node: TensorNode) -> float | None:
    """The value of a constant number."""
    return float(node.folded.cells[0]) if node.folded is not None and node.type.is_number else None
