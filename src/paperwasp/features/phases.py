"""firstPhase, secondPhase and relevanceScore: the scores of the phases.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#rank-scores
"""

from __future__ import annotations

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, constant, register


def _of_phase(phase: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return context.relevance(phase)

    return compute


@register("firstPhase", outputs=("score",), listed=lambda setup: ("firstPhase",))
def bind_first(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _of_phase("firstPhase")


@register("secondPhase", outputs=("score",))
def bind_second(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _of_phase("secondPhase") if setup.profile.second_phase is not None else constant(0.0)


@register("relevanceScore", outputs=("score",))
def bind_relevance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """Of the last phase that the profile has."""
    return _of_phase("secondPhase" if setup.profile.second_phase is not None else "firstPhase")
