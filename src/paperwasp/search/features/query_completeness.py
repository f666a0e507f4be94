"""queryCompleteness(field, begin, end): how many terms stand in a field, between two places, and how many do not.

Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

import numpy as np

from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.element_rows import ElementPlaces, element_places
from paperwasp.search.features.family import Compute, Floats, RankSetup, register

_END = 2**32 - 1


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    begin, end = _window(arguments)
    if begin >= end:
        raise LanguageError(f"queryCompleteness from place {begin} to {end} of a field: there is none")
    return ""


def _window(arguments: tuple[str, ...]) -> tuple[int, int]:
    begin, end = (*map(int, arguments[1:]), *(0, _END)[len(arguments) - 1 :])
    return begin, end


@register("queryCompleteness", "index", "number", "number", outputs=("hit", "miss"), optional=2, pending=_check)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    begin, end = _window(arguments)

    def compute(block: Block) -> Floats:
        terms = [number for number, _ in terms_of(block, field)]
        hits = np.zeros(len(block.lids))
        for number in terms:
            hits += _stands(element_places(block, number, field), begin, end)
        return hits if output == "hit" else len(terms) - hits

    return compute


def _stands(places: ElementPlaces, begin: int, end: int) -> Floats:
    """1 where the first place from `begin` on is before `end`."""
    rows = np.flatnonzero(places.positions >= begin)
    ends = places.offsets.astype(np.int64)
    firsts = np.searchsorted(rows, ends[:-1])
    found = np.zeros(len(ends) - 1)
    there = np.flatnonzero(firsts < np.searchsorted(rows, ends[1:]))
    found[there] = places.positions[rows[firsts[there]]] < end
    return found
