"""termInfo(n).queryidx: the number of a term of the query, -1 where there is none of this number.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register


@register("termInfo", "number", outputs=("queryidx",))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    number = int(arguments[0])

    def compute(block: Block) -> Floats:
        return one(number if number < len(block.terms) else -1)

    return compute
