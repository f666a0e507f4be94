"""The types of models in expressions: onnx(model).output, xgboost(file), lightgbm(file), and what feeds them.

Errors: LanguageError, without a place where it is that of the reference; FileNotAvailable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from paperwasp.document.tensor.types import NUMBER
from paperwasp.errors import LanguageError
from paperwasp.ranking.forest import forest_sources
from paperwasp.ranking.names import Names, Type
from paperwasp.ranking.onnx.types import chosen_output, feeds, output_type
from paperwasp.ranking.scope import Scope, Source, argument_text
from paperwasp.ranking.tree import Node, Reference

TREES: Final = frozenset(("xgboost", "lightgbm"))
ONNX: Final = frozenset(("onnx", "onnxModel", "onnx_vespa"))
"""Vespa makes an expression of the model that `onnx_vespa` names, which gives the same values as running it."""
TypeOf = Callable[[Node, Scope], Type]


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


def check_sequence(node: Reference, argument: Node, type_: Type) -> None:
    """Checks an argument of tokenInputIds and its like."""
    if type_ is not None and (type_.mapped or [d.name for d in type_.indexed] != ["d0"]):
        raise LanguageError(f"{node.name} takes tensors whose one dimension is d0[n], and {argument} is a {type_}")


def _infer_feeds(node: Reference, scope: Scope, sources: Sequence[Source], type_of: TypeOf) -> list[Type]:
    """The types of the expressions that feed a model."""
    if str(node) in scope.calls:
        raise LanguageError(f"{node} feeds itself")
    calls = (*scope.calls, str(node))
    return [type_of(source.parse(), Scope(source, calls=calls)) for source in sources]
