"""proximity(field, a, b) and reverseProximity(field, a, b): how near term b is behind term a in an element of a field,
and how near term a is behind term b.

Vespa: not in its reference; features of its content nodes. reverseProximity has their walk, which is not exact.
"""

from __future__ import annotations

import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.search.features.block import Block, are_terms_of
from paperwasp.search.features.element_rows import element_places
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register

_OUTPUTS: Final = ("out", "posA", "posB")
_MOST: Final = sys.float_info.max
_NOTHING: Final = {"proximity": (_MOST, _MOST, -_MOST), "reverseProximity": (_MOST, -_MOST, _MOST)}


@register("proximity", "index", "number", "number", outputs=_OUTPUTS)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
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
