"""attribute(position_zcurve): a position, or the positions of an array, as numbers that interleave their bits.

Vespa has an attribute of that name for each attribute of positions; here the positions are a column of their own.
"""

from __future__ import annotations

import numpy as np

from paperwasp.document.types import ArrayType
from paperwasp.schema.pending import Z_CURVE_SUFFIX
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant
from paperwasp.storage.attributes.elements import positions_in
from paperwasp.storage.attributes.position import z_curve


def z_curve_feature(setup: RankSetup, name: str, element: int | None, output: str) -> Compute:
    """An output of the attribute of this name; `element` of an array."""
    field = name.removesuffix(Z_CURVE_SUFFIX)
    is_array = isinstance(setup.field(field).type, ArrayType)
    if output == "count":
        return _count(field) if is_array and element is None else constant(0.0 if is_array else 1.0)
    if output in ("weight", "contains") or (is_array and element is None):
        return constant(0.0)
    return _value(field, element if is_array and element is not None else 0, 0.0 if is_array else np.nan)


def _count(field: str) -> Compute:
    def compute(block: Block) -> Floats:
        return positions_in(block.column(field), block.lids)[0].astype(np.float64)

    return compute


def _value(field: str, element: int, unset: float) -> Compute:
    def compute(block: Block) -> Floats:
        counts, positions = positions_in(block.column(field), block.lids)
        starts = np.cumsum(counts) - counts
        there = counts > element
        values = np.full(len(counts), unset)
        values[there] = z_curve(positions[starts[there] + element])
        return values

    return compute
