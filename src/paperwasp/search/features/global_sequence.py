"""globalSequence: a number for every document of a cluster, as long as none of them moves.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#globalSequence
"""

from __future__ import annotations

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register


@register("globalSequence")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        own = block.lids_in_node().astype(np.int64) << 16 | block.setting.space.distribution_key
        return (2**48 - own).astype(np.float64)

    return compute
