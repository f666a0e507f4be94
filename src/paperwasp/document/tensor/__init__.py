"""Tensors: types, what operations make of types, and values with their text and JSON forms."""

from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder

__all__ = ["NUMBER", "Dimension", "Tensor", "TensorBuilder", "TensorType", "parse_tensor"]
