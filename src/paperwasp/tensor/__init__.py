"""Tensors: types, and the values of them."""

from paperwasp.tensor.types import NUMBER, Dimension, TensorType

__all__ = ["NUMBER", "Dimension", "TensorType"]
