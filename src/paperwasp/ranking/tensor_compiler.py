"""From the trees of tensor functions, literals, generators and slices to nodes of tensors.

Works for the compiler of expressions (`ranking.compiler`), which it asks for the values within. Types have been
inferred before, so what does not fit here was reported there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct

from paperwasp.document.tensor import algebra
from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import TensorBuilder
from paperwasp.ranking.program import Feature
from paperwasp.ranking.scope import Binding, Scope
from paperwasp.ranking.tensor_functions import FUNCTIONS, Operands
from paperwasp.ranking.tensor_graph import OfBatches, TensorGraph, Value, dependence_of
from paperwasp.ranking.tensor_run import (
    Block,
    BoundNumber,
    Dependence,
    InnerBlock,
    TensorNode,
    batch,
    bound_block,
    numbers,
)
from paperwasp.ranking.tree import (
    Generate,
    Lambda,
    Number,
    OfType,
    RankNode,
    Slice,
    TensorCall,
    TensorLiteral,
    Word,
    Words,
)

_Cells = Any
"""An array of cells, as the functions of the algebra take them."""


class Compiler(Protocol):
    """The compiler of the expressions within tensor functions."""

    graph: TensorGraph

    def value(self, node: RankNode, scope: Scope) -> Value: ...


class _Given(Struct, frozen=True):
    """The arguments of a call that are no expressions."""

    words: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]


_SIMPLE: Final[Mapping[str, Callable[[_Given], OfBatches]]] = {
    "rename": lambda given: lambda t: algebra.renamed(t, *given.names),
    "concat": lambda given: lambda a, b: algebra.concatenated(a, b, *given.words),
    "cell_cast": lambda given: lambda t: algebra.cast(t, *given.words),
    "cell_order": lambda given: lambda t: algebra.cell_order(t, *given.words),
    "argmax": lambda given: lambda t: algebra.argmax(t, given.words),
    "argmin": lambda given: lambda t: algebra.argmin(t, given.words),
    "l1_normalize": lambda given: lambda t: algebra.l1_normalize(t, given.words),
    "l2_normalize": lambda given: lambda t: algebra.l2_normalize(t, given.words),
    "softmax": lambda given: lambda t: algebra.softmax(t, given.words),
    "cosine_similarity": lambda given: lambda a, b: algebra.cosine_similarity(a, b, *given.words),
    "euclidean_distance": lambda given: lambda a, b: algebra.euclidean_distance(a, b, *given.words),
    "matmul": lambda given: lambda a, b: algebra.matmul(a, b, *given.words),
    "xw_plus_b": lambda given: lambda x, w, b: algebra.xw_plus_b(x, w, b, *given.words),
    "expand": lambda given: lambda t: algebra.expanded(t, *given.words),
    "top": lambda given: lambda n, t: algebra.top(n, t),
    "unpack_bits": lambda given: lambda t: algebra.unpacked(t, *given.words),
}
"""Functions of tensors and words: name → from the words to the function of batches."""

_BY_CELLS: Final[Mapping[str, tuple[Callable[..., TensorType], OfBatches]]] = {
    "map": (rules.mapped, algebra.mapped),
    "join": (rules.joined, algebra.joined),
    "merge": (rules.merged, algebra.merged),
}
"""Functions that take a function of cells: their rule for types, and the function of batches."""
_BY_SUBSPACES: Final = {"map_subspaces": algebra.map_subspaces, "filter_subspaces": algebra.filter_subspaces}


class TensorCompiler:
    """`compiler` works what is no tensor function."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph
        self._level = 0

    @property
    def is_within_lambda(self) -> bool:
        """True where the expression compiled now is the body of a function without a name, or of a generator."""
        return self._level > 0

    def node(self, node: RankNode, scope: Scope) -> TensorNode:
        """An expression as a node, numbers too."""
        value = self._compiler.value(node, scope)
        return self.as_node(value)

    def as_node(self, value: Value) -> TensorNode:
        return value if isinstance(value, TensorNode) else self._graph.number(value)

    def as_value(self, node: TensorNode) -> Value:
        """A number where the tensor is one."""
        return self._graph.scalar(node) if node.type.is_number else node

    def combine(self, operation: str, *operands: TensorNode) -> TensorNode:
        """A node that computes an operation cell by cell. `operation`: a name of those of rank programs."""
        function = algebra.CELL_FUNCTIONS[operation]
        if len(operands) == 1:
            type_ = rules.mapped(operands[0].type)
            return self._graph.apply(("map", operation), type_, operands, lambda t: algebra.mapped(t, function))
        type_ = rules.joined(operands[0].type, operands[1].type)
        return self._graph.apply(("join", operation), type_, operands, lambda a, b: algebra.joined(a, b, function))

    def feature(self, feature: Feature, type_: TensorType) -> TensorNode:
        """A rank feature of tensor type."""
        node = self._graph.node(
            ("feature", feature.name),
            type_,
            (),
            lambda block: feature.compute(block),
            dependence=dependence_of(feature),
        )
        node.kept, node.stored = getattr(feature, "kept", None), getattr(feature, "stored", None)
        return node

    # Calls

    def call(self, node: TensorCall, scope: Scope) -> Value:
        tensors = [self.node(a, scope) for a in node.arguments if not isinstance(a, Word | Words | Lambda)]
        given = _Given(
            tuple(a.text for a in node.arguments if isinstance(a, Word)),
            tuple(a.words for a in node.arguments if isinstance(a, Words)),
        )
        function = next((a for a in node.arguments if isinstance(a, Lambda)), None)
        if function is not None:
            return self.as_value(self._with_lambda(node.function, function, tensors, scope))
        if node.function == "reduce":
            return self.as_value(self._reduce(tensors[0], given.words[0], given.words[1:]))
        if node.function not in _SIMPLE:
            return self.as_value(self._reduce(tensors[0], node.function, given.words))
        operands = Operands(tuple(t.type for t in tensors), given.words, given.names, lambda *types: NUMBER)
        type_ = FUNCTIONS[node.function].type(operands)
        key = (node.function, given.words, given.names)
        return self.as_value(self._graph.apply(key, type_, tensors, _SIMPLE[node.function](given)))

    def _reduce(self, tensor: TensorNode, aggregator: str, dimensions: tuple[str, ...]) -> TensorNode:
        return self._graph.reduce(tensor, aggregator, dimensions, rules.reduced(tensor.type, dimensions))

    # Functions without names

    def _with_lambda(self, function: str, body: Lambda, tensors: Sequence[TensorNode], scope: Scope) -> TensorNode:
        if function in _BY_SUBSPACES:
            return self._by_subspaces(function, body, tensors[0], scope)
        types = [NUMBER] * len(body.parameters)
        value = self._compile_body(body, types, scope)
        assert isinstance(value, int)
        operation = self._graph.builder.operation_on(value, [f"@{self._level + 1}.{n}" for n in range(len(types))])
        if operation is not None and function != "merge":
            return self.combine(operation, *tensors)
        cells = algebra.CELL_FUNCTIONS[operation] if operation is not None else self._cell_function(value)
        rule, work = _BY_CELLS[function]
        type_ = rule(*(t.type for t in tensors))
        return self._graph.apply((function, value), type_, tensors, lambda *batches: work(*batches, cells))

    def _compile_body(self, function: Lambda, types: Sequence[TensorType], scope: Scope) -> Value:
        """Compiles the body of a function, whose parameters have the values of an inner block."""
        self._level += 1
        bindings = {
            name: Binding(value=self._parameter(number, type_))
            for number, (name, type_) in enumerate(zip(function.parameters, types, strict=True))
        }
        value = self._compiler.value(function.body, Scope(scope.source, bindings, scope.calls, is_closed=True))
        self._level -= 1
        return value

    def _parameter(self, number: int, type_: TensorType) -> Value:
        level = self._level
        if type_.is_number:
            return self._graph.builder.feature(BoundNumber(level, number))

        def work(block: Block) -> TensorBatch:
            found = bound_block(block, level).values[number]
            assert isinstance(found, TensorBatch)
            return found

        levels = frozenset((level,))
        return self._graph.node(("bound", level, number, type_), type_, (), work, levels=levels)

    def _cell_function(self, value: int) -> Callable[..., _Cells]:
        program = self._graph.builder.program(value)
        level, labels = self._level + 1, self._graph.labels

        def function(*operands: _Cells) -> _Cells:
            columns = {n: np.ascontiguousarray(cells, np.float64).reshape(-1) for n, cells in enumerate(operands)}
            block = InnerBlock(level, operands[0].size, columns, labels)
            values = numbers(program, block)
            return values.reshape(operands[0].shape) if len(values) == operands[0].size else values[0]

        return function

    def _by_subspaces(self, function: str, body: Lambda, tensor: TensorNode, scope: Scope) -> TensorNode:
        inner = self.as_node(self._compile_body(body, [rules.dense_part(tensor.type)], scope))
        level = self._level + 1
        is_map = function == "map_subspaces"
        type_ = rules.with_subspaces(tensor.type, inner.type) if is_map else rules.filtered(tensor.type)
        is_number = rules.dense_part(tensor.type).is_number
        apply = _BY_SUBSPACES[function]

        def work(block: Block) -> TensorBatch:
            def of_subspaces(subspaces: TensorBatch) -> TensorBatch:
                bound = algebra.numbers(subspaces) if is_number else subspaces
                return batch(inner, InnerBlock(level, subspaces.hits, {0: bound}, block.labels))

            return apply(batch(tensor, block), of_subspaces)

        key, most = (function, inner), inner.dependence
        return self._graph.node(key, type_, (tensor,), work, dependence=most, beside=inner.cells)

    # Tensors from nothing

    def of_type(self, node: OfType) -> Value:
        type_, graph = node.type, self._graph
        if node.function == "random":
            generator = np.random.default_rng()
            return self.as_value(
                graph.node(
                    ("random", node.start, type_),
                    type_,
                    (),
                    lambda block: algebra.random_cells(type_, generator),
                    dependence=Dependence.QUERY,
                )
            )
        make = algebra.range_cells if node.function == "range" else algebra.diagonal
        return self.as_value(graph.apply((node.function, type_), type_, (), lambda: make(type_)))

    def generate(self, node: Generate, scope: Scope) -> Value:
        self._level += 1
        names = {
            d.name: Binding(value=self._parameter(number, NUMBER)) for number, d in enumerate(node.type.dimensions)
        }
        inner = Scope(scope.source, {**scope.bindings, **names}, scope.calls, scope.is_closed)
        body = self._compiler.value(node.body, inner)
        self._level -= 1
        assert isinstance(body, int)
        return self.as_value(self._graph.generate(node.type, body, self._level + 1))

    def literal(self, node: TensorLiteral, scope: Scope) -> Value:
        graph = self._graph
        if all(isinstance(cell.value, Number) for cell in node.cells):
            return self.as_value(graph.constant(("constant", str(node)), _constant(node, graph)))
        values = [self.node(cell.value, scope) for cell in node.cells]
        return self.as_value(graph.literal(node.type, tuple(cell.address for cell in node.cells), values))

    # Slices

    def slice(self, node: Slice, scope: Scope) -> Value:
        tensor = self.node(node.tensor, scope)
        dimensions = {d.name: d for d in tensor.type.dimensions}
        places: list[tuple[str, Callable[..., Any]]] = []
        operands: list[TensorNode] = []
        keys: list[object] = []
        for place in node.places:
            unnamed = tensor.type.indexed if place.label is None else tensor.type.mapped
            name = place.dimension or unnamed[0].name
            is_mapped = dimensions[name].is_mapped
            if place.index is None:
                places.append((name, _place_of_label(place.label or "", is_mapped)))
                keys.append((name, place.label))
                continue
            operands.append(self.node(place.index, scope))
            places.append((name, _place_of_operand(len(operands), is_mapped)))
            keys.append((name, len(operands)))
        given = (tensor, *operands)

        def work(block: Block) -> TensorBatch:
            batches = [batch(operand, block) for operand in given]
            return algebra.sliced(batches[0], {name: find(batches, block.labels) for name, find in places})

        type_ = rules.sliced(tensor.type, [name for name, _ in places])
        return self.as_value(self._graph.node(("slice", *keys), type_, given, work))


def _place_of_label(label: str, is_mapped: bool) -> Callable[..., Any]:
    if is_mapped:
        return lambda batches, labels: algebra.label_place(label, labels)
    index = int(label)
    return lambda batches, labels: algebra.index_place(index)


def _place_of_operand(operand: int, is_mapped: bool) -> Callable[..., Any]:
    if is_mapped:
        return lambda batches, labels: algebra.label_places(algebra.numbers(batches[operand]), labels)
    return lambda batches, labels: algebra.index_places(algebra.numbers(batches[operand]))


def _constant(node: TensorLiteral, graph: TensorGraph) -> TensorBatch:
    is_mapped = [d.is_mapped for d in node.type.dimensions]
    builder = TensorBuilder(node.type)
    for cell in node.cells:
        assert isinstance(cell.value, Number)
        labels = tuple(label for label, mapped in zip(cell.address, is_mapped, strict=True) if mapped)
        places = tuple(int(label) for label, mapped in zip(cell.address, is_mapped, strict=True) if not mapped)
        builder.cell(labels, places, cell.value.value)
    return TensorBatch.single(builder.build(), graph.labels)
