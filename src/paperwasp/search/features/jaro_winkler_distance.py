"""jaroWinklerDistance(field): how far the terms of the query are from the words of a field, as Jaro and Winkler count.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.term_lists import TermLists

NAME: Final = "jaroWinklerDistance"
_THRESHOLD: Final = float(np.float32(0.7))
_BOOST: Final = float(np.float32(0.1))


@register(NAME, "single-index")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    threshold = setup.number(_THRESHOLD, f"{NAME}({field}).boostThreshold")
    prefix = max(0, setup.whole(4, limits.FIELD_LENGTH, f"{NAME}({field}).prefixSize"))

    def compute(block: Block) -> Floats:
        if not block.terms:
            return one(1.0)
        terms = TermLists.of(block, field)
        lengths = block.field_length(field)
        results = np.zeros(len(block.lids) * 3)
        _core.order_matches(terms.offsets, terms.positions, lengths, prefix, results)
        matches, elsewhere, same = results.reshape(-1, 3).T
        some = matches > 0
        divisors = np.where(some, matches, 1.0), np.where(some, lengths, 1.0)
        jaro = (matches / len(block.terms) + matches / divisors[1] + (matches - elsewhere // 2) / divisors[0]) / 3
        jaro = np.where(some, np.clip(jaro, 0.0, 1.0), 0.0)
        return 1 - np.where(jaro > threshold, jaro + _BOOST * same * (1 - jaro), jaro)

    return compute
