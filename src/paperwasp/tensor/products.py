"""MaxSim as products of matrices: how near the vectors of a query are to the nearest ones of each document.

Cells of float are multiplied and added as float, as Vespa does.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import check_time
from paperwasp.tensor import algebra
from paperwasp.tensor import type_rules as rules
from paperwasp.tensor.algebra.rows import bounds
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.types import TensorType

_PRODUCTS: Final = 1 << 20
"""Sums of products of MaxSim that are worked at a time: what stays in the cache."""


def max_similarity(
    query: TensorBatch, documents: TensorBatch, summed: str, best: str, within: tuple[str, ...]
) -> TensorBatch:
    """The sum over dimension `summed` of the query of the greatest, over dimension `best` of the documents, of the sums
    of products over the dimensions `within`."""
    indexed = tuple(sorted(within))
    of_documents = tuple(d.name for d in documents.type.indexed)
    of_query = tuple(d.name for d in query.type.dimensions if d.name != summed)
    is_matrix = [d.name for d in documents.type.mapped] == [best] and indexed == of_documents == of_query
    if not (is_matrix and query.is_single and all(d.name == summed for d in query.type.mapped)):
        products = algebra.summed_products(query, documents, within)
        return algebra.reduced(algebra.reduced(products, "max", (best,)), "sum", (summed,))
    joined = rules.joined(query.type, documents.type)
    tokens = _floats(query.cells, joined)
    if not query.type.mapped:
        tokens = np.moveaxis(tokens[0], [d.name for d in query.type.indexed].index(summed), 0)
    size = int(np.prod(documents.type.shape, dtype=np.int64))
    tokens = np.ascontiguousarray(tokens.reshape(len(tokens), size))
    values = np.zeros(documents.hits)
    if len(tokens):
        _add_similarities(documents, joined, tokens.T, values)
    found = algebra.number(values)
    return TensorBatch.dense(found.type, found.cells, documents.is_single)


def _add_similarities(
    documents: TensorBatch, joined: TensorType, tokens: NDArray[Any], values: NDArray[np.float64]
) -> None:
    """Hits without any subspace keep 0."""
    there = np.flatnonzero(documents.counts)
    counts = documents.counts[there]
    rows = documents.cells.reshape(len(documents.cells), -1)
    ends = np.cumsum(counts)
    done = 0
    while done < len(there):
        check_time()
        before = int(ends[done - 1]) if done else 0
        end = int(np.searchsorted(ends, before + _PRODUCTS // tokens.shape[1], "right"))
        end = max(done + 1, end)
        products = _floats(rows[before : int(ends[end - 1])], joined) @ tokens
        greatest = np.fmax.reduceat(products, bounds(counts[done:end])[:-1], axis=0)
        values[there[done:end]] = greatest.sum(axis=1, dtype=np.float64)
        done = end


def _floats(cells: NDArray[Any], joined: TensorType) -> NDArray[Any]:
    return cells.astype(np.float64 if joined.cell_type == "double" else np.float32, copy=False)
