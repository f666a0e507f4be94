"""Expressions that call components: `embed`, `chunk`, `generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

from paperwasp.base.measurements import EMBEDDING
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import STRING, ArrayType, DataType, TensorFieldType, array_of
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context
from paperwasp.indexing.scope import Compiled, Run, Scope, Value, compiles, is_blank, is_text
from paperwasp.indexing.sources import unescape
from paperwasp.schema.indexing_tree import Expression

_T = TypeVar("_T")
_TARGETS: Final = (
    "The embedding target field must either be a dense 1d tensor, a mapped 1d tensor, a mapped 2d tensor, "
    "an array of dense 1d tensors, or a mixed 2d or 3d tensor"
)
_NO_DIMENSION: Final = (
    "When the embedding target field is a {} tensor the name of the tensor dimension that corresponds to the input "
    "array elements must be given as a second argument to embed, e.g: ... | embed {} paragraph | ..."
)


@compiles("chunk")
def _chunk(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    name, *words = expression.arguments
    arguments = _arguments(words)
    chunker = _component(expression, name, "chunker", scope.components.chunkers, scope)
    try:
        chunker.check(arguments)
    except ValueError as error:
        scope.fail(expression, str(error))

    def chunk(text: Value, run: Run) -> list[str]:
        chunks = chunker.chunk(text, scope.context(run, arguments))
        run.elements(len(chunks))
        return chunks

    return Compiled(chunk, array_of(STRING))


@compiles("embed")
def _embed(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compiles embed: of a text, or of each text of an array, along the mapped dimension that `array_dimension` names.

    Blank texts have no vector: of one there is no value, and those of an array are left out.

    Vespa: EmbedExpression.java
    Differs: a deployment warns of a type that no text can be embedded into; in Vespa documents are refused, or have
    vectors that are filled up.
    """
    name, arguments = (expression.arguments[0] if expression.arguments else ""), _arguments(expression.arguments[1:])
    embedder = _component(expression, name, "embedder", scope.components.embedders, scope)
    if not isinstance(scope.type, TensorFieldType):
        scope.fail(expression, f"embed makes a tensor, but type {scope.type} is needed")
    target = scope.type.tensor
    is_array = isinstance(type_, ArrayType)
    if type_ is None:
        scope.expected(expression, "string or array<string>", type_)
    if not is_text(type_.element if isinstance(type_, ArrayType) else type_):
        scope.fail(expression, f"This requires either a string or array<string> input type, but got {type_}")
    try:
        outer = array_dimension(target, arguments)
        _check_rank(target, is_array)
    except ValueError as error:
        scope.fail(expression, str(error))
    inner = inner_of(target, outer) if is_array else target
    try:
        embedder.check_type(inner, Context(scope.destination, arguments=arguments))
    except ValueError as error:
        scope.warn(expression, f"no text can be embedded: {error}")

    def embed(value: Value, run: Run) -> Value:
        context = scope.context(run, arguments)
        texts = {place: text for place, text in enumerate(value if is_array else [value]) if not is_blank(text)}
        tensors: Sequence[Tensor] = ()
        if texts:
            with EMBEDDING.timed(is_query=False):
                tensors = embedder.embed([*texts.values()], inner, context)
        if is_array:
            return stack(dict(zip(texts, tensors, strict=True)), target, outer)
        return tensors[0] if tensors else None

    return Compiled(embed, scope.type)


def array_dimension(target: TensorType, arguments: Sequence[str]) -> str:
    """The mapped dimension for the elements of an array: where there are several, the one argument of `embed`.

    A target without mapped dimensions has none (""). Errors: ValueError for a target that `embed` does not make.
    """
    rank, mapped = len(target.dimensions), [dimension.name for dimension in target.mapped]
    if not (rank == 1 or (rank == 2 and mapped) or (rank == 3 and len(mapped) == 2)):
        raise ValueError(_TARGETS)
    if len(mapped) < 2:
        return mapped[0] if mapped else ""
    if len(arguments) != 1:
        kind, example = ("2d mapped", "splade") if rank == 2 else ("3d", "colbert")
        raise ValueError(_NO_DIMENSION.format(kind, example))
    if arguments[0] not in mapped:
        where = f"is not a sparse dimension of the target type {target}"
        raise ValueError(f"The dimension '{arguments[0]}' given to embed {where}")
    return arguments[0]


def _check_rank(target: TensorType, is_array: bool) -> None:
    """Errors: ValueError for a target that has no room for an array's elements, or more than a text can fill."""
    rank = len(target.dimensions)
    if is_array and (rank == 1 or not target.mapped):
        needed = "a rank 2 or 3 tensor with at least one mapped dimension"
        raise ValueError(f"Input is an array, so output must be {needed}, but got {target}")
    if not is_array and rank > 2:
        needed = "a rank 1 tensor, or a rank 2 tensor with one mapped dimension"
        raise ValueError(f"Input is a string, so output must be {needed}, but got {target}")


@compiles("generate")
def _generate(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    name, arguments = (expression.arguments[0] if expression.arguments else ""), _arguments(expression.arguments[1:])
    generator = _component(expression, name, "generator", scope.components.generators, scope)
    if not is_text(type_):
        scope.expected(expression, "string", type_)
    try:
        generator.check(scope.type)
    except ValueError as error:
        scope.fail(expression, str(error))

    def generate(value: Value, run: Run) -> Value:
        return generator.generate(value, scope.type, scope.context(run, arguments))

    return Compiled(generate, scope.type)


def inner_of(target: TensorType, outer: str) -> TensorType:
    """The type of the tensor of one text of an array: without the mapped dimension `outer`."""
    return TensorType.of([each for each in target.dimensions if each.name != outer], target.cell_type)


def stack(tensors: Mapping[int, Tensor], target: TensorType, outer: str) -> Tensor:
    """Stacks the tensors of an array's texts, by their places, to one. The places are the labels in `outer`."""
    at = [dimension.name for dimension in target.mapped].index(outer)
    labels = tuple((*each[:at], str(place), *each[at:]) for place, tensor in tensors.items() for each in tensor.labels)
    empty = np.zeros((0, *target.shape))
    cells = np.concatenate([tensor.cells for tensor in tensors.values()]) if tensors else empty
    return Tensor(target, labels, cells)


def _component(expression: Expression, name: str, kind: str, known: Mapping[str, _T], scope: Scope) -> _T:
    """The one of that name, or the only one. Errors: LanguageError that names those that there are.

    Vespa: Components.java, EmbedExpressionValidator.java, Embedder.FailingEmbedder
    """
    if not name and len(known) == 1:
        return next(iter(known.values()))
    if name in known:
        return known[name]
    if name and kind == "embedder":
        problem = f"The 'embed' expression for field '{scope.owner}' refers to an embedder with id '{name}'. "
        raise LanguageError(f"{problem}No component with that id is configured.", expression.position)
    if not known:
        scope.fail(expression, f"No {kind} has been configured")
    problem = f"Can't find {kind} '{name}'" if name else f"Multiple {kind}s are provided but no {kind} id is given"
    scope.fail(expression, f"{problem}. Valid {kind}s are {', '.join(sorted(known))}")


def _arguments(words: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(unescape(word) if word[0] in "\"'" else word for word in words)
