"""map: a function of each cell; and cells of other types.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#map
"""

from __future__ import annotations

import numpy as np

from paperwasp.document.tensor import type_rules as rules
from paperwasp.document.tensor.algebra.cells import CellFunction, Cells, apply_function, converted
from paperwasp.document.tensor.algebra.rows import check_size
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType


def mapped(batch: TensorBatch, function: CellFunction) -> TensorBatch:
    """The function of each cell."""
    type_ = rules.mapped(batch.type)
    check_size(len(batch.cells), type_)
    return _with(batch, type_, apply_function(function, batch.cells.shape, type_.cell_type, batch.cells))


def cast(batch: TensorBatch, cell_type: str) -> TensorBatch:
    """With cells of this type.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#cell_cast
    """
    return retyped(batch, rules.cast(batch.type, cell_type))


def retyped(batch: TensorBatch, type_: TensorType) -> TensorBatch:
    """The same cells in a type that has the same dimensions."""
    if type_ == batch.type:
        return batch
    check_size(len(batch.cells), type_)
    return _with(batch, type_, converted(batch.cells, type_.cell_type))


def unpacked(batch: TensorBatch, cell_type: str = "float", endian: str = "big") -> TensorBatch:
    """A cell for each bit of cells of int8, along the last indexed dimension; `endian`: which bit is the first.

    Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#unpack-bits
    """
    type_ = rules.unpacked(batch.type, cell_type)
    check_size(len(batch.cells), type_)
    octets = np.ascontiguousarray(batch.cells).view(np.uint8)
    bits = np.unpackbits(octets, axis=-1, bitorder="little" if endian == "little" else "big")
    return _with(batch, type_, converted(bits, cell_type))


def _with(batch: TensorBatch, type_: TensorType, cells: Cells) -> TensorBatch:
    return TensorBatch(type_, batch.starts, batch.labels, cells, batch.is_single)
