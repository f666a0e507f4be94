"""Running programs over one block of hits.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Floats
from paperwasp.ranking import Feature, Program


class BlockEvaluator:
    """Runs programs over the hits of one context. A feature that several programs ask for is computed once."""

    def __init__(self, context: MatchContext) -> None:
        self._context = context
        self._columns: dict[str, Floats] = {}

    def evaluate(self, program: Program) -> Floats:
        """One float64 per hit."""
        columns = [self._column(feature) for feature in program.features]
        return program.evaluate(columns, len(self._context.lids))

    def evaluate_all(self, programs: Mapping[str, Program]) -> dict[str, Floats]:
        """name → one float64 per hit: for match-features, summary-features and rank features."""
        return {name: self.evaluate(program) for name, program in programs.items()}

    def _column(self, feature: Feature) -> Floats:
        name = feature.name
        if name not in self._columns:
            values = np.ascontiguousarray(feature.compute(self._context), np.float64)
            self._columns[name] = values
        return self._columns[name]


def evaluate(program: Program, context: MatchContext) -> Floats:
    """The value of `program` for each hit of `context`."""
    return BlockEvaluator(context).evaluate(program)
