"""Tensors that are made and not combined: generators, literals, range, diag, random; and numbers as tensors.

Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#tensor
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.budget import budget
from paperwasp.core.clock import check_time
from paperwasp.document.tensor.algebra.joined import joined
from paperwasp.document.tensor.algebra.mapped import mapped
from paperwasp.document.tensor.algebra.reduced import reduced, summed_products
from paperwasp.document.tensor.algebra.rows import CELL_FUNCTIONS, PIECE_CELLS, Cells, check_size, converted
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, Dimension, TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.errors import TooLarge

Floats = NDArray[np.float64]


def number(values: Floats) -> TensorBatch:
    """The value of each hit as a `tensor()`; a single one is that of all."""
    return TensorBatch.dense(NUMBER, values, is_single=len(values) == 1)


def numbers(batch: TensorBatch) -> Floats:
    """The values of a batch of `tensor()`: one for each hit, or a single one for all."""
    return batch.cells


def places_of(type_: TensorType, first: int, count: int) -> Sequence[Floats]:
    """For each dimension the indexes of this number of cells of tensors below each other, from a number on."""
    cells = np.arange(first, first + count, dtype=np.int64)
    below = math.prod(type_.shape)
    found = []
    for length in type_.shape:
        below //= length
        found.append((cells // below % length).astype(np.float64))
    return found


def generated(type_: TensorType, values: Floats) -> TensorBatch:
    """Tensors of indexed dimensions. `values`: all cells of the first hit, then of the next; or of one for all."""
    check_size(len(values) // math.prod(type_.shape), type_)
    return of_cells(type_, converted(values, type_.cell_type))


def of_cells(type_: TensorType, cells: Cells) -> TensorBatch:
    """The same of cells that are of the type already, as they are."""
    cells = cells.reshape(-1, *type_.shape)
    return TensorBatch.dense(type_, cells, is_single=len(cells) == 1)


def filled(type_: TensorType, hits: int, values: Callable[[int, int], Floats]) -> TensorBatch:
    """Tensors of this number of hits. `values`: of this number of cells of all below each other, from a number on: it
    is asked piece by piece, in their order, and for less where a piece needs too much memory.

    Errors: TooLarge; OutOfTime.
    """
    check_size(hits, type_)
    cells = np.empty(hits * math.prod(type_.shape), DTYPES[type_.cell_type])
    start, most = 0, PIECE_CELLS
    taken = budget.taken_bytes
    while start < len(cells):
        check_time()
        count = min(most, len(cells) - start)
        try:
            cells[start : start + count] = converted(values(start, count), type_.cell_type)
        except TooLarge:
            if count == 1:
                raise
            most = count // 2
            continue
        finally:
            budget.give_back_to(taken)
        start += count
    return of_cells(type_, cells)


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
    return filled(type_, 1, lambda first, count: sum(places_of(type_, first, count), np.zeros(count)))


def diagonal(type_: TensorType) -> TensorBatch:
    """1 where all indexes are the same."""

    def values(start: int, count: int) -> Floats:
        [first, *others] = places_of(type_, start, count)
        same = np.ones(count, np.bool_)
        for other in others:
            same &= first == other
        return same.astype(np.float64)

    return filled(type_, 1, values)


def random_cells(type_: TensorType, generator: np.random.Generator) -> TensorBatch:
    """Each cell a number from 0 to 1, the same for all hits."""
    return filled(type_, 1, lambda first, count: generator.random(count))


# Functions that are made of others, as Vespa defines them.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/ranking-expressions.html#non-primitive-functions


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
