"""dotProduct(attribute, vector): of a weighted set or an array of numbers with a vector of the query.

The vector is the rank property `dotProduct.vector` of the query, or, where that is not set, its input
`query(vector)`: a tensor of one dimension, mapped for a weighted set and indexed for an array.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#dotProduct(name,vector)
Differs: a vector that is not understood is an error; Vespa computes with what stands before the mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import BYTE, INT, LONG, STRING, ArrayType, NumericType, WeightedSetType
from paperwasp.errors import InvalidQuery
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.search.features.query_vector import SparseVector, array_vector, weight_vector
from paperwasp.storage.attributes.elements import numbers_in, numbers_within, sums_by_key, sums_of

INTEGERS = (BYTE, INT, LONG)


@register("dotProduct", "attribute", "name")
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, vector = arguments
    described = setup.described(field)
    assert described is not None
    match described.type:
        case WeightedSetType(key=NumericType() as key) if key in INTEGERS:
            return _of_weighted_set(field, vector, is_numeric=True)
        case WeightedSetType() if described.type.key == STRING:
            return _of_weighted_set(field, vector, is_numeric=False)
        case ArrayType(element=NumericType()):
            return _of_array(field, vector, described.type.element in INTEGERS)
    return constant(0.0)


def _of_weighted_set(field: str, vector: str, is_numeric: bool) -> Compute:
    def compute(block: Block) -> Floats:
        weights = _weights(block, vector)
        keys = (int(key) if _is_long(key) else None for key in weights) if is_numeric else iter(weights)
        known = {key: weight for key, weight in zip(keys, weights.values(), strict=True) if key is not None}
        return sums_by_key(block.column(field), block.lids, known) if known else one(0.0)

    return compute


def _weights(block: Block, vector: str) -> Mapping[str, float]:
    name = f"dotProduct.{vector}"
    if text := block.setting.properties.get(name, "").strip("\"'"):
        return weight_vector(name, text)
    tensor = _tensor(block, vector, mapped=True)
    if tensor is None:
        return {}
    return {label: float(cell) for (label,), cell in zip(tensor.labels, tensor.cells.tolist(), strict=True)}


def _of_array(field: str, vector: str, whole: bool) -> Compute:
    def compute(block: Block) -> Floats:
        found = _array(block, vector, whole)
        if found is None or not len(found.indexes):
            return one(0.0)
        counts, values = numbers_in(block.column(field), block.lids)
        within = numbers_within(counts)
        # What stands beyond the vector does not count, not even where it is no number.
        factors = found.at(within)
        with np.errstate(invalid="ignore"):
            return sums_of(counts, np.where(within < found.length, values * factors, 0.0))

    return compute


def _array(block: Block, vector: str, whole: bool) -> SparseVector | None:
    name = f"dotProduct.{vector}"
    if text := block.setting.properties.get(name, "").strip("\"'"):
        return array_vector(name, text, whole)
    tensor = _tensor(block, vector, mapped=False)
    if tensor is None:
        return None
    cells = tensor.cells.reshape(-1).astype(np.float64)
    return SparseVector(np.arange(len(cells)), cells)


def _tensor(block: Block, vector: str, mapped: bool) -> Tensor | None:
    """The input of that name. Errors: InvalidQuery for one of another shape."""
    tensor = block.setting.tensors.get(vector)
    if tensor is None:
        return None
    shape = (len(tensor.type.mapped), len(tensor.type.indexed))
    if shape != ((1, 0) if mapped else (0, 1)):
        expected = "one mapped dimension" if mapped else "one indexed dimension"
        raise InvalidQuery(f"dotProduct: query({vector}) is a {tensor.type}: {expected} is expected")
    return tensor


def _is_long(key: str) -> bool:
    """Whether a key is a number that a set of integers may have."""
    return re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", key, re.ASCII) is not None
