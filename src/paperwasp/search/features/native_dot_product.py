"""nativeDotProduct(field) and nativeDotProduct: the weights of terms times those of what they match.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#nativeDotProduct(field)
"""

from __future__ import annotations

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register


@register("nativeDotProduct", "field", optional=1)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        sums = np.zeros(len(block.lids))
        for number, term in enumerate(block.terms):
            for field in term.fields:
                if not arguments or field == arguments[0]:
                    sums += block.match_weights(number, field) * term.weight
        return sums

    return compute
