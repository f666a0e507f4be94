"""Dot products and MaxSim by kernels, which read the vectors of documents where they stand: how near the vectors of a
query are to the nearest ones of each document.

Cells of float are multiplied and added as float, as Vespa does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime
from paperwasp.core.rank.best_parts import ALL, BestHits, Part, joined, parts_for
from paperwasp.core.together import Together, of_parts
from paperwasp.document.tensor import types as rules
from paperwasp.document.tensor.batch import KeptTensors, StoredTensors, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import DTYPES

Nearest = Callable[[TensorBatch, KeptTensors, str], NDArray[Any]]
"""(a single tensor of the query, tensors of documents with one mapped dimension, the dimension of the query that
numbers its vectors, empty if it is one) → (hits, vectors of the query): how near the nearest vector of each hit is. The
numbers of hits without vectors are not used."""
_NO_LIDS: Final = np.zeros(0, np.uint32)
_NO_SCORES: Final = np.zeros(0)


def dots(query: TensorBatch, documents: KeptTensors) -> TensorBatch | None:
    """The dot product of a single dense tensor and that of each hit; without one, a hit has cells that are 0. None
    where the documents' cells are not of the type in which the two are multiplied."""
    rows = documents.vectors
    given = _vector(query, documents.type, rows)
    if given is None:
        return None
    found = _core.dots_at(given[0], rows, documents.starts, documents.counts, given[1])
    return TensorBatch.dense(NUMBER, found, documents.is_single)


def best_dots(
    query: TensorBatch,
    documents: StoredTensors,
    hits: NDArray[np.uint64],
    count: int,
    threads: int = 1,
    together: Together | None = None,
) -> BestHits | None:
    """The best `count` of the hits of a bitmap by these dot products; None where there are none by a kernel.

    threads: how many may look for them, by `together`. Errors: OutOfTime where there was no time for any hit.
    """
    rows = documents.vectors
    given = _vector(query, documents.type, rows)
    if given is None:
        return None
    vector, nothing = given

    def part(part: Part) -> BestHits:
        begun_ns = time.thread_time_ns()
        try:
            found = _core.best_dots(vector, rows, documents.rows, nothing, hits, count, *part)
        except OutOfTime:
            found = _NO_LIDS, _NO_SCORES, 0
        return BestHits(*found, time.thread_time_ns() - begun_ns)

    if together is None or threads < 2:
        best = part(ALL)
    else:
        best = joined(of_parts(parts_for(threads, 64 * len(hits)), part, threads, together), count)
    if not best.searched:
        raise OutOfTime
    return best


def _vector(query: TensorBatch, of: TensorType, rows: NDArray[Any]) -> tuple[NDArray[Any], float] | None:
    """A dense tensor as the vector that is multiplied with the rows of documents, and the dot product with cells that
    are 0; None where the rows have not the type in which the two are multiplied."""
    dtype = _joined_dtype(query.type, of)
    if rows.dtype != dtype or rows.dtype.kind != "f":
        return None
    vector = np.ascontiguousarray(query.cells.reshape(-1), dtype)
    with np.errstate(invalid="ignore"):
        return vector, float((vector * 0).sum())


def max_similarity(nearest: Nearest, query: TensorBatch, documents: KeptTensors, summed: str) -> TensorBatch:
    """The sum over the query's vectors of how near the nearest vector of each hit is; 0 for hits without vectors."""
    found = nearest(query, documents, summed)
    found[documents.counts == 0] = 0.0
    return TensorBatch.dense(NUMBER, found.sum(axis=1, dtype=np.float64), documents.is_single)


def greatest_dots(query: TensorBatch, documents: KeptTensors, summed: str) -> NDArray[Any]:
    """By dot products."""
    tokens = _tokens(query, _joined_dtype(query.type, documents.type), summed)
    found = np.empty((len(documents.starts), len(tokens)), tokens.dtype)
    _core.greatest_dots(tokens, documents.vectors, documents.starts, documents.counts, found)
    return found


def greatest_dots_with_bits(unpacked: TensorType, endian: str) -> Nearest:
    """By dot products with the bits of int8, as cells of a type."""

    def nearest(query: TensorBatch, documents: KeptTensors, summed: str) -> NDArray[Any]:
        tokens = _tokens(query, _joined_dtype(query.type, unpacked), summed)
        if endian == "little":
            tokens = np.ascontiguousarray(tokens.reshape(len(tokens), -1, 8)[:, :, ::-1].reshape(tokens.shape))
        found = np.empty((len(documents.starts), len(tokens)), tokens.dtype)
        _core.greatest_sums(tokens, documents.vectors, documents.starts, documents.counts, found)
        return found

    return nearest


def greatest_by_hamming(numerator: float, added: float, cell_type: str) -> Nearest:
    """By `numerator / (added + number of bits that differ)`, which is greatest where the fewest do. Cells of int8 on
    both sides."""

    def nearest(query: TensorBatch, documents: KeptTensors, summed: str) -> NDArray[Any]:
        tokens = _tokens(query, "int8", summed)
        least = np.empty((len(documents.starts), len(tokens)), np.uint32)
        _core.least_bits(tokens, documents.vectors, documents.starts, documents.counts, least)
        cells: NDArray[Any] = numerator / (added + least.astype(DTYPES[cell_type]))
        return cells

    return nearest


def _tokens(query: TensorBatch, dtype: str, summed: str) -> NDArray[Any]:
    """(vectors, size): the vectors of the query, those of dimension `summed`, with the other dimensions in order."""
    cells = query.cells
    if summed in (indexed := [d.name for d in query.type.indexed]):
        cells = np.moveaxis(cells[0], indexed.index(summed), 0)
    size = int(np.prod(cells.shape[1:], dtype=np.int64))
    return np.ascontiguousarray(cells.reshape(len(cells), size), dtype)


def _joined_dtype(one: TensorType, other: TensorType) -> str:
    return DTYPES[rules.joined(one, other).cell_type]
