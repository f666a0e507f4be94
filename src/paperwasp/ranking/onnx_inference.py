"""The type of `onnx(model).output`: what feeds the model is checked against the model's inputs, which give the sizes
that the model leaves open.

Vespa: https://docs.vespa.ai/en/ranking/onnx.html
"""

from __future__ import annotations

from collections.abc import Callable, Container

from paperwasp.errors import LanguageError
from paperwasp.parsing.nearest import did_you_mean
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.onnx_file import OnnxSignature, OnnxValue
from paperwasp.ranking.scope import Source
from paperwasp.tensor.types import TensorType

InferSource = Callable[[Source], TensorType | None]


def output_type(model: Model, output: str, functions: Container[str], infer: InferSource) -> TensorType | None:
    """The type of an output; None where it is not known. Errors: LanguageError without a place.

    `functions`: the names of the functions of the profile. `infer` tells the type of what feeds an input.
    """
    if model.signature is None:
        return None
    wanted = _output(model, output, model.signature)
    sizes: dict[str, int] = {}
    for value in model.signature.inputs:
        given = infer(_feed(model, value, functions))
        if given is not None:
            try:
                sizes |= value.bind(given)
            except ValueError as error:
                raise LanguageError(f"onnx-model {model.name!r}, input {value.name!r}: {error}") from None
    return wanted.type(sizes)


def _feed(model: Model, value: OnnxValue, functions: Container[str]) -> Source:
    """The expression that feeds an input: the declared one, else the function of that name."""
    expression = model.inputs.get(value.name)
    if expression is None:
        expression = value.identifier
        if expression not in functions:
            told = f"nothing feeds input {value.name!r}: declare the input, or a function {expression}"
            raise LanguageError(f"onnx-model {model.name!r}: {told}")
    return Source(expression, f"onnx-model {model.name!r}, input {value.name!r}", model.position)


def _output(model: Model, name: str, signature: OnnxSignature) -> OnnxValue:
    if not name:
        return signature.outputs[0]
    called = {model.outputs.get(value.name, value.identifier): value for value in signature.outputs}
    called |= {value.name: value for value in signature.outputs if value.name not in called}
    if name not in called:
        raise LanguageError(
            f"onnx-model {model.name!r} has no output {name!r}; it has {', '.join(called)}{did_you_mean(name, called)}"
        )
    return called[name]
