"""Type inference over names that a test declares, without a schema."""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError
from paperwasp.ranking.names import Description, Names
from paperwasp.ranking.scope import Source
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import Function
from tests.ranking.no_features import NoFeatures, refuse

CONSTANTS = {
    name: TensorType.parse(text)
    for name, text in {
        "n": "tensor()",
        "dense": "tensor<float>(x[3])",
        "matrix": "tensor<float>(x[3],y[2])",
        "sparse": "tensor(key{})",
        "mixed": "tensor<bfloat16>(key{},x[3])",
        "bits": "tensor<int8>(key{},x[2],y[4])",
        "pair": "tensor(a{},b{})",
        "open": "tensor(x[])",
    }.items()
}
FUNCTIONS = {
    "twice": (("t",), "t * 2"),
    "score": (("field",), "bm25(field) + 1"),
    "dot": (("a", "b"), "sum(a * b)"),
    "chained": (("q",), "dot(twice(q), dense)"),
    "loop": (("t",), "loop(t)"),
}


class SomeFeatures(NoFeatures):
    """bm25 of a title, and nothing else."""

    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        if name != "bm25":
            refuse(name)
        if arguments not in (("title",), (None,)):
            raise LanguageError(f"no field {arguments[0]}")
        return Description()


def inference(
    constants: Mapping[str, TensorType] | None = None,
    functions: Mapping[str, tuple[tuple[str, ...], str]] | None = None,
) -> TypeInference:
    declared = FUNCTIONS if functions is None else functions
    names = Names(
        {name: Function(name, parameters, body) for name, (parameters, body) in declared.items()},
        CONSTANTS if constants is None else constants,
        {"q": TensorType.parse("tensor<float>(x[3])"), "s": None},
    )
    return TypeInference(SomeFeatures(), names)


def type_text(text: str) -> str:
    """The type of an expression, or what is wrong with it."""
    inferring = inference()
    type_, _ = inferring.infer(Source(text))
    return "; ".join(map(str, inferring.problems)) or str(type_)
