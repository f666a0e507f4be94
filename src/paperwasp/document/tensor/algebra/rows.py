"""Rows of batches: which there are for which hit, how many may be, and rows by others."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.core.clock import check_time
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.errors import TooLarge

Rows = NDArray[np.int64]


_MOST_AXES: Final = 31
"""The most dimensions of the arrays of NumPy, less one for the rows."""


_CELL_BYTES: Final = {name: np.dtype(dtype).itemsize for name, dtype in DTYPES.items()}
_LABEL_BYTES: Final = 8


def take_memory(count: int, what: str) -> None:
    """Counts bytes that are about to be allocated. Errors: TooLarge where the work may not have them."""
    try:
        budget.take(count)
    except OutOfMemory as error:
        raise TooLarge(f"{what} needs {error}") from None


def check_size(rows: int, type_: TensorType) -> None:
    """Counts the memory of this number of subspaces of this type, which are about to be made.

    Errors: TooLarge, labels counted as cells; OutOfTime when the time of the thread is over.
    """
    check_time()
    if len(type_.indexed) > _MOST_AXES:
        raise TooLarge(f"a tensor with {len(type_.indexed)} indexed dimensions is not worked: at most {_MOST_AXES} are")
    labels = len(type_.mapped) + 2 if type_.mapped else 0
    cells = rows * math.prod(type_.shape)
    if cells + rows * labels > limits.TENSOR_BATCH_CELLS:
        raise TooLarge(
            f"a result of type {type_} has {rows} subspaces for these hits together:"
            f" more than {limits.TENSOR_BATCH_CELLS} cells at a time are not worked"
        )
    if budget.most_bytes:
        size_bytes = cells * _CELL_BYTES[type_.cell_type] + rows * labels * _LABEL_BYTES
        take_memory(size_bytes, f"a result of type {type_}")


def bounds(counts: Rows) -> Rows:
    """(n + 1): where each of n lies that are below each other and have these lengths."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def ranges(starts: Rows, counts: Rows) -> Rows:
    """The numbers from each start on, as many as each count, below each other."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Rows = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return numbers


def taken(batch: TensorBatch, hits: Rows) -> TensorBatch:
    """Takes the tensors of these hits (numbers of hits, in any order). One that is the same for all stays so."""
    if batch.is_single:
        return batch
    counts = batch.counts[hits]
    check_size(int(counts.sum()), batch.type)
    rows = ranges(batch.starts[:-1][hits], counts)
    return TensorBatch(batch.type, bounds(counts), batch.labels[rows], batch.cells[rows])


def repeated(batch: TensorBatch, times: int) -> TensorBatch:
    """Repeats the tensor of each hit this number of times. One that is the same for all stays so."""
    return taken(batch, np.repeat(np.arange(batch.hits), times))


def spread(batch: TensorBatch, hits: int) -> TensorBatch:
    """The same for this number of hits, each having its own."""
    if not batch.is_single:
        return batch
    own = TensorBatch(batch.type, batch.starts, batch.labels, batch.cells)
    return own if hits == 1 else taken(own, np.zeros(hits, np.int64))


def with_rows(batch: TensorBatch, kept: NDArray[np.bool_]) -> TensorBatch:
    """With some of the subspaces."""
    starts = bounds(kept.astype(np.int64))[batch.starts]
    return TensorBatch(batch.type, starts, batch.labels[kept], batch.cells[kept], batch.is_single)
