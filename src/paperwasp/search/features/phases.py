"""firstPhase, secondPhase, relevanceScore, firstPhaseRank and firstPhaseMax: the scores of the phases.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#rank-scores
"""

from __future__ import annotations

import math

import numpy as np

from paperwasp.errors import InternalError
from paperwasp.search.features.block import Block
from paperwasp.search.features.execution import evaluate
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register


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
