"""Tensors of hits where they stand: what kernels read that need no copy of them, and no labels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType


@dataclass(frozen=True, slots=True, eq=False)
class KeptTensors:
    """Hit i has the subspaces starts[i] to starts[i] + counts[i] of `cells`; none where it has no tensor."""

    type: TensorType
    cells: NDArray[Any]
    """(subspaces, *type.shape). Those of bfloat16 may be the upper halves of floats, as uint16."""
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    is_single: bool = False
    """As of a batch."""

    @classmethod
    def of(cls, batch: TensorBatch) -> KeptTensors:
        return cls(batch.type, batch.cells, np.ascontiguousarray(batch.starts[:-1]), batch.counts, batch.is_single)

    @property
    def vectors(self) -> NDArray[Any]:
        """Each subspace as one row."""
        return _as_rows(self.cells, self.type)


@dataclass(frozen=True, slots=True, eq=False)
class StoredTensors:
    """The tensors of all documents where they stand, without mapped dimensions: a lid has one subspace, or none."""

    type: TensorType
    cells: NDArray[Any]
    """(subspaces, *type.shape), as of hits."""
    rows: NDArray[np.uint64]
    """By lid: the number of its subspace and how many it has, as `attribute.rows` has them."""

    @property
    def vectors(self) -> NDArray[Any]:
        """Each subspace as one row."""
        return _as_rows(self.cells, self.type)


def _as_rows(cells: NDArray[Any], type_: TensorType) -> NDArray[Any]:
    return np.ascontiguousarray(cells.reshape(len(cells), math.prod(type_.shape)))
