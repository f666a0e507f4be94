"""Functions that are made of others, as Vespa defines them.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#non-primitive-functions
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from paperwasp.document.tensor.algebra.cells import CELL_FUNCTIONS
from paperwasp.document.tensor.algebra.generated import generated
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.mapped import mapped
from paperwasp.document.tensor.algebra.products import summed_products
from paperwasp.document.tensor.algebra.reduced import reduced
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType

Dimensions = Sequence[str]
_ONE: Final = np.ones(1)


def argmax(batch: TensorBatch, dimensions: Dimensions = ()) -> TensorBatch:
    """1 for the largest cells, else 0."""
    return joined(batch, reduced(batch, "max", dimensions), CELL_FUNCTIONS["equal"])


def argmin(batch: TensorBatch, dimensions: Dimensions = ()) -> TensorBatch:
    """1 for the smallest cells, else 0."""
    return joined(batch, reduced(batch, "min", dimensions), CELL_FUNCTIONS["equal"])


def l1_normalize(batch: TensorBatch, dimensions: Dimensions = ()) -> TensorBatch:
    """Divided by the sum."""
    return joined(batch, reduced(batch, "sum", dimensions), CELL_FUNCTIONS["divide"])


def l2_normalize(batch: TensorBatch, dimensions: Dimensions = ()) -> TensorBatch:
    """Divided by the root of the sum of the squares."""
    squares = mapped(batch, CELL_FUNCTIONS["square"])
    length = mapped(reduced(squares, "sum", dimensions), CELL_FUNCTIONS["sqrt"])
    return joined(batch, length, CELL_FUNCTIONS["divide"])


def softmax(batch: TensorBatch, dimensions: Dimensions = ()) -> TensorBatch:
    """e to each cell, divided by the sum of them."""
    return l1_normalize(mapped(batch, CELL_FUNCTIONS["exp"]), dimensions)


def matmul(a: TensorBatch, b: TensorBatch, dimension: str) -> TensorBatch:
    """The sum of the products along the dimension."""
    return summed_products(a, b, [dimension])


def xw_plus_b(x: TensorBatch, w: TensorBatch, b: TensorBatch, dimension: str) -> TensorBatch:
    """The sum of the products of `x` and `w` along the dimension, and `b`."""
    return joined(matmul(x, w, dimension), b, CELL_FUNCTIONS["add"])


def cosine_similarity(a: TensorBatch, b: TensorBatch, dimension: str) -> TensorBatch:
    """The cosine of the angle of the vectors along the dimension."""
    lengths = joined(matmul(a, a, dimension), matmul(b, b, dimension), CELL_FUNCTIONS["multiply"])
    return joined(matmul(a, b, dimension), mapped(lengths, CELL_FUNCTIONS["sqrt"]), CELL_FUNCTIONS["divide"])


def euclidean_distance(a: TensorBatch, b: TensorBatch, dimension: str) -> TensorBatch:
    """The root of the sum of the squares of the differences along the dimension."""
    squares = mapped(joined(a, b, CELL_FUNCTIONS["subtract"]), CELL_FUNCTIONS["square"])
    return mapped(reduced(squares, "sum", [dimension]), CELL_FUNCTIONS["sqrt"])


def expanded(batch: TensorBatch, dimension: str) -> TensorBatch:
    """The tensors with one more indexed dimension, of size 1."""
    return joined(batch, generated(TensorType.of([Dimension(dimension, 1)]), _ONE), CELL_FUNCTIONS["multiply"])
