"""Tensors: types, what operations make of types, and values with their text and JSON forms."""

from paperwasp.tensor.literal import parse_tensor
from paperwasp.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.tensor.value import Tensor, TensorBuilder

__all__ = ["NUMBER", "Dimension", "Tensor", "TensorBuilder", "TensorType", "parse_tensor"]
