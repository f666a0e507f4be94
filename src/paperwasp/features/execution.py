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


def evaluate(program: Program, context: MatchContext) -> Floats:
    """The value of `program` for each hit of `context`, which remembers what several programs ask for."""
    return whole_column(program, context)


def evaluate_all(values: Mapping[str, RankValue], context: MatchContext) -> dict[str, Floats | TensorBatch]:
    """name → one float64 per hit, or a tensor of each (or a single one): for match-features, summary-features and
    rank features."""
    return {
        name: evaluate(value, context) if isinstance(value, Program) else batch(value, context)
        for name, value in values.items()
    }
