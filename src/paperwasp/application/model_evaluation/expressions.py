"""Functions that are ranking expressions: those of `.model` files, and trees, each one reference to its file.

They are compiled as expressions of a rank profile are, by a catalog in which every name that is no function and no
constant is an argument: of the type that the model declares for it, else a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from paperwasp.application.model_evaluation.function import Values
from paperwasp.base.records import dataclass
from paperwasp.core.budget import budget
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.ranking.compiler import Constants, ExpressionCompiler
from paperwasp.ranking.declarations import Declarations, Model
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.names import Description, Names
from paperwasp.ranking.program import Program
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_graph import RankValue
from paperwasp.ranking.tensor_run import batch, numbers
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import Function as Declared


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What the expressions of one model may name."""

    declarations: Declarations
    inputs: Mapping[str, TensorType] = field(default_factory=dict)
    functions: Mapping[str, Declared] = field(default_factory=dict)
    constants: Constants = field(default_factory=dict)
    constant_types: Mapping[str, TensorType] = field(default_factory=dict)

    def model(self, name: str) -> Model:
        """The ONNX model in a file. Errors: LanguageError."""
        return self.declarations.model_file(name)

    def forest(self, kind: str, name: str) -> Forest | None:
        """The trees in a file. Errors: LanguageError."""
        return self.declarations.forest(kind, name)


class ExpressionFunction:
    """A compiled expression."""

    most_rows = 1

    def __init__(self, name: str, compiled: RankValue, arguments: Mapping[str, TensorType], labels: Labels) -> None:
        """`labels`: those of the constants in the expression."""
        self.name = name
        self.arguments = arguments
        self._compiled = compiled
        self._labels = labels

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        return [self._evaluate(row) for row in rows]

    def _evaluate(self, values: Values) -> Tensor | PaperwaspError:
        block = _Request(values, Labels(self._labels))
        taken = budget.taken_bytes
        try:
            if isinstance(self._compiled, Program):
                return Tensor(NUMBER, ((),), numbers(self._compiled, block)[:1])
            [found] = batch(self._compiled, block).tensors(block.labels)
        except PaperwaspError as error:
            return error
        finally:
            budget.give_back_to(taken)
        return found


class _Request:
    """The block of one hit in which a function is computed: see `ranking.tensor_node.Block`."""

    hits = 1

    def __init__(self, values: Values, labels: Labels) -> None:
        self.values = values
        self.labels = labels
        self.known: dict[object, Any] = {}


class _Argument:
    """An argument as a feature of the compiled expression."""

    bm25_field = None

    def __init__(self, name: str, type_: TensorType) -> None:
        self.name = name
        self.query_name = name  # what depends on it is not constant, and the same for all hits
        self._type = type_

    def compute(self, context: Any) -> Any:
        value = context.values[self.name]
        if self._type.is_number:
            return value.cells.astype(np.float64)
        return TensorBatch.single(value, context.labels)


class _Arguments:
    """The catalog of features: each is an argument. `found` are those that were compiled."""

    def __init__(self, inputs: Mapping[str, TensorType]) -> None:
        self._inputs = inputs
        self.found: dict[str, TensorType] = {}

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        return Description(self._inputs.get(_shown(name, arguments, output), NUMBER))

    def each(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        raise LanguageError("a model that is evaluated by itself has no terms, fields or attributes for foreach")

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> _Argument:
        shown = _shown(name, arguments, output)
        type_ = self.found[shown] = self._inputs.get(shown, NUMBER)
        return _Argument(shown, type_)


def _shown(name: str, arguments: tuple[str | None, ...], output: str) -> str:
    """A reference as Vespa prints it, which is the name of the argument."""
    within = f"({','.join(each or '' for each in arguments)})" if arguments else ""
    return f"{name}{within}{'.' + output if output else ''}"


def compile_function(name: str, source: Source, around: Surroundings) -> ExpressionFunction:
    """The function of an expression. Errors: LanguageError."""
    catalog = _Arguments(around.inputs)
    names = Names(around.functions, around.constant_types, {}, around.model, around.forest)
    inference = TypeInference(catalog, names)
    _, uses = inference.infer(source)
    if inference.problems:
        raise inference.problems[0]
    if uses.pending:
        raise LanguageError(f"function {name!r} is not executed: {', '.join(uses.pending)}", source.start)
    compiler = ExpressionCompiler(catalog, around.functions, around.constants, models=around)
    compiled = compiler.runnable(source)
    return ExpressionFunction(name, compiled, dict(sorted(catalog.found.items())), compiler.graph.labels)
