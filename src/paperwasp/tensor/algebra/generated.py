"""Tensors that are made and not combined: generators, literals, range, diag, random; and numbers as tensors.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.tensor.algebra.cells import converted
from paperwasp.tensor.algebra.rows import check_size
from paperwasp.tensor.batch import Labels, TensorBatch
from paperwasp.tensor.types import NUMBER, TensorType

Floats = NDArray[np.float64]


def number(values: Floats) -> TensorBatch:
    """The value of each hit as a `tensor()`; a single one is that of all."""
    return TensorBatch.dense(NUMBER, values, is_single=len(values) == 1)


def numbers(batch: TensorBatch) -> Floats:
    """The values of a batch of `tensor()`: one for each hit, or a single one for all."""
    return batch.cells


def place_columns(type_: TensorType) -> Mapping[str, Floats]:
    """Dimension → the index of each cell of one tensor, in the order of the cells."""
    check_size(len(type_.dimensions), type_)
    grids = np.indices(type_.shape, np.float64)
    return {d.name: grid.reshape(-1) for d, grid in zip(type_.indexed, grids, strict=True)}


def generated(type_: TensorType, values: Floats) -> TensorBatch:
    """Tensors of indexed dimensions. `values`: all cells of the first hit, then of the next; or of one for all."""
    check_size(len(values) // math.prod(type_.shape), type_)
    cells = converted(values, type_.cell_type).reshape(-1, *type_.shape)
    return TensorBatch.dense(type_, cells, is_single=len(cells) == 1)


def literal(
    type_: TensorType, addresses: Sequence[tuple[str, ...]], values: Sequence[Floats], labels: Labels
) -> TensorBatch:
    """Cells at these addresses (labels and indexes in the order of the type), each a column of a value for each hit or
    a single one for all. What is not given of a subspace is 0."""
    hits = next((len(column) for column in values if len(column) != 1), 1)
    subspaces: dict[tuple[str, ...], int] = {} if type_.mapped else {(): 0}
    at: list[list[int]] = []
    for address in addresses:
        parts = list(zip(type_.dimensions, address, strict=True))
        key = tuple(label for dimension, label in parts if dimension.is_mapped)
        indexes = [int(index) for dimension, index in parts if not dimension.is_mapped]
        at.append([subspaces.setdefault(key, len(subspaces)), *indexes])
    count = len(subspaces)
    check_size(hits * count, type_)
    cells = converted(np.zeros((hits, count, *type_.shape)), type_.cell_type)
    for place, column in zip(at, values, strict=True):
        cells.T[tuple(reversed(place))] = converted(column, type_.cell_type)
    numbers_of = np.array([[labels.number(label) for label in key] for key in subspaces], np.int64)
    numbers_of = numbers_of.reshape(count, len(type_.mapped))
    return TensorBatch(
        type_,
        np.arange(hits + 1, dtype=np.int64) * count,
        np.tile(numbers_of, (hits, 1)),
        cells.reshape(hits * count, *type_.shape),
        is_single=hits == 1,
    )


def range_cells(type_: TensorType) -> TensorBatch:
    """Each cell is the sum of its indexes."""
    columns = place_columns(type_)
    return generated(type_, sum(columns.values(), np.zeros(math.prod(type_.shape))))


def diagonal(type_: TensorType) -> TensorBatch:
    """1 where all indexes are the same."""
    [first, *others] = place_columns(type_).values()
    same = [first == other for other in others]
    return generated(type_, np.logical_and.reduce([np.ones(len(first), np.bool_), *same]).astype(np.float64))


def random_cells(type_: TensorType, generator: np.random.Generator) -> TensorBatch:
    """Each cell a number from 0 to 1, the same for all hits."""
    check_size(1, type_)
    return generated(type_, generator.random(math.prod(type_.shape)))
