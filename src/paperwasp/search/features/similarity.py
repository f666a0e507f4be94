"""Similarities of a field and the query as texts: textSimilarity, termEditDistance, jaroWinklerDistance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.matches import UNKNOWN_LENGTH
from paperwasp.search.features.term_places import (
    ElementRows,
    TermLists,
    element_places,
    element_rows,
    flat_places,
    is_flat,
)

# textSimilarity(field): how alike a field and the query are, where both are texts.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#textSimilarity(name)


TEXT_SIMILARITY: Final = "textSimilarity"
WEIGHTS: Final = {"proximity": 0.35, "order": 0.15, "queryCoverage": 0.30, "fieldCoverage": 0.20}
"""The weights of the parts in the score."""


def _part(rows: ElementRows, name: str) -> Floats:
    if name == "queryCoverage":
        return rows.query_coverage
    return rows.field_coverage if name == "fieldCoverage" else rows.column(name)


def _listed(setup: RankSetup) -> Iterable[str]:
    names = [name for name in setup.listed_index_fields if setup.is_single(name) and not setup.is_filter(name)]
    return [f"{TEXT_SIMILARITY}({name}).{output}" for name in names for output in ("score", *WEIGHTS)]


@register(TEXT_SIMILARITY, "single-index", outputs=("score", *WEIGHTS), listed=_listed)
def bind_text_similarity(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = arguments[0]
    places_of = flat_places if is_flat(setup, name) else element_places

    def compute(block: Block) -> Floats:
        rows = element_rows(block, name, places_of=places_of)
        weights = WEIGHTS if output == "score" else {output: 1.0}
        parts = np.stack([_part(rows, name) * weight for name, weight in weights.items()])
        return rows.per_hit(parts.sum(axis=0))

    return compute


# termEditDistance(field): what it costs to make the words of a field of the terms of the query.
#
# Vespa: not in its reference; a feature of its content nodes.


TERM_EDIT_DISTANCE: Final = "termEditDistance"
_OUTPUTS: Final = ("out", "del", "ins", "sub")


@register(TERM_EDIT_DISTANCE, "single-index", outputs=_OUTPUTS)
def bind_term_edit_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    deletion, insertion, replacement = (
        setup.number(1.0, f"{TERM_EDIT_DISTANCE}({field}).cost{kind}") for kind in ("Del", "Ins", "Sub")
    )
    column = _OUTPUTS.index(output)

    def compute(block: Block) -> Floats:
        return block.once((TERM_EDIT_DISTANCE, field), lambda: distances(block))[:, column]

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


# jaroWinklerDistance(field): how far the terms of the query are from the words of a field, as Jaro and Winkler count.
#
# Vespa: not in its reference; a feature of its content nodes.


JARO_WINKLER_DISTANCE: Final = "jaroWinklerDistance"
_THRESHOLD: Final = float(np.float32(0.7))
_BOOST: Final = float(np.float32(0.1))


@register(JARO_WINKLER_DISTANCE, "single-index")
def bind_jaro_winkler_distance(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    threshold = setup.number(_THRESHOLD, f"{JARO_WINKLER_DISTANCE}({field}).boostThreshold")
    prefix = max(0, setup.whole(4, limits.FIELD_LENGTH, f"{JARO_WINKLER_DISTANCE}({field}).prefixSize"))

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
