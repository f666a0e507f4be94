"""MaxSim by a kernel: how near the vectors of a query are to the nearest ones of each document.

Cells of float are multiplied and added as float, as Vespa does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.tensor import algebra
from paperwasp.tensor import type_rules as rules
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.types import NUMBER, TensorType


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
    vectors = np.ascontiguousarray(_floats(documents.cells, joined).reshape(len(documents.cells), size))
    greatest = np.empty((documents.hits, len(tokens)), tokens.dtype)
    _core.greatest_dots(vectors, tokens, documents.starts, greatest)
    greatest[documents.counts == 0] = 0.0
    return TensorBatch.dense(NUMBER, greatest.sum(axis=1, dtype=np.float64), documents.is_single)


def _floats(cells: NDArray[Any], joined: TensorType) -> NDArray[Any]:
    return cells.astype(np.float64 if joined.cell_type == "double" else np.float32, copy=False)
