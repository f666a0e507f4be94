"""globalSequence: a number for every document of a cluster, as long as none of them moves.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#globalSequence
"""

from __future__ import annotations

import numpy as np

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, register


@register("globalSequence")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        own = context.lids_in_node().astype(np.int64) << 16 | context.distribution_key
        return (2**48 - own).astype(np.float64)

    return compute
