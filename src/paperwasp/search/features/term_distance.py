"""Distances between terms of the query in a field: proximity, reverseProximity, termDistance."""

from __future__ import annotations

import math
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.features.block import Block, are_terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, is_multiple, one, register
from paperwasp.search.features.term_places import element_places
from paperwasp.search.features.terms import NO_POSITION

# proximity(field, a, b) and reverseProximity(field, a, b): how near term b is behind term a in an element of a field,
# and how near term a is behind term b.
#
# Vespa: not in its reference; features of its content nodes. reverseProximity has their walk, which is not exact.


_OUTPUTS: Final = ("out", "posA", "posB")
_MOST: Final = sys.float_info.max
_NOTHING: Final = {"proximity": (_MOST, _MOST, -_MOST), "reverseProximity": (_MOST, -_MOST, _MOST)}


@register("proximity", "index", "number", "number", outputs=_OUTPUTS)
def bind_proximity(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, a, b = arguments[0], int(arguments[1]), int(arguments[2])
    column = _OUTPUTS.index(output)

    def compute(block: Block) -> Floats:
        if not are_terms_of(block, field, a, b):
            return one(_NOTHING["proximity"][column])
        pairs = block.once(("proximity", field, a, b), lambda: _pairs(block, field, a, b))
        values: Floats = pairs[column]
        return values

    return compute


def _pairs(block: Block, field: str, a: int, b: int) -> Floats:
    """(_OUTPUTS, hits): of the first of the nearest pairs."""
    found: Floats = np.repeat(np.array(_NOTHING["proximity"])[:, None], len(block.lids), axis=1)
    first, second = element_places(block, a, field), element_places(block, b, field)
    keys, others = hit_keys(*block.positions(a, field)), hit_keys(*block.positions(b, field))
    after = np.searchsorted(others, keys, side="right")
    hits = keys >> 32
    paired = np.flatnonzero(after < len(others))
    after = after[paired]
    same = (others[after] >> 32 == hits[paired]) & (second.elements[after] == first.elements[paired])
    paired, after = paired[same], after[same]
    places = first.positions[paired].astype(np.float64), second.positions[after].astype(np.float64)
    values = np.stack([places[1] - places[0], *places])
    order = np.lexsort((np.arange(len(paired)), values[0], hits[paired]))
    of_hit, at = np.unique(hits[paired][order], return_index=True)
    found[:, of_hit] = values[:, order[at]]
    return found


def hit_keys(offsets: NDArray[np.uint32], positions: NDArray[np.uint32]) -> NDArray[np.int64]:
    """The hit and the position of each place as one number; they rise."""
    ends = offsets.astype(np.int64)
    hits = np.repeat(np.arange(len(ends) - 1, dtype=np.int64), ends[1:] - ends[:-1])
    return hits << np.int64(32) | positions.astype(np.int64)


@register("reverseProximity", "index", "number", "number", outputs=_OUTPUTS)
def bind_reverse(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, a, b = arguments[0], int(arguments[1]), int(arguments[2])
    column = _OUTPUTS.index(output)

    def compute(block: Block) -> Floats:
        if not are_terms_of(block, field, a, b):
            return one(_NOTHING["reverseProximity"][column])
        results = np.empty(3 * len(block.lids))
        lists = (*block.positions(a, field), *block.positions(b, field))
        _core.reverse_proximity(*lists, len(block.lids), -_MOST, _MOST, results)
        return results[column::3]

    return compute


# termDistance(field, x, y): how near two terms of the query are in an element of an indexed field.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#termDistance(name,x,y).forward


UNDEFINED: Final = 1_000_000
"""The distance, and the position, where the terms do not both occur in this order."""

Distances = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""(distance, position): from the end of one term to another later in the element, and where the first begins in it;
`UNDEFINED` where there is no such pair."""


def term_distances(block: Block, field: str, first: int, second: int) -> Distances:
    """Return the distances of two terms in a field with a single value."""
    distances = np.empty(len(block.lids), np.uint32)
    places = np.empty(len(block.lids), np.uint32)
    length = max(1, block.terms[first].phrase_length)
    of_first, of_second = block.positions(first, field), block.positions(second, field)
    _core.term_distance(*of_first, length, *of_second, distances, places)
    return distances, places


def element_distances(block: Block, field: str, first: int, second: int, gap: float = math.inf) -> Distances:
    """Return them for a field of several values. With a gap, an element begins so many positions behind the one before;
    infinite: there are no distances between elements.

    Of each place of the first term, the next place of the second one counts.
    """
    distances, places = (np.full(len(block.lids), UNDEFINED, np.uint32) for _ in range(2))
    to_last_word = max(1, block.terms[first].phrase_length) - 1
    of_first, of_second = element_places(block, first, field), element_places(block, second, field)
    keys, others = hit_keys(*block.positions(first, field)), hit_keys(*block.positions(second, field))
    after = np.searchsorted(others, keys + to_last_word, side="right")
    paired = np.flatnonzero(after < len(others))
    after = after[paired]
    apart = of_second.elements[after].astype(np.int64) - of_first.elements[paired]
    near = (others[after] >> 32 == keys[paired] >> 32) & (apart <= (0 if math.isinf(gap) else 1))
    paired, after, apart = paired[near], after[near], apart[near]
    starts = np.where(apart == 0, 0.0, of_first.lengths[paired] + (0.0 if math.isinf(gap) else gap))
    begins = of_first.positions[paired]
    found = starts + of_second.positions[after] - (begins.astype(np.float64) + to_last_word)
    hits = keys[paired] >> 32
    order = np.lexsort((np.arange(len(paired)), found, hits))
    of_hit, at = np.unique(hits[order], return_index=True)
    best = order[at]
    known = found[best] < UNDEFINED
    distances[of_hit[known]] = found[best][known]
    places[of_hit[known]] = begins[best][known]
    return distances, places


@register(
    "termDistance",
    "index",
    "number",
    "number",
    outputs=("forward", "forwardTermPosition", "reverse", "reverseTermPosition"),
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, x, y = arguments[0], int(arguments[1]), int(arguments[2])
    first, second = (x, y) if output.startswith("forward") else (y, x)
    work = element_distances if is_multiple(setup.field(field)) else term_distances

    def compute(block: Block) -> Floats:
        if not are_terms_of(block, field, first, second):
            return one(NO_POSITION)
        distances, places = work(block, field, first, second)
        return (places if output.endswith("TermPosition") else distances).astype(np.float64)

    return compute
