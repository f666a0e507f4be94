"""Features made of what other expressions compute: scores of phases, models, and normalizers of all hits together."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import InternalError, LanguageError
from paperwasp.ranking.model_types import sequence_type
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import (
    Compute,
    Floats,
    Parameter,
    RankSetup,
    TypeRule,
    constant,
    evaluate,
    one,
    register,
)

# firstPhase, secondPhase, relevanceScore, firstPhaseRank and firstPhaseMax: the scores of the phases.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#rank-scores


def _of_phase(phase: str) -> Compute:
    def compute(block: Block) -> Floats:
        if phase in block.scores:
            return block.scores[phase]
        if phase not in block.phases:
            raise InternalError(f"{phase} is needed before it is computed")
        program = block.phases[phase]
        return block.once(program, lambda: evaluate(program, block))

    return compute


@register("firstPhase", outputs=("score",), listed=lambda setup: ("firstPhase",))
def bind_first(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _of_phase("firstPhase")


@register("secondPhase", outputs=("score",))
def bind_second(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _of_phase("secondPhase") if setup.profile.second_phase is not None else constant(0.0)


@register("relevanceScore", outputs=("score",))
def bind_relevance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The score of the hit before the global phase."""
    return _of_phase("relevance")


@register("firstPhaseRank", outputs=("score",))
def bind_first_rank(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The place of a hit, from 1, among those that the second phase ranks; else, and before, the greatest number."""

    def compute(block: Block) -> Floats:
        ranks = one(np.inf) if block.first_phase is None else block.first_phase.ranks(block.lids)
        return np.minimum(ranks, float(np.finfo(np.float64).max))

    return compute


@register("firstPhaseMax", outputs=("score",))
def bind_first_max(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The highest score of the first phase; -inf while it goes on."""

    def compute(block: Block) -> Floats:
        return one(-math.inf if block.first_phase is None else block.first_phase.highest)

    return compute


# xgboost(file), lightgbm(file), and tokenInputIds and its like: features made of expressions.
#
# The compiler of expressions puts the model, or the sequence of tokens, in the feature's place, as it does for
# onnx(model): `ranking.model_compiler`. What is here says how they are written.
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html


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


# normalize_linear, reciprocal_rank, reciprocal_rank_fusion: features of all hits together, in the global phase only.
#
# The compiler puts `ranking.global_phase.Normalizer` in their places; here is what may be said.
# Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#cross-hit-normalization-including-reciprocal-rank-fusion


def _check_k(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    """The second argument is a constant."""
    if len(arguments) > 1:
        try:
            is_number = math.isfinite(float(arguments[1]))
        except ValueError:
            is_number = False
        if not is_number:
            raise LanguageError(f"the second argument of reciprocal_rank is a number, not {arguments[1]!r}")
    return ""


def _refused(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    raise LanguageError("this is a feature of all hits together: it is known in the global phase only")


register("normalize_linear", "expression")(_refused)
register("reciprocal_rank", "expression", "name", optional=1, pending=_check_k)(_refused)
register("reciprocal_rank_fusion", "expression", "expression", "expression", repeated=True)(_refused)
