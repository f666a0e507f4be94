"""Expressions that call components: `embed`, `chunk`, `generate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from paperwasp.document.types import STRING, ArrayType, DataType, TensorFieldType, array_of
from paperwasp.indexing.context import Context
from paperwasp.indexing.scope import Compiled, Run, Scope, Value, compiles
from paperwasp.indexing.sources import unescape
from paperwasp.indexing.values import is_text
from paperwasp.schema.indexing_tree import Expression
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import Tensor

_T = TypeVar("_T")


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
        chunks = chunker.chunk(text, Context(scope.destination, run.language, arguments))
        run.elements(len(chunks))
        return chunks

    return Compiled(chunk, array_of(STRING))


@compiles("embed")
def _embed(expression: Expression, type_: DataType | None, scope: Scope) -> Compiled:
    """Compiles embed: of a text, or of each text of an array, along the one mapped dimension that then comes first."""
    name, arguments = (expression.arguments[0] if expression.arguments else ""), _arguments(expression.arguments[1:])
    embedder = _component(expression, name, "embedder", scope.components.embedders, scope)
    if not isinstance(scope.type, TensorFieldType):
        scope.fail(expression, f"embed makes a tensor, but type {scope.type} is needed")
    target = scope.type.tensor
    is_array = isinstance(type_, ArrayType)
    if not is_text(type_.element if isinstance(type_, ArrayType) else type_):
        scope.expected(expression, "string or array of string", type_)
    if is_array and not target.mapped:
        scope.fail(expression, f"to embed an array, the tensor needs a mapped dimension, and {target} has none")

    def embed(value: Value, run: Run) -> Value:
        context = Context(scope.destination, run.language, arguments)
        if not is_array:
            return embedder.embed([value], target, context)[0]
        return stack(embedder.embed(value, inner_of(target), context), target)

    return Compiled(embed, scope.type)


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
        return generator.generate(value, scope.type, Context(scope.destination, run.language, arguments))

    return Compiled(generate, scope.type)


def inner_of(target: TensorType) -> TensorType:
    """The type of the tensor of one text of an array: without the first mapped dimension."""
    first = target.mapped[0]
    return TensorType.of([each for each in target.dimensions if each != first], target.cell_type)


def stack(tensors: Sequence[Tensor], target: TensorType) -> Tensor:
    """Stacks the tensors of an array's texts to one, labelled by their places."""
    labels = tuple((str(place), *each) for place, tensor in enumerate(tensors) for each in tensor.labels)
    empty = np.zeros((0, *target.shape))
    cells = np.concatenate([tensor.cells for tensor in tensors]) if tensors else empty
    return Tensor(target, labels, cells)


def _component(expression: Expression, name: str, kind: str, known: Mapping[str, _T], scope: Scope) -> _T:
    """The one of that name, or the only one. Errors: LanguageError that names those that there are."""
    if not name and len(known) == 1:
        return next(iter(known.values()))
    if not known:
        what = f"'{name}'" if name else "any"
        scope.fail(expression, f"Can't find {kind} {what}: no {kind}s are configured")
    if name not in known:
        listed = ", ".join(f"'{each}'" for each in known)
        problem = f"Can't find {kind} '{name}'. Valid {kind}s are" if name else f"A {kind} id must be said: there are"
        scope.fail(expression, f"{problem} {listed}")
    return known[name]


def _arguments(words: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(unescape(word) if word[0] in "\"'" else word for word in words)
