"""The types of models in expressions: ONNX models, forests, and the sequences of tokens that feed models for texts.

    onnx(model).output, xgboost(file), lightgbm(file)

A model for texts takes `start, first, end, second, end, …`, and zeros behind: tokenInputIds and customTokenInputIds are
the tokens, tokenTypeIds tells the first sequence (0) from those behind it (1), tokenAttentionMask the tokens (1) from
the zeros behind. A sequence has as many tokens as are above zero.

Errors: LanguageError, without a place where it is that of the reference; FileNotAvailable.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#tokenInputIds(length,input_1,input_2,...)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.declarations import Model
from paperwasp.ranking.forest import forest_sources
from paperwasp.ranking.names import Names, Type
from paperwasp.ranking.onnx.file import OnnxSignature, OnnxValue
from paperwasp.ranking.scope import Scope, Source, argument_text
from paperwasp.ranking.tree import RankNode, Reference
from paperwasp.text.parsing.tokens import did_you_mean

TREES: Final = frozenset(("xgboost", "lightgbm"))
ONNX: Final = frozenset(("onnx", "onnxModel", "onnx_vespa"))
"""Vespa makes an expression of the model that `onnx_vespa` names, which gives the same values as running it."""
TypeOf = Callable[[RankNode, Scope], Type]


class FileNotAvailable(Exception):
    """The files of the package are not there to look into."""


def onnx_type(names: Names, node: Reference, scope: Scope, type_of: TypeOf) -> Type:
    """The type of an output; None where something in it is of unknown type."""
    texts = [argument_text(argument, scope) for argument in node.arguments]
    if texts[0] is None:
        return None
    model = names.model(texts[0])
    if model.signature is None:
        raise FileNotAvailable
    wanted = chosen_output(model, model.signature, node.output or (texts[-1] if len(texts) > 1 else "") or "")
    given = _infer_feeds(node, scope, feeds(model, model.signature, names.functions), type_of)
    type_ = output_type(model, wanted.name, given)
    if type_ is None and None not in given:
        raise LanguageError(f"the sizes of output {wanted.name!r} are not known: those of an input are open")
    return type_


def trees_type(names: Names, node: Reference, scope: Scope, type_of: TypeOf) -> Type:
    """A number, if the splits ask for numbers: for features, or functions without arguments."""
    name = argument_text(node.arguments[0], scope)
    if name is None:
        return NUMBER
    forest = names.forest(node.name, name)
    if forest is None:
        raise FileNotAvailable
    types = _infer_feeds(node, scope, forest_sources(node, scope, forest), type_of)
    for type_, text in zip(types, forest.features, strict=True):
        if type_ is not None and not type_.is_number:
            raise LanguageError(f"a model of trees takes numbers, and {text} is a {type_}")
    return NUMBER


def check_sequence(node: Reference, argument: RankNode, type_: Type) -> None:
    """Checks an argument of tokenInputIds and its like."""
    if type_ is not None and (type_.mapped or [d.name for d in type_.indexed] != ["d0"]):
        raise LanguageError(f"{node.name} takes tensors whose one dimension is d0[n], and {argument} is a {type_}")


def _infer_feeds(node: Reference, scope: Scope, sources: Sequence[Source], type_of: TypeOf) -> list[Type]:
    """The types of the expressions that feed a model."""
    if str(node) in scope.calls:
        raise LanguageError(f"{node} feeds itself")
    calls = (*scope.calls, str(node))
    return [type_of(source.parse(), Scope(source, calls=calls)) for source in sources]


# The type of `onnx(model).output`: what feeds the model is checked against the model's inputs, which give the sizes
# that the model leaves open. Sizes that depend on nothing that is declared are found by a run.
#
# Vespa: https://docs.vespa.ai/en/ranking/onnx.html


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


# Sequences of tokens

CLS: Final = 101
SEP: Final = 102

_Counts = NDArray[np.int64]


def sequence_type(length: int) -> TensorType:
    return TensorType.of([Dimension("d0", 1), Dimension("d1", length)], "float")


def token_ids(length: int, parts: Sequence[TensorBatch], start: int = CLS, end: int = SEP) -> TensorBatch:
    """The tokens. `parts`: dense, with one dimension each."""
    hits, places = _hits(parts), np.arange(length)
    found = np.zeros((hits, length), np.float32)
    found[:, :1] = start
    begin = np.ones((hits, 1), np.int64)
    for part in parts:
        cells, count = np.broadcast_to(part.cells, (hits, part.cells.shape[1])), _counts(part, hits)[:, None]
        behind = places - begin
        if cells.shape[1]:
            tokens = np.take_along_axis(cells, np.clip(behind, 0, cells.shape[1] - 1), 1)
            np.copyto(found, tokens, where=(behind >= 0) & (behind < count), casting="unsafe")
        found[behind == count] = end
        begin = begin + count + 1
    return _sequence(found, parts)


def token_types(length: int, parts: Sequence[TensorBatch]) -> TensorBatch:
    first, whole = _ends(parts[:1], _hits(parts)), _ends(parts, _hits(parts))
    places = np.arange(length)
    return _sequence((places >= first) & (places < whole), parts)


def token_mask(length: int, parts: Sequence[TensorBatch]) -> TensorBatch:
    return _sequence(np.arange(length) < _ends(parts, _hits(parts)), parts)


def _hits(parts: Sequence[TensorBatch]) -> int:
    return max(1 if part.is_single else part.hits for part in parts)


def _counts(part: TensorBatch, hits: int) -> _Counts:
    counts: _Counts = np.broadcast_to((part.cells > 0).sum(1), hits)
    return counts


def _ends(parts: Sequence[TensorBatch], hits: int) -> _Counts:
    """(hits, 1): where the tokens of these parts end, with those between them."""
    ends = np.ones(hits, np.int64)
    for part in parts:
        ends += _counts(part, hits) + 1
    return ends[:, None]


def _sequence(cells: NDArray[Any], parts: Sequence[TensorBatch]) -> TensorBatch:
    type_ = sequence_type(cells.shape[1])
    return TensorBatch.dense(type_, cells.astype(np.float32)[:, None, :], all(part.is_single for part in parts))


FEATURES: Final[Mapping[str, tuple[int, Callable[..., TensorBatch]]]] = {
    "tokenInputIds": (1, token_ids),
    "tokenTypeIds": (1, token_types),
    "tokenAttentionMask": (1, token_mask),
    "customTokenInputIds": (
        3,
        lambda start, end, length, parts: token_ids(length, parts, start, end),
    ),
}
"""Name → how many of its arguments are numbers, and the function of these and the sequences."""
