"""subqueries(field): the subqueries of a predicate() in which a document matches, as two numbers of 32 bits.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html#identifying-subqueries-in-results
"""

from __future__ import annotations

import numpy as np

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, register

_LOW_BITS = np.uint64(0xFFFFFFFF)


@register("subqueries", "field", outputs=("lsb", "msb"))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    shift = np.uint64(32 if output == "msb" else 0)

    def compute(context: MatchContext) -> Floats:
        return (context.subqueries(arguments[0]) >> shift & _LOW_BITS).astype(np.float64)

    return compute
