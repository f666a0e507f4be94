"""termEditDistance(field): what it costs to make the words of a field of the terms of the query.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.core import _core
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.features.field_length import UNKNOWN_LENGTH
from paperwasp.search.features.term_lists import TermLists

NAME: Final = "termEditDistance"
_OUTPUTS: Final = ("out", "del", "ins", "sub")


@register(NAME, "single-index", outputs=_OUTPUTS)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    deletion, insertion, replacement = (
        setup.number(1.0, f"{NAME}({field}).cost{kind}") for kind in ("Del", "Ins", "Sub")
    )
    column = _OUTPUTS.index(output)

    def compute(block: Block) -> Floats:
        return block.once((NAME, field), lambda: distances(block))[:, column]

    def distances(block: Block) -> Floats:
        """(hits, _OUTPUTS)"""
        terms = TermLists.of(block, field)
        results = np.zeros(len(block.lids) * len(_OUTPUTS))
        # Of a field that nothing matches the length is not known; the kernel does not walk over a million words for it.
        lengths = np.where(terms.matched, block.field_length(field), 0).astype(np.int32)
        _core.edit_distance(terms.offsets, terms.positions, lengths, deletion, insertion, replacement, results)
        found = results.reshape(-1, len(_OUTPUTS))
        found[~terms.matched] = nothing_matched(len(block.terms))
        return found

    def nothing_matched(terms: int) -> tuple[float, float, float, float]:
        """Each term is replaced, where that is cheaper than deleting it and inserting another word."""
        replaced = terms if replacement < deletion + insertion else 0
        deleted, inserted = terms - replaced, UNKNOWN_LENGTH - replaced
        return deleted * deletion + inserted * insertion + replaced * replacement, deleted, inserted, replaced

    return compute
