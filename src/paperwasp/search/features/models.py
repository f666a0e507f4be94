"""xgboost(file), lightgbm(file), and tokenInputIds and its like: features made of expressions.

The compiler of expressions puts the model, or the sequence of tokens, in the feature's place, as it does for
onnx(model): `ranking.model_compiler`. What is here says how they are written.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from typing import Final

from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import InternalError, LanguageError
from paperwasp.ranking.token_sequences import sequence_type
from paperwasp.search.features.family import Compute, Parameter, RankSetup, TypeRule, register

_LONGEST: Final = 1 << 20
"""Tokens of a sequence."""
_SEQUENCE: Final[tuple[Parameter, ...]] = ("number", "expression", "expression")


def _sequence(length_argument: int) -> TypeRule:
    def type_of(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
        length = int(arguments[length_argument])
        if not 0 < length <= _LONGEST:
            raise LanguageError(f"a sequence has from 1 to {_LONGEST} tokens, not {length}")
        return sequence_type(length)

    return type_of


def _compiled_elsewhere(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    raise InternalError("a model is no feature that is computed alone")


for _name in ("xgboost", "lightgbm"):
    register(_name, "name")(_compiled_elsewhere)
for _name in ("tokenInputIds", "tokenTypeIds", "tokenAttentionMask"):
    register(_name, *_SEQUENCE, repeated=True, type_=_sequence(0))(_compiled_elsewhere)
register("customTokenInputIds", "number", "number", *_SEQUENCE, repeated=True, type_=_sequence(2))(_compiled_elsewhere)
