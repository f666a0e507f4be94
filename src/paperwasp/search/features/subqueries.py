"""subqueries(field): the subqueries of a predicate() in which a document matches, as two numbers of 32 bits.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html#identifying-subqueries-in-results
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.operators.predicate import PredicateMatch

_LOW_BITS = np.uint64(0xFFFFFFFF)


def subqueries(block: Block, field: str) -> NDArray[np.uint64]:
    """The subqueries of predicate() that match in `field`: a bit for each."""
    found = np.zeros(len(block.lids), np.uint64)
    for term in block.setting.terms:
        for match in term.matches:
            if isinstance(match, PredicateMatch) and match.field == field:
                found |= match.subqueries(block.lids)
    return found


@register("subqueries", "field", outputs=("lsb", "msb"))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    shift = np.uint64(32 if output == "msb" else 0)

    def compute(block: Block) -> Floats:
        return (subqueries(block, arguments[0]) >> shift & _LOW_BITS).astype(np.float64)

    return compute
