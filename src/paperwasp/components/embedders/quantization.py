"""A vector of a model as a tensor of the type that is wanted: cut, normalized, rounded, or packed into bits.

Vespa: HuggingFaceEmbedder.embed; https://docs.vespa.ai/en/rag/binarizing-vectors.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.pooling import Vector
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells


def check_vector(type_: TensorType) -> None:
    """Errors: ValueError for a type that is not one dense dimension."""
    if len(type_.dimensions) != 1:
        raise ValueError(f"Error in embedding to type '{type_}': should only have one dimension.")
    if type_.mapped:
        raise ValueError(f"Error in embedding to type '{type_}': dimension should be indexed.")
    if not type_.shape[0]:
        raise ValueError(f"Error in embedding to type '{type_}': dimension should have a size.")


def check_size(dimensions: int, type_: TensorType) -> None:
    """Errors: ValueError for a type of one dense dimension with more cells than a vector of `dimensions` gives."""
    if type_.shape[0] > dimensions:
        raise ValueError(f"Cannot quantize {dimensions} dimensions into {type_}")


def vector_tensor(vector: Vector, type_: TensorType, *, normalize: bool) -> Tensor:
    """The first values of a vector, as many as the type has; of int8, bits where that is an eighth of them or less.

    Errors: ValueError where the vector has fewer.
    """
    size = type_.shape[0]
    if type_.cell_type == "int8" and size <= len(vector) // 8:
        return _tensor(type_, packed(vector[: 8 * size]))
    check_size(len(vector), type_)
    values = vector[:size].astype(np.float64)
    if normalize:
        length = float(np.sqrt(values @ values))
        values = values / length if length else values
    if type_.cell_type == "int8":
        return _tensor(type_, np.clip(np.floor(values.astype(np.float32) * 127.0 + 0.5), -128, 127).astype(np.int8))
    return _tensor(type_, values)


def packed(values: NDArray[Any]) -> NDArray[np.int8]:
    """A bit for each value of the last axis, 1 where it is above 0, the first of eight the highest of its byte."""
    return np.packbits(values > 0, axis=-1).view(np.int8)


def _tensor(type_: TensorType, values: NDArray[Any]) -> Tensor:
    return Tensor(type_, ((),), as_cells(values[None], type_.cell_type))
