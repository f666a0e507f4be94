"""Running what profiles are compiled to over one block of hits.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.ranking import Program, RankValue
from paperwasp.ranking.tensor_run import batch, whole_column
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Floats


def evaluate(program: Program, block: Block) -> Floats:
    """The value of `program` for each hit of `block`, which remembers what several programs ask for."""
    return whole_column(program, block)


def evaluate_all(values: Mapping[str, RankValue], block: Block) -> dict[str, Floats | TensorBatch]:
    """name → one float64 per hit, or a tensor of each (or a single one): for match-features, summary-features and
    rank features."""
    return {
        name: evaluate(value, block) if isinstance(value, Program) else batch(value, block)
        for name, value in values.items()
    }
