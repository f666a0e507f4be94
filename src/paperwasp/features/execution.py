"""Running what profiles are compiled to over one block of hits.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Floats
from paperwasp.ranking import Program, RankValue
from paperwasp.ranking.evaluation import batch, whole_column
from paperwasp.tensor.batch import TensorBatch


class BlockEvaluator:
    """Runs programs over the hits of one context. What several programs ask for is computed once."""

    def __init__(self, context: MatchContext) -> None:
        self._context = context

    def evaluate(self, program: Program) -> Floats:
        """One float64 per hit."""
        return whole_column(program, self._context)

    def evaluate_all(self, values: Mapping[str, RankValue]) -> dict[str, Floats | TensorBatch]:
        """name → one float64 per hit, or a tensor of each (or a single one): for match-features, summary-features and
        rank features."""
        return {
            name: self.evaluate(value) if isinstance(value, Program) else batch(value, self._context)
            for name, value in values.items()
        }


def evaluate(program: Program, context: MatchContext) -> Floats:
    """The value of `program` for each hit of `context`."""
    return BlockEvaluator(context).evaluate(program)
