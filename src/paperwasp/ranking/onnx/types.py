"""The type of `onnx(model).output`: what feeds the model is checked against the model's inputs, which give the sizes
that the model leaves open. Sizes that depend on nothing that is declared are found by a run.

Vespa: https://docs.vespa.ai/en/ranking/onnx.html
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.onnx.file import OnnxSignature, OnnxValue
from paperwasp.ranking.scope import Source
from paperwasp.text.parsing.nearest import did_you_mean


def feeds(model: Model, signature: OnnxSignature, functions: Container[str]) -> list[Source]:
    """The expressions that feed the inputs: the declared ones, else the functions of their names.

    `functions`: the names of the functions of the profile. Errors: LanguageError without a place.
    """
    return [_source_of(model, value, functions) for value in signature.inputs]


def _source_of(model: Model, value: OnnxValue, functions: Container[str]) -> Source:
    expression = model.inputs.get(value.name)
    if expression is None:
        expression = value.identifier
        if expression not in functions:
            problem = f"nothing feeds input {value.name!r}: declare the input, or a function {expression}"
            raise LanguageError(f"onnx-model {model.name!r}: {problem}")
    return Source(expression, f"onnx-model {model.name!r}, input {value.name!r}", model.position)


def chosen_output(model: Model, signature: OnnxSignature, name: str) -> OnnxValue:
    """The output that an expression asks for; without a name the first. Errors: LanguageError without a place."""
    if not name:
        return signature.outputs[0]
    called = {model.outputs.get(value.name, value.identifier): value for value in signature.outputs}
    called |= {value.name: value for value in signature.outputs if value.name not in called}
    if name not in called:
        raise LanguageError(
            f"onnx-model {model.name!r} has no output {name!r}; it has {', '.join(called)}{did_you_mean(name, called)}"
        )
    return called[name]


def output_type(model: Model, output: str, given: Sequence[TensorType | None]) -> TensorType | None:
    """The type of an output, by its name in the model; None where that is not known. `given`: what feeds the inputs.

    Errors: LanguageError without a place.
    """
    if model.signature is None:
        return None
    sizes: dict[str, int] = {}
    for value, type_ in zip(model.signature.inputs, given, strict=True):
        if type_ is not None:
            try:
                sizes |= _bind_sizes(value, type_, sizes)
            except ValueError as error:
                raise LanguageError(f"onnx-model {model.name!r}, input {value.name!r}: {error}") from None
    [wanted] = (value for value in model.signature.outputs if value.name == output)
    known = wanted.type(sizes)
    shapes = [None if type_ is None or not all(type_.shape) else type_.shape for type_ in given]
    if model.try_run is None or None in shapes or (known is not None and not model.is_tried):
        return known
    inputs = (value.name for value in model.signature.inputs)
    found = model.try_run({name: shape for name, shape in zip(inputs, shapes, strict=True) if shape is not None})
    return _check_output(model, wanted, known, found[output])


def _bind_sizes(value: OnnxValue, type_: TensorType, before: dict[str, int]) -> dict[str, int]:
    """The named sizes that an input gives, by name. Errors: ValueError where an earlier input gave others."""
    bound = value.bind(type_)
    for name, size in bound.items():
        if before.get(name, size) != size:
            raise ValueError(f"dimension {name!r} has size {before[name]} in an input before, and {size} in {type_}")
    return bound


def _check_output(model: Model, wanted: OnnxValue, known: TensorType | None, shape: Sequence[int]) -> TensorType:
    what = f"onnx-model {model.name!r}, output {wanted.name!r}"
    if not all(shape):
        raise LanguageError(f"{what} has no cells: its shape is {list(shape)}")
    dimensions = [Dimension(f"d{number}", size) for number, size in enumerate(shape)]
    found = TensorType.of(dimensions, wanted.cell_type) if dimensions else TensorType.of([])
    if known is not None and known != found:
        raise LanguageError(f"{what} is declared as {known}, and is {found}")
    return found
