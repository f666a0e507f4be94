"""Functions of models: their arguments with types, and how they are computed by an expression or an ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.core.budget import budget
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.document.tensor.value import DTYPES, Tensor
from paperwasp.errors import InvalidInput, LanguageError, NotFound, PaperwaspError
from paperwasp.ranking.compiler import Constants, ExpressionCompiler
from paperwasp.ranking.declarations import Declarations, Model
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.names import Description, Names
from paperwasp.ranking.onnx.file import OnnxSignature, OnnxValue
from paperwasp.ranking.onnx.session import OnnxSession, RunFailed
from paperwasp.ranking.program import Program
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_graph import RankValue
from paperwasp.ranking.tensor_run import batch, numbers
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import Function as Declared

# What every function of a model is: its name, its arguments with their types, and how it is evaluated.


Values = Mapping[str, Tensor]
"""Argument → value, of the type of the argument: of all arguments."""


class NoSuchThing(NotFound):
    """There is no such model or function, or a value is none for its argument."""


class NotEvaluated(InvalidInput):
    """An argument has no value, or the function cannot be computed for these values."""


class Function(Protocol):
    """A function of a model. Immutable; any thread may evaluate it."""

    @property
    def name(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, TensorType]:
        """The arguments by name, in the order of their names. A size of 0 is open: any size is right."""

    @property
    def most_rows(self) -> int:
        """How many rows are evaluated faster together than one after another; 1: none are."""

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        """The result for each row, or why there is none. Errors: OutOfTime."""


# Functions that are ranking expressions: those of `.model` files, and trees, each one reference to its file.
#
# They are compiled as expressions of a rank profile are, by a catalog in which every name that is no function and no
# constant is an argument: of the type that the model declares for it, else a number.


class Surroundings(Struct, frozen=True, eq=False):
    """The names that the expressions of one model may use."""

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
    """The block of one hit in which a function is computed: see `ranking.tensor_run.Block`."""

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


# Functions that are outputs of an ONNX model: one function for each output, and an argument for each input.
#
# What waits together is one run where the model allows it: where the first dimension of all inputs is open, 1 is given,
# and a trial has shown that rows do not depend on each other (`OnnxSession.takes_batches`).
#
# Vespa: https://docs.vespa.ai/en/ranking/onnx.html


Shapes = tuple[tuple[int, ...], ...]
_MOST_DIMENSIONS: Final = 10
"""Dimensions are in the order of their names, and d10 would stand before d2."""


class NetworkFunction:
    """One output of a model. The session is loaded when the first function of the model is evaluated."""

    def __init__(self, signature: OnnxSignature, output: OnnxValue, load: Callable[[], OnnxSession]) -> None:
        """Errors: LanguageError for an input of which the file does not say how many dimensions it has."""
        self.name = output.identifier
        self.arguments = argument_types(signature)
        self._inputs = [(value.name, value.identifier) for value in signature.inputs]
        self._is_free = all(value.sizes and isinstance(value.sizes[0], str) for value in signature.inputs)
        self.most_rows = limits.ONNX_BATCH_HITS if self._is_free else 1
        self._output = output
        self._load = load
        self._session: OnnxSession | None = None

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        """As `Function.evaluate_all`. A row that the model fails for does not concern the others."""
        if self._session is None:
            self._session = self._load()
        found: list[Tensor | PaperwaspError | None] = [None] * len(rows)
        for places in self._runs(self._session, rows):
            for place, result in zip(places, self._run(self._session, [rows[n] for n in places]), strict=True):
                found[place] = result
        return [each for each in found if each is not None]

    def _runs(self, session: OnnxSession, rows: Sequence[Values]) -> Iterator[list[int]]:
        """The rows of each run, by number."""
        together: dict[Shapes, list[int]] = {}
        for place, row in enumerate(rows):
            together.setdefault(tuple(row[name].type.shape for _, name in self._inputs), []).append(place)
        for shapes, places in together.items():
            size = self._rows_at_once(session, shapes) if len(places) > 1 else 1
            yield from (places[start : start + size] for start in range(0, len(places), size))

    def _rows_at_once(self, session: OnnxSession, shapes: Shapes) -> int:
        if not self._is_free or not all(shape and shape[0] == 1 for shape in shapes):
            return 1
        most = limits.ONNX_BATCH_CELLS // max(1, sum(int(np.prod(shape)) for shape in shapes))
        names = (name for name, _ in self._inputs)
        if most < 2 or not session.takes_batches(dict(zip(names, shapes, strict=True))):
            return 1
        return min(limits.ONNX_BATCH_HITS, most)

    def _run(self, session: OnnxSession, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        fed = {name: np.concatenate([row[argument].cells[0] for row in rows]) for name, argument in self._inputs}
        if len(rows) == 1:
            fed = {name: rows[0][argument].cells[0] for name, argument in self._inputs}
        try:
            found = np.asarray(session.run(fed)[self._output.name])
        except RunFailed as error:
            if len(rows) == 1:
                return [NotEvaluated(f"The model failed for these values: {error.message}")]
        else:
            parts = np.split(found, len(rows)) if len(rows) > 1 else [found]
            return [_tensor(part, self._output) for part in parts]
        return [result for row in rows for result in self._run(session, [row])]


def _tensor(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], output: OnnxValue) -> Tensor | PaperwaspError:
    if not values.size:
        return NotEvaluated(f"Output '{output.identifier}' has no cells: its shape is {list(values.shape)}")
    if values.ndim > _MOST_DIMENSIONS:
        return NotEvaluated(f"Output '{output.identifier}' has more than {_MOST_DIMENSIONS} dimensions")
    dimensions = [Dimension(f"d{number}", size) for number, size in enumerate(values.shape)]
    type_ = TensorType.of(dimensions, output.cell_type)
    with np.errstate(all="ignore"):
        return Tensor(type_, ((),), values.astype(DTYPES[type_.cell_type])[np.newaxis])


def argument_types(signature: OnnxSignature) -> Mapping[str, TensorType]:
    """Argument → type, with dimensions d0, d1, …; by name. Errors: LanguageError."""
    found: dict[str, TensorType] = {}
    for value in signature.inputs:
        if value.sizes is None:
            raise LanguageError(f"the model does not say how many dimensions input {value.name!r} has")
        if len(value.sizes) > _MOST_DIMENSIONS:
            raise LanguageError(f"input {value.name!r} has more than {_MOST_DIMENSIONS} dimensions")
        if value.identifier in found:
            raise LanguageError(f"two inputs of the model have the name {value.identifier!r}")
        sizes = (size if isinstance(size, int) else 0 for size in value.sizes)
        dimensions = [Dimension(f"d{number}", size) for number, size in enumerate(sizes)]
        found[value.identifier] = TensorType.of(dimensions, value.cell_type)
    return dict(sorted(found.items()))
