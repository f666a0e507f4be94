"""Models in expressions, compiled: forests, ONNX models, and the sequences of tokens that feed them, as nodes of
tensors.

Expressions of the profile feed a model: those that an `onnx-model` declares for its inputs, and those that the splits
of a forest name by their text.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.clock import check_time
from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.errors import TooLarge
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.forest import Forest, forest_sources
from paperwasp.ranking.model_types import FEATURES as SEQUENCES
from paperwasp.ranking.model_types import ONNX, TREES, chosen_output, feeds, output_type, sequence_type
from paperwasp.ranking.names import no_forest, no_model
from paperwasp.ranking.onnx.file import OnnxSignature
from paperwasp.ranking.onnx.session import Arrays, OnnxSession, RunFailed, TooMuchMemory
from paperwasp.ranking.scope import Scope, Source, argument_text
from paperwasp.ranking.tensor_graph import TensorGraph, Value
from paperwasp.ranking.tensor_run import Block, Dependence, TensorNode, batch
from paperwasp.ranking.tree import RankNode, Reference


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


class NodeCompiler(Protocol):
    """The compiler of the expressions that feed a model."""

    def node(self, node: RankNode, scope: Scope) -> TensorNode: ...

    def as_value(self, node: TensorNode) -> Value: ...


class ModelCompiler:
    """Compiles the references to models of one profile. `functions`: the names of those of the profile."""

    def __init__(self, graph: TensorGraph, nodes: NodeCompiler, models: Models, functions: Container[str]) -> None:
        self._graph = graph
        self._nodes = nodes
        self._models = models
        self._functions = functions

    @staticmethod
    def compiles(node: Reference) -> bool:
        """Tell whether the reference is to a model, or a sequence of tokens."""
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


# Runs of an ONNX model for a block of hits

_LOG: Final = logging.getLogger("paperwasp.ranking")


class OnnxRun:
    """A model of which every input is fed. `load` gives its session, which is kept from the first run on.

    All hits are in few runs where the first dimension of the model is free, else one after another. A hit for which the
    model fails has zeros, as in Vespa, and the failure is logged.
    """

    def __init__(
        self, name: str, signature: OnnxSignature, outputs: Mapping[str, TensorType], load: Callable[[], OnnxSession]
    ) -> None:
        """`outputs`: the types of those that are asked for, of one hit."""
        self.name = name
        self._inputs = [value.name for value in signature.inputs]
        self._is_free = all(value.sizes and isinstance(value.sizes[0], str) for value in signature.inputs)
        self._outputs = outputs
        self._load = load
        self._session: OnnxSession | None = None

    def outputs(self, inputs: Sequence[TensorBatch]) -> dict[str, TensorBatch]:
        """The outputs for each hit; single ones where all inputs are. `inputs`: in the order of the model's.

        Errors: OutOfTime; TooLarge where a hit takes more memory than models may; InternalError where the model cannot
        be loaded.
        """
        if self._session is None:
            self._session = self._load()
        hits = max(1 if batch.is_single else batch.hits for batch in inputs) if inputs else 1
        is_single = all(batch.is_single for batch in inputs)
        cells = {name: batch.cells for name, batch in zip(self._inputs, inputs, strict=True)}
        found = {name: np.zeros((hits, *type_.shape), DTYPES[type_.cell_type]) for name, type_ in self._outputs.items()}
        for start, end in self._chunks(self._session, cells, hits):
            check_time()
            self._work(self._session, cells, start, end, found)
        return {name: TensorBatch.dense(self._outputs[name], values, is_single) for name, values in found.items()}

    def _chunks(self, session: OnnxSession, cells: Arrays, hits: int) -> list[tuple[int, int]]:
        """The hits of each run."""
        size = 1
        shapes = {name: values.shape[1:] for name, values in cells.items()}
        if hits > 1 and self._is_free and all(shape[0] == 1 for shape in shapes.values()):
            most = limits.ONNX_BATCH_CELLS // max(1, sum(int(np.prod(shape)) for shape in shapes.values()))
            size = max(1, min(limits.ONNX_BATCH_HITS, most)) if session.takes_batches(shapes) else 1
        return [(start, min(hits, start + size)) for start in range(0, hits, size)]

    def _work(
        self, session: OnnxSession, cells: Arrays, start: int, end: int, found: Mapping[str, NDArray[Any]]
    ) -> None:
        """Hits `start` to `end` in one run; in several if that fails."""
        fed = {name: _rows(values, start, end) for name, values in cells.items()}
        try:
            given = session.run(fed)
            for name, values in found.items():
                values[start:end] = given[name].reshape(end - start, *values.shape[1:])
        except (RunFailed, ValueError) as error:
            if end - start == 1 and isinstance(error, TooMuchMemory):
                raise TooLarge(f"onnx model {self.name}: {error.message}") from None
            if end - start == 1:
                _LOG.warning("onnx model %s failed for a hit, which has zeros: %s", self.name, error)
                return
            for hit in range(start, end):
                self._work(session, cells, hit, hit + 1, found)


def _rows(cells: NDArray[Any], start: int, end: int) -> NDArray[Any]:
    """The cells of these hits; of several, below each other in the first dimension, which is 1 of each."""
    own = cells[start:end] if len(cells) > 1 else cells
    if end - start == 1:
        one: NDArray[Any] = own[0]
        return one
    return np.broadcast_to(own, (end - start, *cells.shape[1:])).reshape(end - start, *cells.shape[2:])
