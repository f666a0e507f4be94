"""termFieldMd(field): what is known of the matches of all terms in a field.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

import numpy as np

from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, register

_OUTPUTS = ("score", "terms", "match", "termsmatched", "firstweight", "occurrences", "maxTermWeight")


@register("termFieldMd", "any-field", outputs=_OUTPUTS)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]

    def compute(block: Block) -> Floats:
        value = np.zeros(len(block.lids))
        for number, _ in terms_of(block, field):
            value = _with_term(block, number, field, output, value)
        return value

    return compute


def _with_term(block: Block, number: int, field: str, output: str, value: Floats) -> Floats:
    """An output with one more of the terms that search the field."""
    if output == "terms":
        return value + 1.0
    matched = block.matched(number, field).astype(np.float64)
    match output:
        case "match":
            return np.maximum(value, matched)
        case "termsmatched":
            return value + matched
        case "firstweight":
            return np.where(value == 0, block.match_weights(number, field), value)
        case "occurrences":
            return value + block.occurrences(number, field)
        case "maxTermWeight":
            return np.maximum(value, matched * block.terms[number].weight)
    return value + block.match_weights(number, field)
