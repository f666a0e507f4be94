"""Vectors as services send them, as tensors of the type that is wanted.

    float     numbers, or base64 of 32-bit floats, the lowest byte first → tensor<float>, tensor<bfloat16>
    int8      numbers from -128 to 127 → tensor<int8>
    binary    the same, of eight bits each → tensor<int8> with an eighth of the dimensions

Vespa: EmbeddingQuantization.java
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.vectors import check_vector
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import Unavailable

Quantization = Literal["auto", "float", "int8", "binary"]
VectorForm = Literal["float", "int8", "binary"]
"""The form of vectors that a service is asked for."""
_CELLS: Final = {"float": ("float", "bfloat16"), "int8": ("int8",), "binary": ("int8",)}


def sent_as(type_: TensorType, dimensions: int, quantization: Quantization) -> VectorForm:
    """Return the form that a service with vectors of this many dimensions is to send for a type.

    Errors: ValueError where none fits.
    """
    check_vector(type_)
    sent: VectorForm
    if quantization != "auto":
        sent = quantization
    elif type_.cell_type != "int8":
        sent = "float"
    else:
        sent = "binary" if type_.shape[0] == dimensions // 8 else "int8"
    if type_.cell_type not in _CELLS[sent]:
        raise ValueError(f"Quantization '{quantization}' is incompatible with tensor type {type_}.")
    size, wanted = type_.shape[0], dimensions // 8 if sent == "binary" else dimensions
    if sent == "binary" and dimensions % 8:
        raise ValueError(f"Configured dimension {dimensions} must be divisible by 8 for quantization 'binary'.")
    if size != wanted:
        if quantization == "auto" and type_.cell_type == "int8":
            expected = f"{dimensions} or {dimensions // 8}"
            problem = f"Tensor dimension {size} does not match configured dimension. Expected {expected}."
        elif sent == "binary":
            problem = f"Tensor dimension {size} does not match required dimension {wanted}."
        else:
            problem = f"Tensor dimension {size} does not match configured dimension {dimensions}."
        raise ValueError(problem)
    return sent


def read_vector(sent: object, size: int, form: VectorForm, who: str) -> NDArray[Any]:
    """The cells of one vector in an answer: float32 or int8. Errors: Unavailable for one of another form or size."""
    cells = _decoded(sent, form)
    if cells is None:
        raise Unavailable(f"{who} answered with an embedding that is not a vector of {form}: {str(sent)[:100]}")
    if cells.shape != (size,):
        raise Unavailable(f"{who}: Expected embedding dimension {size}, got {cells.size}.")
    if form == "float" and not np.isfinite(cells).all():
        raise Unavailable(f"{who} answered with an embedding that has a number that is not finite")
    return cells


def _decoded(sent: object, form: VectorForm) -> NDArray[Any] | None:
    dtype = np.dtype("<f4") if form == "float" else np.dtype(np.int8)
    try:
        if isinstance(sent, str):
            return np.frombuffer(base64.b64decode(sent, validate=True), dtype)
        if not isinstance(sent, list):
            return None
        if form == "float":
            with np.errstate(over="ignore"):
                return np.array(sent, dtype=np.float64).astype(np.float32)
        numbers = np.array(sent)
        is_right = numbers.dtype.kind == "i" and ((numbers >= -128) & (numbers <= 127)).all()
        return numbers.astype(np.int8) if is_right else None
    except (ValueError, TypeError, OverflowError, binascii.Error):
        return None


def tensor_of(cells: NDArray[Any], type_: TensorType) -> Tensor:
    """The tensor of a vector with as many cells as the type has."""
    return Tensor(type_, ((),), as_cells(cells[None], type_.cell_type))
