"""Models in expressions, compiled: forests, ONNX models, and the sequences of tokens that feed them, as nodes of
tensors.

What feeds a model are expressions of the profile: those that an `onnx-model` declares for its inputs, and those that
the splits of a forest ask for by their text.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, Protocol

from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.forest import Forest, forest_sources
from paperwasp.ranking.model_inference import ONNX, TREES
from paperwasp.ranking.names import no_forest, no_model
from paperwasp.ranking.onnx.run import OnnxRun
from paperwasp.ranking.onnx.types import chosen_output, feeds, output_type
from paperwasp.ranking.scope import Scope, Source, argument_text
from paperwasp.ranking.tensor_graph import TensorGraph, Value
from paperwasp.ranking.tensor_node import Block, Dependence, TensorNode
from paperwasp.ranking.tensor_run import batch
from paperwasp.ranking.token_sequences import FEATURES as SEQUENCES
from paperwasp.ranking.token_sequences import sequence_type
from paperwasp.ranking.tree import Node, Reference


class Models(Protocol):
    """The models that a profile has. Both raise LanguageError (without position) where one is missing or wrong."""

    def model(self, name: str) -> Model:
        """The ONNX model that is declared by this name, or in this file."""

    def forest(self, kind: str, name: str) -> Forest | None:
        """The forest in a file. `kind`: xgboost or lightgbm. None: files are not available."""


class _NoModels:
    def model(self, name: str) -> Model:
        return no_model(name)

    def forest(self, kind: str, name: str) -> Forest | None:
        return no_forest(kind, name)


NO_MODELS: Final[Models] = _NoModels()


class Nodes(Protocol):
    """The compiler of the expressions that feed a model."""

    def node(self, node: Node, scope: Scope) -> TensorNode: ...

    def as_value(self, node: TensorNode) -> Value: ...


class ModelCompiler:
    """Compiles the references to models of one profile. `functions`: the names of those of the profile."""

    def __init__(self, graph: TensorGraph, nodes: Nodes, models: Models, functions: Container[str]) -> None:
        self._graph = graph
        self._nodes = nodes
        self._models = models
        self._functions = functions

    @staticmethod
    def compiles(node: Reference) -> bool:
        """Whether the reference is to a model, or a sequence of tokens."""
        if node.name in SEQUENCES:
            return not node.output and len(node.arguments) > SEQUENCES[node.name][0]
        return bool(node.arguments) and (node.name in ONNX or node.name in TREES)

    def value(self, node: Reference, scope: Scope) -> Value:
        """Raises LanguageError (without position) where there is no such model."""
        if node.name in SEQUENCES:
            return self._sequence(node, scope)
        work = self._forest if node.name in TREES else self._onnx
        return work(node, scope)

    def _compile_feeds(self, node: Reference, scope: Scope, sources: Sequence[Source]) -> list[TensorNode]:
        calls = (*scope.calls, str(node))
        return [self._nodes.node(source.parse(), Scope(source, calls=calls)) for source in sources]

    def _forest(self, node: Reference, scope: Scope) -> Value:
        name = argument_text(node.arguments[0], scope) or ""
        forest = self._models.forest(node.name, name)
        if forest is None:
            scope.fail(node, f"the file {name!r} is not available")
        operands = self._compile_feeds(node, scope, forest_sources(node, scope, forest))

        def work(block: Block) -> TensorBatch:
            columns = [algebra.numbers(batch(operand, block)) for operand in operands]
            return algebra.number(forest.sums(columns, max(map(len, columns), default=1)))

        builder = self._graph.builder
        sum_ = self._graph.scalar(
            self._graph.node(("forest", node.name, name), NUMBER, operands, work, dependence=Dependence.QUERY)
        )
        if forest.base:
            sum_ = builder.apply("add", sum_, builder.constant(forest.base))
        return builder.apply(forest.link, sum_) if forest.link else sum_

    def _onnx(self, node: Reference, scope: Scope) -> Value:
        texts = [argument_text(argument, scope) or "" for argument in node.arguments]
        model = self._models.model(texts[0])
        if model.signature is None:
            scope.fail(node, f"the file of onnx-model {model.name!r} is not available")
        output = chosen_output(model, model.signature, node.output or (texts[1] if len(texts) > 1 else ""))
        operands = self._compile_feeds(node, scope, feeds(model, model.signature, self._functions))
        type_ = output_type(model, output.name, [operand.type for operand in operands])
        if type_ is None:
            scope.fail(node, f"the sizes of output {output.name!r} of onnx-model {model.name!r} are not known")
        run = OnnxRun(model.name, model.signature, {output.name: type_}, model.session)

        def work(block: Block) -> TensorBatch:
            return run.outputs([batch(operand, block) for operand in operands])[output.name]

        key = ("onnx", model.name, output.name)
        return self._nodes.as_value(self._graph.node(key, type_, operands, work, dependence=Dependence.QUERY))

    def _sequence(self, node: Reference, scope: Scope) -> Value:
        numbers, function = SEQUENCES[node.name]
        said = [int(argument_text(argument, scope) or 0) for argument in node.arguments[:numbers]]
        operands = [self._nodes.node(argument, scope) for argument in node.arguments[numbers:]]
        key = ("tokens", node.name, *said)
        apply: Callable[..., TensorBatch] = lambda *parts: function(*said, parts)  # noqa: E731
        return self._graph.apply(key, sequence_type(said[-1]), operands, apply)
